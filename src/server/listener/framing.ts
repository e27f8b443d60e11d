import type { IncomingMessage } from 'node:http';

/**
 * Whether a proxy may have read the same bytes as another request: two `Host` headers, or a `Transfer-Encoding` other than `chunked`.
 * Node accepts both; RFC 9112 does not (3.2, 6.1).
 */
export function isAmbiguous({
  rawHeaders,
  headers,
  httpVersionMajor,
  httpVersionMinor,
}: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  if (coding !== undefined) {
    const isOld = httpVersionMajor === 1 && httpVersionMinor === 0;
    if (isOld || coding.toLowerCase() !== 'chunked') {
      return true;
    }
  }
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') {
      hosts += 1;
    }
  }
  return hosts > 1;
}

/**
 * Whether the target of a request is a path, `*`, or a whole URL without a user. Node hands on any text, and readers of URLs throw for some.
 * Source: RFC 9112, 3.2.
 */
export function isTarget(url: string): boolean {
  return (
    url.startsWith('/') || url === '*' || (/^https?:\/\/[^/?#@]+([/?#]|$)/i.test(url) && URL.canParse(url))
  );
}
