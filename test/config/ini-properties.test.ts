import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { interpolate } from '../../src/config/interpolate.ts';
import { formatIniValue, parseIni } from '../../src/config/text.ts';

describe('for any text', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '[',
      ']',
      '=',
      ':',
      '#',
      ';',
      '"',
      "'",
      '\n',
      '\r\n',
      '\r',
      ' ',
      '\t',
      '\\',
      '$',
      '.',
      '\0',
    ),
    fc.constantFrom('[s]\n', 'k = v\n', '__proto__', 'true', '\uFEFF', '\ud800'),
    fc.string({ unit: 'binary', maxLength: 5 }),
  );
  const text = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''));

  it('parsing does not throw, and every problem has a line of the file', () => {
    fc.assert(
      fc.property(text, (written) => {
        const lines = written.split(/\r\n|\r|\n/).length;
        for (const { origin, message } of parseIni(written, 'f').problems) {
          expect(origin).toMatchObject({ kind: 'file', file: 'f', line: expect.any(Number) });
          expect(origin?.kind === 'file' && origin.line >= 1 && origin.line <= lines).toBe(true);
          expect(message).not.toBe('');
        }
      }),
      { numRuns: 500 },
    );
  });

  const line = fc.string({ unit: 'binary', maxLength: 12 }).map((part) => part.replace(/[\r\n]/g, ''));
  const section = line.filter((name) => name !== '' && name === name.toLowerCase());
  const name = line
    .map((part) => part.replace(/[:=]/g, '').trim())
    .filter((part) => part !== '' && !/^[#;[]/.test(part));
  const continuation = line.map((part) => part.trim()).filter((part) => part !== '');
  // Lines after the first lose their surrounding spaces, and a blank one ends the value: the dialect has no words for them.
  const value = fc
    .tuple(
      fc.oneof(line, fc.constantFrom('"', '""', `'a'`, ' a ', '$', '$$', `\${x}`, '#', '[s]')),
      fc.array(continuation),
    )
    .map(([first, rest]) => [first, ...rest].join('\n'));
  const document = fc.dictionary(section, fc.dictionary(name, value, { noNullPrototype: true }));

  it('what is written with formatIniValue is read back the same', () => {
    fc.assert(
      fc.property(document, (sections) => {
        const written = Object.entries(sections)
          .map(([header, options]) => {
            const lines = Object.entries(options).map(([key, text]) => `${key} = ${formatIniValue(text)}`);
            return [`[${header}]`, ...lines].join('\n');
          })
          .join('\n');
        const read = parseIni(written, 'f');
        expect(read.problems).toEqual([]);
        for (const [header, options] of Object.entries(sections)) {
          for (const [key, text] of Object.entries(options)) {
            const found = read.sections.get(header)?.get(key)?.value ?? '';
            expect(interpolate(found, header, () => undefined)).toEqual({ text, secret: false });
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});
