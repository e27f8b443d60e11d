/**
 * Responses of policy services as bytes: real, valid and invalid ones. Each with the result in Blazar's own
 * ExternalServiceFilter (recorded from acc44dc with requests 2.28 and urllib3 1.26; a proof repeats it), and
 * in ours.
 */
import { gzipSync } from 'node:zlib';

/** `yes` = allowed; `no: …` = refused with this message; `broken` = an unusable response. */
export type Outcome = 'yes' | `no: ${string}` | 'broken';

export interface RawAnswer {
  readonly name: string;
  readonly bytes: Buffer;
  readonly blazar: Outcome;
  readonly ours: Outcome;
}

const BLAZAR_DENIES: Outcome = 'no: External service enforcement filter denied the request.';
const WE_DENY: Outcome = 'no: The external service denied the request.';

/** A head, optionally with a body. */
const raw = (lines: readonly string[], body: string | Buffer = ''): Buffer =>
  Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), Buffer.from(body)]);

const withLength = (status: string, body: string | Buffer, ...lines: string[]) =>
  raw([`HTTP/1.1 ${status}`, `Content-Length: ${Buffer.byteLength(body)}`, ...lines], body);

const YES = raw(['HTTP/1.1 204 No Content']);
const CREDITS = '{"message":"Account has sufficient resources to fufill request"}';
const DENIED = '{"message":"Too long."}';
const JSON_TYPE = 'Content-Type: application/json';

export const RAW_ANSWERS: readonly RawAnswer[] = [
  { name: '204', bytes: YES, blazar: 'yes', ours: 'yes' },
  {
    name: '204 with Content-Length: 0',
    bytes: withLength('204 No Content', ''),
    blazar: 'yes',
    ours: 'yes',
  },
  {
    name: '204 with a body and its length, as Django writes it',
    bytes: withLength('204 No Content', CREDITS, JSON_TYPE),
    blazar: 'yes',
    ours: 'yes',
  },
  {
    name: '204 with the length of a body that never comes',
    bytes: raw(['HTTP/1.1 204 No Content', 'Content-Length: 2']),
    blazar: 'yes',
    ours: 'yes',
  },
  {
    name: '204 with a chunked body',
    bytes: raw(['HTTP/1.1 204 No Content', 'Transfer-Encoding: chunked'], '3\r\nyes\r\n0\r\n\r\n'),
    blazar: 'yes',
    ours: 'yes',
  },
  {
    name: '204 with an empty chunked body',
    bytes: raw(['HTTP/1.1 204 No Content', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
    blazar: 'yes',
    ours: 'yes',
  },
  {
    name: '204 with a body of no announced length',
    bytes: raw(['HTTP/1.1 204 No Content'], CREDITS),
    blazar: 'yes',
    ours: 'yes',
  },
  {
    name: '204 with a packed body',
    bytes: withLength('204 No Content', gzipSync(CREDITS), 'Content-Encoding: gzip'),
    blazar: 'yes',
    ours: 'yes',
  },
  {
    name: '204 that another answer follows on',
    bytes: Buffer.concat([YES, withLength('403 Forbidden', DENIED)]),
    blazar: 'yes',
    ours: 'yes',
  },
  {
    name: '204 of HTTP/1.0',
    bytes: raw(['HTTP/1.0 204 No Content']),
    blazar: 'yes',
    ours: 'yes',
  },
  { name: '204 without a reason', bytes: raw(['HTTP/1.1 204']), blazar: 'yes', ours: 'yes' },
  {
    name: '204 with two lengths',
    bytes: raw(['HTTP/1.1 204 No Content', 'Content-Length: 0', 'Content-Length: 2']),
    blazar: 'broken',
    ours: 'broken',
  },
  {
    name: '204 with a length and chunks',
    bytes: raw(['HTTP/1.1 204 No Content', 'Content-Length: 2', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
    blazar: 'yes',
    ours: 'broken',
  },
  {
    name: '204 with a length that is no number',
    bytes: raw(['HTTP/1.1 204 No Content', 'Content-Length: none']),
    blazar: 'yes',
    ours: 'broken',
  },
  {
    name: '204 with lines that end in LF alone',
    bytes: Buffer.from('HTTP/1.1 204 No Content\n\n'),
    blazar: 'yes',
    ours: 'broken',
  },
  {
    name: '204 behind 100 Continue',
    bytes: Buffer.concat([raw(['HTTP/1.1 100 Continue']), YES]),
    blazar: 'yes',
    ours: 'broken',
  },
  {
    name: '204 behind 103 Early Hints',
    bytes: Buffer.concat([raw(['HTTP/1.1 103 Early Hints', 'Link: </a>']), YES]),
    blazar: BLAZAR_DENIES,
    ours: 'yes',
  },
  { name: '200', bytes: withLength('200 OK', '{"allowed":true}'), blazar: BLAZAR_DENIES, ours: 'broken' },
  { name: '200 without a body', bytes: withLength('200 OK', ''), blazar: BLAZAR_DENIES, ours: 'broken' },
  {
    name: '205 Reset Content',
    bytes: withLength('205 Reset Content', ''),
    blazar: BLAZAR_DENIES,
    ours: 'broken',
  },
  {
    name: '403 with a message',
    bytes: withLength('403 Forbidden', DENIED),
    blazar: 'no: Too long.',
    ours: 'no: Too long.',
  },
  {
    name: '403 with a message, and a charset',
    bytes: withLength('403 Forbidden', '{"message":"Zu lang für Zürich."}', `${JSON_TYPE}; charset=utf-8`),
    blazar: 'no: Zu lang für Zürich.',
    ours: 'no: Zu lang für Zürich.',
  },
  {
    name: '403 with a message, in chunks',
    bytes: raw(
      ['HTTP/1.1 403 Forbidden', 'Transfer-Encoding: chunked'],
      `${DENIED.length.toString(16)}\r\n${DENIED}\r\n0\r\n\r\n`,
    ),
    blazar: 'no: Too long.',
    ours: 'no: Too long.',
  },
  {
    name: '403 with a message, packed although nobody asked',
    bytes: withLength('403 Forbidden', gzipSync(DENIED), 'Content-Encoding: gzip'),
    blazar: 'no: Too long.',
    ours: WE_DENY,
  },
  {
    name: '403 with a message in Latin-1',
    bytes: withLength('403 Forbidden', Buffer.from('{"message":"für"}', 'latin1'), JSON_TYPE),
    blazar: 'no: f\ufffdr',
    ours: 'no: f\ufffdr',
  },
  {
    name: '403 without a body',
    bytes: withLength('403 Forbidden', ''),
    blazar: BLAZAR_DENIES,
    ours: WE_DENY,
  },
  {
    name: '403 in HTML',
    bytes: withLength('403 Forbidden', '<h1>Forbidden</h1>', 'Content-Type: text/html'),
    blazar: BLAZAR_DENIES,
    ours: WE_DENY,
  },
  {
    name: '403 that says error, as coral-credits does',
    bytes: withLength('403 Forbidden', '{"error":"InsufficientCredits()"}'),
    blazar: BLAZAR_DENIES,
    ours: WE_DENY,
  },
  { name: '403 with a list', bytes: withLength('403 Forbidden', '["no"]'), blazar: 'broken', ours: WE_DENY },
  {
    name: '403 with a message that is no text',
    bytes: withLength('403 Forbidden', '{"message":null}'),
    blazar: 'no: %(message)s',
    ours: WE_DENY,
  },
  {
    name: '403 that breaks off',
    bytes: raw(['HTTP/1.1 403 Forbidden', 'Content-Length: 100'], DENIED),
    blazar: 'no: Too long.',
    ours: 'broken',
  },
  { name: '401', bytes: withLength('401 Unauthorized', DENIED), blazar: BLAZAR_DENIES, ours: 'broken' },
  { name: '500', bytes: withLength('500 Internal', DENIED), blazar: BLAZAR_DENIES, ours: 'broken' },
  {
    name: '503',
    bytes: withLength('503 Service Unavailable', DENIED),
    blazar: BLAZAR_DENIES,
    ours: 'broken',
  },
  { name: 'nothing', bytes: Buffer.alloc(0), blazar: 'broken', ours: 'broken' },
  { name: 'what is no HTTP', bytes: Buffer.from('204 yes\r\n'), blazar: 'broken', ours: 'broken' },
];
