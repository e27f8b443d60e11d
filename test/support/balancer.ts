/** A load balancer without stickiness: each request goes to the next of its services. */
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** `urls`: of the services; may be changed. Returns the URL of the balancer. */
export async function startBalancer(urls: readonly string[]): Promise<string> {
  let turn = 0;
  const server = createServer((asked, answer) => {
    turn += 1;
    const { method, headers } = asked;
    const upstream = request(`${urls[turn % urls.length]}${asked.url}`, { method, headers, agent: false });
    upstream.on('response', (response) => {
      answer.writeHead(response.statusCode ?? 502, response.rawHeaders);
      response.pipe(answer);
    });
    upstream.on('error', ({ message }) => {
      if (answer.headersSent) {
        answer.destroy();
      } else {
        answer.writeHead(502).end(message);
      }
    });
    answer.on('close', () => upstream.destroy());
    asked.pipe(upstream);
  });
  // Prevents requests on a connection that is being closed.
  server.keepAliveTimeout = 600_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
