import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A server on 127.0.0.1 that is gone when the test is over, with all its connections. `port` 0 = any. */
export async function listen(server: Server, port = 0) {
  const sockets: Socket[] = [];
  server.on('connection', (socket) => sockets.push(socket));
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const stop = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) {
      socket.destroy();
    }
    await closed;
  };
  onTestFinished(stop);
  return { port: (server.address() as AddressInfo).port, sockets, stop };
}
