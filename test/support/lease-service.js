/** A lease service that embeds the library, and responds like the policy service: it starts twice as fast. */
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';

// The built library, as in all separate processes.
const { UsageEnforcement } = await import(new URL('../../dist/src/index.js', import.meta.url).href);
const enforcement = await UsageEnforcement.load({ configFiles: [process.argv[2] ?? ''] });
const hooks = {
  '/check-create': (body, idempotencyKey) => enforcement.checkCreate(body, { idempotencyKey }),
  '/check-update': (body) => enforcement.checkUpdate(body),
  '/on-end': (body) => enforcement.onEnd(body),
};

const server = createServer(async (request, response) => {
  const { allowed = true, message } = await hooks[request.url ?? ''](
    await json(request),
    request.headers['idempotency-key'],
  );
  response.writeHead(allowed ? 204 : 403).end(allowed ? undefined : JSON.stringify({ message }));
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`Listening on http://127.0.0.1:${server.address().port}\n`);
});
