/** Compares the service's response to a request with a direct call of the chain. */
import { Readable } from 'node:stream';
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import type { Pool } from 'undici';
import {
  type CreateRequest,
  type EndRequest,
  InvalidRequestError,
  type UpdateRequest,
  type UsageEnforcement,
} from '../../src/index.ts';
import { IS_CHANGING } from '../../src/lease/lease.ts';
import { type FuzzedRequest, JSON_TYPES, PLAIN_PATHS } from './requests.ts';

interface Answer {
  readonly status: number;
  /** `undefined` if there is none. */
  readonly json: unknown;
}

/** The service's body limit. */
const MAX_BYTES = 8 * 1024 * 1024;

/** Statuses for requests that are rejected before the operation. */
const UNREAD = [400, 413, 415];
const ELSEWHERE = [...UNREAD, 404, 405, 501];

/** Resolves if the response is acceptable; otherwise rejects with request and response. */
export async function judge(
  pool: Pool,
  enforcement: UsageEnforcement,
  request: FuzzedRequest,
): Promise<void> {
  const { operation, method, path, headers, body } = request;
  const direct = await ask(enforcement, request);
  const answer = await send(pool, request);
  const asDirect =
    method === 'POST' &&
    direct !== undefined &&
    answer.status === direct.status &&
    JSON.stringify(answer.json) === JSON.stringify(direct.json);
  const there = method === 'POST' && PLAIN_PATHS.some((folder) => path === folder + operation);
  const plain = there && direct !== undefined && JSON_TYPES.includes(headers['content-type'] ?? '');
  // Requests with an unusual type, path or method may be rejected unread.
  const refused =
    (there ? UNREAD : ELSEWHERE).includes(answer.status) || (method === 'OPTIONS' && answer.status === 200);
  // Whether a change is refused because of another one depends on the moment.
  const isChanging = [answer, direct].some((one) => JSON.stringify(one?.json)?.includes(IS_CHANGING));
  if (!(asDirect || isChanging || (!plain && refused))) {
    const expected = direct === undefined ? 'a refusal' : JSON.stringify(direct);
    throw new Error(
      `expected ${expected}, got ${JSON.stringify(answer)} for ${method} ${path} ${JSON.stringify(headers)} ${body.toString('base64')}`,
    );
  }
}

/** The decision of the chain about the body; `undefined` if it is not JSON. */
async function ask(
  enforcement: UsageEnforcement,
  { operation, headers, body }: FuzzedRequest,
): Promise<Answer | undefined> {
  let request: unknown;
  try {
    const bytes = unpacked(body, headers['content-encoding']);
    request = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
  try {
    if (operation === 'on-end') {
      await enforcement.onEnd(request as EndRequest);
      return { status: 204, json: undefined };
    }
    const { allowed, message } =
      operation === 'check-create'
        ? await enforcement.checkCreate(request as CreateRequest)
        : await enforcement.checkUpdate(request as UpdateRequest);
    return allowed ? { status: 204, json: undefined } : { status: 403, json: { message } };
  } catch (thrown) {
    if (thrown instanceof InvalidRequestError) {
      return { status: 400, json: { message: thrown.message, field: thrown.field } };
    }
    throw thrown;
  }
}

function unpacked(body: Buffer, encoding = 'identity'): Buffer {
  const bound = { maxOutputLength: MAX_BYTES };
  switch (encoding) {
    case 'identity':
      return body;
    case 'gzip':
      return gunzipSync(body, bound);
    case 'deflate':
      return inflateSync(body, bound);
    case 'br':
      return brotliDecompressSync(body, bound);
    default:
      throw new Error(`unknown encoding ${encoding}`);
  }
}

async function send(pool: Pool, { method, path, headers, body, chunked }: FuzzedRequest): Promise<Answer> {
  const answer = await pool.request({
    method,
    path,
    headers,
    body: chunked ? Readable.from(body.length === 0 ? [] : [body]) : body,
  });
  const text = await answer.body.text();
  return { status: answer.statusCode, json: text === '' ? undefined : JSON.parse(text) };
}
