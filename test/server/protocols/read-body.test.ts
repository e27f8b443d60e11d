import { once } from 'node:events';
import { type ClientRequest, createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { readBody } from '../../../src/server/protocols/read-body.ts';

/** What comes of reading a request that was sent with a part of its body; `receive` has it read. */
function outcome(receive: (received: IncomingMessage, read: () => void, sent: ClientRequest) => void) {
  return new Promise<string>((settle) => {
    let sent: ClientRequest;
    const server = createServer((received) => {
      const read = () =>
        void readBody(received, 1000, () => {}).then(
          () => settle('resolved'),
          (thrown: unknown) => settle(String(thrown)),
        );
      receive(received, read, sent);
    });
    onTestFinished(() => void server.close());
    server.listen(0, '127.0.0.1');
    void once(server, 'listening').then(() => {
      const { port } = server.address() as AddressInfo;
      sent = request({ port, host: '127.0.0.1', method: 'POST', headers: { 'content-length': '10' } });
      sent.on('error', () => {});
      sent.write('half');
    });
  });
}

it('rejects for a request that is given up in the middle of its body, without an error of its own', async () => {
  const read = outcome((received, read) => {
    read();
    received.destroy();
  });
  expect(await read).toBe('Error: the connection was closed');
});

it('rejects for a request that was given up before its body is read', async () => {
  const read = outcome((received, read, sent) => {
    received.once('close', read);
    sent.destroy();
  });
  expect(await read).toBe('Error: the connection was closed');
});
