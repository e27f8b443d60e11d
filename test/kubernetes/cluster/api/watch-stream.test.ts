import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ApiError,
  ApiUnreachableError,
  type WatchEvent,
} from '../../../../src/kubernetes/cluster/api/contract.ts';
import { watchEvents } from '../../../../src/kubernetes/cluster/api/watch-stream.ts';

async function* inChunks(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let start = 0;
  for (const size of sizes) {
    yield bytes.subarray(start, start + size);
    start += size;
  }
  yield bytes.subarray(start);
}

/** The events, and what ended them. */
async function read(bytes: string | Uint8Array, sizes: readonly number[] = [], max?: number) {
  const events: WatchEvent[] = [];
  try {
    for await (const event of watchEvents(inChunks(Buffer.from(bytes), sizes), max)) {
      events.push(event);
    }
    return { events };
  } catch (error) {
    return { events, error };
  }
}

const event = (name: string, type = 'ADDED') => ({
  type,
  object: { metadata: { name, resourceVersion: '1' } },
});
const line = (value: unknown) => `${JSON.stringify(value)}\n`;

/** One byte to four in UTF-8, what JSON escapes, and half of a pair. */
const LETTERS = fc.constantFrom('a', 'ä', '€', '😀', '"', '\n', '\u0000', '\ud83d');

describe('the events of a watch', () => {
  it('are the same however the bytes arrive', async () => {
    const names = fc.array(fc.string({ unit: LETTERS, minLength: 1, maxLength: 5 }), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(names, fc.array(fc.nat({ max: 20 }), { maxLength: 20 }), async (some, sizes) => {
        const events = some.map((name) => event(name));
        const read_ = await read(events.map(line).join(''), sizes);
        // Halves of surrogate pairs are escaped by JSON, and survive.
        expect(read_).toEqual({ events });
      }),
      { numRuns: 40 },
    );
  });

  it('end with an error where they are cut off, whatever came before', async () => {
    const whole = Buffer.from(line(event('ä')) + line(event('b')));
    const first = Buffer.byteLength(line(event('ä')));
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: whole.length - 2 }), async (length) => {
        const { events, error } = await read(whole.subarray(0, length));
        expect(events).toHaveLength(length >= first - 1 ? 1 : 0);
        expect(error instanceof ApiUnreachableError).toBe(length !== first && length !== first - 1);
      }),
    );
  });

  it('may be bookmarks, which have no name', async () => {
    const bookmark = { type: 'BOOKMARK', object: { metadata: { resourceVersion: '7' } } };
    expect(await read(line(bookmark))).toEqual({ events: [bookmark] });
  });

  it('skip empty lines', async () => {
    expect(await read(`\n${line(event('a'))}\r\n`)).toEqual({ events: [event('a')] });
  });

  it('end with the error that the API server sends', async () => {
    const object = {
      kind: 'Status',
      code: 410,
      reason: 'Expired',
      message: 'too old resource version: 1 (5)',
    };
    const { events, error } = await read(
      line(event('a')) + line({ type: 'ERROR', object }) + line(event('b')),
    );
    expect(events).toEqual([event('a')]);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({
      status: 410,
      reason: 'Expired',
      message: 'too old resource version: 1 (5)',
    });
  });

  it.each([
    ['an error without a Status', '{"type":"ERROR"}', { name: 'ApiError', status: 500 }],
    ['HTML', '<html>', { name: 'ApiUnreachableError' }],
    ['an event of an unknown type', line(event('a', 'RENAMED')), { name: 'ApiUnreachableError' }],
    ['an event that inherits its type', '{"__proto__":{"type":"ADDED"}}', { name: 'ApiUnreachableError' }],
    [
      'an object without a name',
      '{"type":"ADDED","object":{"metadata":{}}}',
      { name: 'ApiUnreachableError' },
    ],
    [
      'a generation that is a text',
      '{"type":"ADDED","object":{"metadata":{"name":"a","generation":"1"}}}',
      {},
    ],
    [
      'bytes that are not UTF-8',
      Buffer.from('{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}', 'latin1'),
      {},
    ],
    ['a JSON value that is too deep for its line', '['.repeat(100_000), {}],
  ])('end with an error at %s', async (_name, bytes, error) => {
    const answer = await read(bytes);
    expect(answer.events).toEqual([]);
    expect(answer.error).toMatchObject({ message: expect.any(String), ...error });
  });

  it('are bounded in length, with and without an end', async () => {
    const long = line(event('a'.repeat(200)));
    expect((await read(long, [], 100)).error).toMatchObject({
      message: 'an event of the watch is longer than 100 bytes',
    });
    expect((await read(long.trim(), [50, 60], 100)).error).toBeInstanceOf(ApiUnreachableError);
    expect((await read(line(event('a')).repeat(10), [300], 100)).events).toHaveLength(10);
  });
});
