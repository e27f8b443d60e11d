/** Scalars and documents beside PyYAML itself, where Python has it. */

import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { isMapping, type Mapping, YamlError } from '../../../src/base/yaml/tree.ts';
import { hasPyYaml, Python, type Read, type Seen } from './python.ts';
import { changed, changes, HAND_WRITTEN, ODD_TEXTS, values } from './samples.ts';

/** Whether the value in Python is the same, and of the same type. */
function isSame(seen: Read, value: unknown): boolean {
  switch (seen?.kind) {
    case 'null':
      return value === null;
    case 'bool':
      return value === (seen.text === 'True');
    case 'int':
      return typeof value === 'bigint' || Number.isSafeInteger(value) ? String(value) === seen.text : false;
    case 'float':
      return Object.is(value, floatOf(seen.text));
    case 'str':
      return value === seen.text;
    case 'date':
    case 'datetime':
    case 'bytes':
      return typeof value === 'string';
    case 'list':
      return (
        Array.isArray(value) &&
        value.length === seen.items.length &&
        seen.items.every((item, index) => isSame(item, value[index]))
      );
    case 'map': {
      const last = new Map(seen.pairs.map(([name, , item]) => [name, item]));
      return (
        isMapping(value) &&
        Object.keys(value).length === last.size &&
        [...last].every(([name, item]) => Object.hasOwn(value, name) && isSame(item, value[name]))
      );
    }
    default:
      return false;
  }
}

function floatOf(text: string): number {
  return Number(text.replace('inf', 'Infinity').replace('nan', 'NaN'));
}

/** Whether a value from code is the same in Python: texts and names are texts. */
function isNew(seen: Read, value: unknown): boolean {
  if (seen?.kind === 'list') {
    return (
      Array.isArray(value) &&
      value.length === seen.items.length &&
      seen.items.every((item, index) => isNew(item, value[index]))
    );
  }
  if (seen?.kind === 'map') {
    return (
      isMapping(value) &&
      Object.keys(value).length === seen.pairs.length &&
      seen.pairs.every(
        ([name, key, item]) => key.kind === 'str' && Object.hasOwn(value, name) && isNew(item, value[name]),
      )
    );
  }
  if (typeof value === 'string') {
    return seen?.kind === 'str' && seen.text === value;
  }
  return isSame(seen, value);
}

/** Whether `now` is `then` after its value was changed from `before` to `after`: unchanged parts are the same, others have the new value. */
function isOnlyChanged(now: Read, then: Seen, before: unknown, after: unknown): boolean {
  if (isDeepStrictEqual(before, after)) {
    return isDeepStrictEqual(now, then);
  }
  if (then.kind === 'map' && isMapping(before) && isMapping(after)) {
    return now?.kind === 'map' && isChangedMapping(now, then, before, after);
  }
  if (then.kind === 'list' && Array.isArray(before) && Array.isArray(after)) {
    return (
      now?.kind === 'list' &&
      now.items.length === after.length &&
      // The document finds out which item it was.
      now.items.every(
        (item, index) =>
          then.items.some((old, position) => isOnlyChanged(item, old, before[position], after[index])) ||
          isNew(item, after[index]),
      )
    );
  }
  return isNew(now, after);
}

type SeenMapping = Extract<Seen, { kind: 'map' }>;

function isChangedMapping(now: SeenMapping, then: SeenMapping, before: Mapping, after: Mapping): boolean {
  const kept = then.pairs.filter(([name]) => Object.hasOwn(after, name));
  const added = Object.keys(after).filter((name) => !Object.hasOwn(before, name));
  const last = new Map(kept.map(([name], index) => [name, index]));
  return (
    now.pairs.length === kept.length + added.length &&
    kept.every(([name, key, value], index) => {
      const [nameNow, keyNow, valueNow] = now.pairs[index] ?? [];
      const isUnchanged = last.get(name) !== index;
      return (
        nameNow === name &&
        isDeepStrictEqual(keyNow, key) &&
        (isUnchanged
          ? isDeepStrictEqual(valueNow, value)
          : isOnlyChanged(valueNow, value, before[name], after[name]))
      );
    }) &&
    added.every((name, index) => {
      const [nameNow, keyNow, valueNow] = now.pairs[kept.length + index] ?? [];
      return nameNow === name && keyNow?.kind === 'str' && isNew(valueNow, after[name]);
    })
  );
}

/** `undefined` = refused. Any other error than a `YamlError` fails the test. */
function parsed(text: string): YamlDocument | undefined {
  try {
    return YamlDocument.parse(text);
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(YamlError);
    return undefined;
  }
}

const what = hasPyYaml ? 'compared with PyYAML' : 'NOT COMPARED: PYTHON3 WITH PYYAML 6 IS MISSING';

describe.skipIf(!hasPyYaml)(what, () => {
  let python: Python;
  beforeAll(() => {
    python = new Python();
  });
  afterAll(() => python.close());

  it.each([
    ...ODD_TEXTS,
    ...['yes', 'YES', 'yEs', 'Off', 'FALSE', 'Null', 'NULL', 'nuLL', '+.inf', '-.INF', '.NaN', '.Nan'],
    ...['+.nan'],
    ...['0b', '0x', '0_7', '0_', '0b1_0', '0X1', '09.5', '00', '1e5', '1.5e5', '1.5E+5', '1.5e+400', '1.e-1'],
    ...['1:60', '1:59', '-1:30', '0:30', '01:30', '1:30.5', '-1:30.5', '1_2:3_0', '1:2:3:4', '._1', '.1_0'],
    ...['-0b11', '-017', '+0x10', '9007199254740993', '-9223372036854775809', '0.1000000000000000055', '.'],
    ...['+'],
    ...['2026-1-1', '2026-1-1 1:00:00', '2026-01-01T10:00:00Z', '2026-01-01t1:00:00.5 +1:30', '10:00:00'],
  ])('%j without quotes has the value of PyYAML', async (text) => {
    const seen = await python.read(text);
    const document = parsed(text);
    if (seen !== undefined && !/[\r\u0085\u2028\u2029\ufeff]/.test(text)) {
      expect({ text, value: document?.value, seen }).toSatisfy(() => isSame(seen, document?.value));
    }
  });

  it('a text in the form of a date is refused exactly if it is none', async () => {
    const upTo = (most: number) => fc.integer({ min: 0, max: most });
    const two = (most: number) => upTo(most).map((one) => String(one).padStart(2, '0'));
    const year = fc.constantFrom('0000', '0001', '1900', '2000', '2024', '2026', '9999');
    const date = fc.tuple(year, two(14), two(33)).map((parts) => parts.join('-'));
    const time = fc.tuple(upTo(25), two(61), two(61)).map((parts) => parts.join(':'));
    const zone = fc
      .tuple(
        fc.constantFrom('', 'Z', ' +', '-'),
        upTo(25),
        fc.option(
          two(99).map((minutes) => `:${minutes}`),
          { nil: '' },
        ),
      )
      .map(([sign, hours, minutes]) => (/[-+]/.test(sign) ? `${sign}${hours}${minutes}` : sign));
    const moment = fc.tuple(date, time, zone).map(([day, ...rest]) => `${day} ${rest.join('')}`);
    await fc.assert(
      fc.asyncProperty(fc.oneof(date, moment), async (text) => {
        expect({ text, isRead: parsed(text) !== undefined }).toEqual({
          text,
          isRead: (await python.read(text)) !== undefined,
        });
      }),
      { numRuns: 2000 },
    );
  });

  it('every text that both accept has the value of PyYAML', async () => {
    const piece = fc.oneof(
      fc.constantFrom(...'0179-+_:.eExobaTtZ~=# \t\n&*!|>%@`?,[]{}"\'\\'.split('')),
      fc.constantFrom(
        '0x',
        '0b',
        '2026',
        '-11-21',
        '12:30:00',
        '<<',
        'inf',
        'NaN',
        'yes',
        'On',
        'null',
        ': ',
        '- ',
      ),
      fc.constantFrom('\r\n', '\r', '\u00a0', '\u0085', '\u2028', '\ufeff', '\u0007', '\ud800', 'é', '😀'),
    );
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { maxLength: 7 }).map((pieces) => pieces.join('')),
        async (text) => {
          const seen = await python.read(text);
          const document = parsed(text);
          if (seen !== undefined && document !== undefined) {
            compared += 1;
            expect(document.value).toSatisfy((value) => isSame(seen, value));
          }
        },
      ),
      { numRuns: 1500 },
    );
    expect(compared).toBeGreaterThan(300);
  });

  it.each(HAND_WRITTEN.map((text, index) => ({ index, text })))(
    'sample $index has the value of PyYAML, also in our own layout',
    async ({ text }) => {
      const document = YamlDocument.parse(text);
      const seen = await python.read(text);
      expect(document.value).toSatisfy((value) => isSame(seen, value));
      expect(await python.read(document.format())).toEqual(seen);
    },
  );

  it.each([
    ['in flow', 'a: [?b]'],
    ['an anchor that ends in the middle', '&a:b c'],
    ['an exclamation mark alone', 'a: ! 12'],
    ['a whole number with a tag of a fraction', 'a: !!float 1'],
    ['a line break of its own in a comment', 'a: 1 # \u2028b: 2'],
    ['a carriage return alone', 'a: 1 # \rb: 2'],
  ])('a text that would be read differently is refused: %s', async (_, text) => {
    expect(await python.read(text)).toBeDefined();
    expect(() => YamlDocument.parse(text)).toThrow(YamlError);
  });

  it('a value from code is written so that PyYAML reads it back', async () => {
    await fc.assert(
      fc.asyncProperty(values, async (value) => {
        const written = YamlDocument.from({ value }).toString();
        const seen = await python.read(written);
        expect(seen).toSatisfy(() => isOnlyChanged(seen, { kind: 'map', pairs: [] }, {}, { value }));
        // The reader in C accepts no half of a surrogate pair.
        if (!/\\ud[89a-f]/.test(written)) {
          expect(await python.read(written, true)).toEqual(seen);
        }
      }),
      { numRuns: 250 },
    );
  });

  it('a change affects its place only, as PyYAML reads it', async () => {
    const written = fc.constantFrom(...HAND_WRITTEN);
    // A task of SkyPilot is JSON.
    const dumped = values.map((value) =>
      JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? 0.5 : item)),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          written.map((text) => ({ text })),
          fc.tuple(dumped, fc.boolean()).map(([json, isApart]) => ({ json, isApart })),
        ),
        changes,
        async (source, all) => {
          const text = 'text' in source ? source.text : await python.dump(JSON.parse(source.json), source);
          const document = YamlDocument.parse(text);
          const after = changed(document.value, all);
          const result = document.with(after).toString();
          const then = await python.read(text);
          const now = await python.read(result);
          expect({ text, result, after }).toSatisfy(
            () => then !== undefined && isOnlyChanged(now, then, document.value, after),
          );
        },
      ),
      { numRuns: 1500 },
    );
  });
});
