/** A load balancer without stickiness: each request goes to the next of its services. */
import { createServer, request } from 'node:http';
import { listen } from './listening.ts';

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
  return `http://127.0.0.1:${(await listen(server)).port}`;
}
