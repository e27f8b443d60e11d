/** The lines of a watch as they come: one JSON object each. */
import { GrowingBuffer } from '../../../base/growing-buffer.ts';
import { isMapping, member } from '../../../yaml/tree.ts';
import { statusError } from './answers.ts';
import { ApiUnreachableError, type WatchEvent } from './contract.ts';
import { isApiObject } from './objects.ts';

/** etcd takes no object beyond 1.5 MB; some are stored as smaller binary. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;

const TYPES: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED']);
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The events of a watch, whatever the chunks. @throws ApiError for an ERROR event @throws ApiUnreachableError for other content */
export async function* watchEvents(
  chunks: AsyncIterable<Uint8Array>,
  maxLineBytes = MAX_LINE_BYTES,
): AsyncGenerator<WatchEvent> {
  for await (const line of linesOf(chunks, maxLineBytes)) {
    yield* eventOf(line);
  }
}

function* eventOf(line: Uint8Array): Generator<WatchEvent> {
  let value: unknown;
  try {
    const text = utf8.decode(line).trim();
    if (text === '') {
      return;
    }
    value = JSON.parse(text);
  } catch {
    throw new ApiUnreachableError('an event of the watch is not whole JSON');
  }
  const type = isMapping(value) ? member(value, 'type') : undefined;
  const object = isMapping(value) ? member(value, 'object') : undefined;
  if (type === 'ERROR') {
    throw statusError(object, 500);
  }
  if (type === 'BOOKMARK' && isApiObject(object, 'nameless')) {
    yield { type, object };
    return;
  }
  if (!TYPES.has(type) || !isApiObject(object)) {
    throw new ApiUnreachableError('an event of the watch is not one of an API server');
  }
  yield { type: type as WatchEvent['type'], object };
}

/** Lines of a stream, whatever its chunks. Not `node:readline`, which also ends lines where JSON has none, such as at U+2028. */
const LINE_FEED = 0x0a;

/** Without line feeds; what stands after the last one comes last. @throws ApiUnreachableError for a longer line */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  maxLineBytes: number,
): AsyncGenerator<Buffer> {
  let begun = new GrowingBuffer();
  const add = (part: Uint8Array) => {
    if (begun.length + part.length > maxLineBytes) {
      throw new ApiUnreachableError(`an event of the watch is longer than ${maxLineBytes} bytes`);
    }
    begun.push(part);
  };
  const line = () => {
    const whole = begun.bytes;
    begun = new GrowingBuffer();
    return whole;
  };
  for await (const chunk of chunks) {
    let start = 0;
    // A line feed is no part of another character in UTF-8.
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      yield line();
    }
    if (start < chunk.length) {
      add(chunk.subarray(start));
    }
  }
  yield line();
}
