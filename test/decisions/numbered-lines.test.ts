import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NumberedLines } from '../../src/decisions/reader.ts';
import { ANY_CHARACTER } from '../support/characters.ts';

const MAX_LINE_BYTES = 1024 * 1024;

/** The lines of these chunks; `undefined` = one that is too long. */
function split(...chunks: (string | Uint8Array)[]): (string | undefined)[] {
  const lines = new NumberedLines();
  const read = [...chunks.flatMap((chunk) => [...lines.push(Buffer.from(chunk as string))]), ...lines.end()];
  return read.map(({ text }) => text);
}

describe('NumberedLines', () => {
  it('gives each line when its end is there, and the last one when there will be none', () => {
    const lines = new NumberedLines();
    const push = (text: string) => [...lines.push(Buffer.from(text))];
    expect(push('one\n \ntw')).toEqual([{ number: 1, text: 'one' }]);
    expect(push('o')).toEqual([]);
    expect(push('\nthree\nfo')).toEqual([
      { number: 3, text: 'two' },
      { number: 4, text: 'three' },
    ]);
    expect([...lines.end()]).toEqual([{ number: 5, text: 'fo' }]);
    expect([...lines.end()]).toEqual([]);
  });

  it('gives the same lines however the bytes come', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: ANY_CHARACTER }).map((text) => text.replaceAll('\n', ' '))),
        fc.infiniteStream(fc.integer({ min: 1, max: 7 })),
        (texts, sizes) => {
          const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(''));
          const chunks: Buffer[] = [];
          for (let start = 0; start < bytes.length; ) {
            const size = sizes.next().value ?? 1;
            chunks.push(bytes.subarray(start, start + size));
            start += size;
          }
          const whole = split(bytes);
          expect(split(...chunks)).toEqual(whole);
          expect(whole).toEqual(
            texts.map((text) => Buffer.from(text).toString()).filter((text) => text.trim() !== ''),
          );
        },
      ),
    );
  });

  it('keeps what it has of a line when the buffer is used again', () => {
    const lines = new NumberedLines();
    const buffer = Buffer.from('begun');
    expect([...lines.push(buffer)]).toEqual([]);
    buffer.fill('x');
    expect([...lines.push(Buffer.from(' and ended\n'))]).toEqual([{ number: 1, text: 'begun and ended' }]);
  });

  it('leaves out the text of lines that are longer than 1 MiB, and goes on behind them', () => {
    const fits = 'f'.repeat(MAX_LINE_BYTES);
    expect(split(`before\n${fits}x\nafter\n`)).toEqual(['before', undefined, 'after']);
    expect(split('before\n', ...Array(5).fill(fits), '\nafter\n', fits, 'x')).toEqual([
      'before',
      undefined,
      'after',
      undefined,
    ]);
    expect(split(fits, '\n', fits)).toEqual([fits, fits]);
  });

  it('holds no more than a line of what never ends', async () => {
    const lines = new NumberedLines();
    const chunk = Buffer.alloc(MAX_LINE_BYTES);
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const before = process.memoryUsage().arrayBuffers;
    for (let mebibytes = 0; mebibytes < 200; mebibytes += 1) {
      expect([...lines.push(chunk)]).toEqual([]);
    }
    // What is collected is given back a moment later.
    const held = () => {
      collectGarbage();
      return process.memoryUsage().arrayBuffers - before;
    };
    await expect.poll(held).toBeLessThan(5 * MAX_LINE_BYTES);
    expect([...lines.end()]).toEqual([{ number: 1, text: undefined }]);
  });
});
