/** Responses of a broken or hostile server. */
import type { ServerResponse } from 'node:http';

/** Responds at once with these arguments. */
export const sends =
  (body: string, status = 200, headers: Readonly<Record<string, string>> = {}) =>
  (response: ServerResponse) =>
    void response.writeHead(status, headers).end(body);

/** A beginning, then a byte every 50 ms, endlessly. */
export function drips(
  response: ServerResponse,
  beginning: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(200, headers).write(beginning);
  const dripping = setInterval(() => response.write(' '), 50);
  response.on('close', () => clearInterval(dripping));
}

/** Less than the announced length, then the connection ends. */
export function endsEarly(response: ServerResponse, beginning: string): void {
  response.writeHead(200, { 'content-length': '5000' }).write(beginning);
  setImmediate(() => response.destroy());
}

/** 100 MiB of zeros, as fast as they are read. */
export function hugely(response: ServerResponse): void {
  const piece = ' '.repeat(4 * 1024 * 1024);
  let sent = 0;
  const more = () => {
    while (!response.destroyed && sent < 25) {
      sent += 1;
      if (!response.write(piece)) {
        return;
      }
    }
    response.end();
  };
  response.writeHead(200).on('drain', more);
  more();
}
