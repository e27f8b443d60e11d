/** The lines of a watch, one JSON object each, and the meaning of failures. */
import { errorText } from '../../../base/errors.ts';
import { GrowingBuffer } from '../../../base/growing-buffer.ts';
import { valueAt } from '../../../base/yaml/tree.ts';
import { statusError } from './connections.ts';
import { ApiError, ApiUnreachableError, type RestartReason, type WatchEvent } from './contract.ts';
import { isApiObject, isExpired } from './list.ts';

/** etcd stores objects of at most 1.5 MB; some are smaller there, in binary. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;

const TYPES: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED']);
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The events of a watch, however it is chunked. @throws ApiError for an ERROR event
 * @throws ApiUnreachableError for other content
 */
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
  const type = valueAt(value, ['type']);
  const object = valueAt(value, ['object']);
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

/** Without line feeds; the rest after the last one comes last. @throws ApiUnreachableError for a longer line */
async function* linesOf(chunks: AsyncIterable<Uint8Array>, maxLineBytes: number): AsyncGenerator<Buffer> {
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
    // In UTF-8, a line feed is never part of another character.
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

/** Why objects cannot be followed, for `/readyz` and the log. Without account names, which not everyone may read. */
export function problemWords(
  thrown: unknown,
  path: string,
  server: string,
  hints: { readonly notFound?: string; readonly forbidden?: string },
): string {
  const resource = path.split('/').at(-1) ?? path;
  if (!(thrown instanceof ApiError)) {
    return errorText(thrown);
  }
  switch (thrown.status) {
    case 401:
      return `${server} does not accept the credentials (401)`;
    case 403:
      return `${server}: the account may not list and watch ${resource}${hint(hints.forbidden)}`;
    case 404:
      return `${server} does not know ${resource}${hint(hints.notFound)}`;
    default:
      return `${server} refuses to list or watch ${resource}: ${thrown.status} ${thrown.reason}`;
  }
}

function hint(words: string | undefined): string {
  return words === undefined ? '' : `: ${words}`;
}

export class SilentError extends Error {}

export function reasonOf(thrown: unknown): RestartReason {
  return thrown instanceof SilentError ? 'silent' : isExpired(thrown) ? 'expired' : 'failed';
}

/** Versions are etcd's numbers; others cannot be compared. */
export function isOlder(one: string, other: string): boolean {
  return /^\d{1,20}$/.test(one) && /^\d{1,20}$/.test(other) && BigInt(one) < BigInt(other);
}
