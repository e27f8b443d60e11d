import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineSplitter, MAX_LINE_BYTES } from '../../src/decisions/lines.ts';

/** The lines of these chunks, and how many were too long. */
function split(...chunks: (string | Uint8Array)[]): { lines: string[]; tooLong: number } {
  const splitter = new LineSplitter();
  const lines = chunks.flatMap((chunk) => splitter.push(Buffer.from(chunk as string)));
  lines.push(...splitter.end());
  return { lines, tooLong: splitter.tooLong };
}

describe('LineSplitter', () => {
  it('gives each line when its end is there, and the last one when there will be none', () => {
    const splitter = new LineSplitter();
    expect(splitter.push(Buffer.from('one\ntw'))).toEqual(['one']);
    expect(splitter.push(Buffer.from('o'))).toEqual([]);
    expect(splitter.push(Buffer.from('\nthree\nfo'))).toEqual(['two', 'three']);
    expect(splitter.end()).toEqual(['fo']);
    expect(splitter.end()).toEqual([]);
  });

  it('gives the same lines however the bytes come', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\n', ' '))),
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
          expect(whole.lines).toEqual(
            texts.map((text) => Buffer.from(text).toString()).filter((text) => text !== ''),
          );
        },
      ),
    );
  });

  it('keeps what it has of a line when the buffer is used again', () => {
    const splitter = new LineSplitter();
    const buffer = Buffer.from('begun');
    splitter.push(buffer);
    buffer.fill('x');
    expect(splitter.push(Buffer.from(' and ended\n'))).toEqual(['begun and ended']);
  });

  it('leaves out and counts lines that are longer than 1 MiB, and goes on behind them', () => {
    const fits = 'f'.repeat(MAX_LINE_BYTES);
    expect(split(`before\n${fits}x\nafter\n`)).toEqual({ lines: ['before', 'after'], tooLong: 1 });
    expect(split('before\n', ...Array(5).fill(fits), '\nafter\n', fits, 'x')).toEqual({
      lines: ['before', 'after'],
      tooLong: 2,
    });
    expect(split(fits, '\n', fits)).toEqual({ lines: [fits, fits], tooLong: 0 });
  });

  it('holds no more than a line of what never ends', () => {
    const splitter = new LineSplitter();
    const chunk = Buffer.alloc(1024 * 1024);
    const before = process.memoryUsage().arrayBuffers;
    for (let mebibytes = 0; mebibytes < 200; mebibytes += 1) {
      splitter.push(chunk);
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100 * 1024 * 1024);
    expect(splitter.end()).toEqual([]);
    expect(splitter.tooLong).toBe(1);
  });
});
