/**
 * Responses of policy services as bytes: real, valid and invalid ones. Each with the result in Blazar's own
 * ExternalServiceFilter (recorded from acc44dc with requests 2.28 and urllib3 1.26; a proof repeats it), and
 * in ours.
 */
import { gzipSync } from 'node:zlib';

/** `yes` = allowed; `no: …` = refused with this message; `broken` = an unusable response. */
export type Outcome = 'yes' | `no: ${string}` | 'broken';

interface RawAnswer {
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

/** Name, bytes, the result in Blazar, and in ours where that is another one. */
const ROWS: readonly (readonly [name: string, bytes: Buffer, blazar: Outcome, ours?: Outcome])[] = [
  ['204', YES, 'yes'],
  ['204 with Content-Length: 0', withLength('204 No Content', ''), 'yes'],
  [
    '204 with a body and its length, as Django writes it',
    withLength('204 No Content', CREDITS, JSON_TYPE),
    'yes',
  ],
  [
    '204 with the length of a body that never comes',
    raw(['HTTP/1.1 204 No Content', 'Content-Length: 2']),
    'yes',
  ],
  [
    '204 with a chunked body',
    raw(['HTTP/1.1 204 No Content', 'Transfer-Encoding: chunked'], '3\r\nyes\r\n0\r\n\r\n'),
    'yes',
  ],
  [
    '204 with an empty chunked body',
    raw(['HTTP/1.1 204 No Content', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
    'yes',
  ],
  ['204 with a body of no announced length', raw(['HTTP/1.1 204 No Content'], CREDITS), 'yes'],
  [
    '204 with a packed body',
    withLength('204 No Content', gzipSync(CREDITS), 'Content-Encoding: gzip'),
    'yes',
  ],
  ['204 that another answer follows on', Buffer.concat([YES, withLength('403 Forbidden', DENIED)]), 'yes'],
  ['204 of HTTP/1.0', raw(['HTTP/1.0 204 No Content']), 'yes'],
  ['204 without a reason', raw(['HTTP/1.1 204']), 'yes'],
  [
    '204 with two lengths',
    raw(['HTTP/1.1 204 No Content', 'Content-Length: 0', 'Content-Length: 2']),
    'broken',
  ],
  [
    '204 with a length and chunks',
    raw(['HTTP/1.1 204 No Content', 'Content-Length: 2', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
    'yes',
    'broken',
  ],
  [
    '204 with a length that is no number',
    raw(['HTTP/1.1 204 No Content', 'Content-Length: none']),
    'yes',
    'broken',
  ],
  ['204 with lines that end in LF alone', Buffer.from('HTTP/1.1 204 No Content\n\n'), 'yes', 'broken'],
  ['204 behind 100 Continue', Buffer.concat([raw(['HTTP/1.1 100 Continue']), YES]), 'yes', 'broken'],
  [
    '204 behind 103 Early Hints',
    Buffer.concat([raw(['HTTP/1.1 103 Early Hints', 'Link: </a>']), YES]),
    BLAZAR_DENIES,
    'yes',
  ],
  ['200', withLength('200 OK', '{"allowed":true}'), BLAZAR_DENIES, 'broken'],
  ['200 without a body', withLength('200 OK', ''), BLAZAR_DENIES, 'broken'],
  ['205 Reset Content', withLength('205 Reset Content', ''), BLAZAR_DENIES, 'broken'],
  ['403 with a message', withLength('403 Forbidden', DENIED), 'no: Too long.'],
  [
    '403 with a message, and a charset',
    withLength('403 Forbidden', '{"message":"Zu lang für Zürich."}', `${JSON_TYPE}; charset=utf-8`),
    'no: Zu lang für Zürich.',
  ],
  [
    '403 with a message, in chunks',
    raw(
      ['HTTP/1.1 403 Forbidden', 'Transfer-Encoding: chunked'],
      `${DENIED.length.toString(16)}\r\n${DENIED}\r\n0\r\n\r\n`,
    ),
    'no: Too long.',
  ],
  [
    '403 with a message, packed although nobody asked',
    withLength('403 Forbidden', gzipSync(DENIED), 'Content-Encoding: gzip'),
    'no: Too long.',
    WE_DENY,
  ],
  [
    '403 with a message in Latin-1',
    withLength('403 Forbidden', Buffer.from('{"message":"für"}', 'latin1'), JSON_TYPE),
    'no: f\ufffdr',
  ],
  ['403 without a body', withLength('403 Forbidden', ''), BLAZAR_DENIES, WE_DENY],
  [
    '403 in HTML',
    withLength('403 Forbidden', '<h1>Forbidden</h1>', 'Content-Type: text/html'),
    BLAZAR_DENIES,
    WE_DENY,
  ],
  [
    '403 that says error, as coral-credits does',
    withLength('403 Forbidden', '{"error":"InsufficientCredits()"}'),
    BLAZAR_DENIES,
    WE_DENY,
  ],
  ['403 with a list', withLength('403 Forbidden', '["no"]'), 'broken', WE_DENY],
  [
    '403 with a message that is no text',
    withLength('403 Forbidden', '{"message":null}'),
    'no: %(message)s',
    WE_DENY,
  ],
  ['403 that breaks off', raw(['HTTP/1.1 403 Forbidden', 'Content-Length: 100'], DENIED), 'no: Too long.'],
  [
    '403 of more than 64 KiB',
    withLength('403 Forbidden', JSON.stringify({ message: `${'x'.repeat(65_536)} is too long.` })),
    `no: ${'x'.repeat(65_536)} is too long.`,
    WE_DENY,
  ],
  ['401', withLength('401 Unauthorized', DENIED), BLAZAR_DENIES, 'broken'],
  ['500', withLength('500 Internal', DENIED), BLAZAR_DENIES, 'broken'],
  ['503', withLength('503 Service Unavailable', DENIED), BLAZAR_DENIES, 'broken'],
  ['nothing', Buffer.alloc(0), 'broken'],
  ['what is no HTTP', Buffer.from('204 yes\r\n'), 'broken'],
];

export const RAW_ANSWERS: readonly RawAnswer[] = ROWS.map(([name, bytes, blazar, ours = blazar]) => ({
  name,
  bytes,
  blazar,
  ours,
}));
