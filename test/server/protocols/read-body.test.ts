import { once } from 'node:events';
import { type ClientRequest, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { readBody } from '../../../src/server/protocols/read-body.ts';

it('rejects for a request that is given up in the middle of its body, without an error of its own', async () => {
  const read = new Promise<string>((settle) => {
    const server = createServer((received) => {
      readBody(received, 1000).then(
        () => settle('resolved'),
        (thrown: unknown) => settle(String(thrown)),
      );
      received.destroy();
    });
    onTestFinished(() => void server.close());
    server.listen(0, '127.0.0.1');
    void once(server, 'listening').then(() => {
      const { port } = server.address() as AddressInfo;
      const sent = request({ port, host: '127.0.0.1', method: 'POST', headers: { 'content-length': '10' } });
      sent.on('error', () => {});
      sent.write('half');
    });
  });
  expect(await read).toBe('Error: the connection was closed');
});

it('rejects for a request that was given up before its body is read', async () => {
  const read = new Promise<string>((settle) => {
    const server = createServer((received) => {
      received.once('close', () => {
        readBody(received, 1000).then(
          () => settle('resolved'),
          (thrown: unknown) => settle(String(thrown)),
        );
      });
      sent.destroy();
    });
    onTestFinished(() => void server.close());
    server.listen(0, '127.0.0.1');
    let sent: ClientRequest;
    void once(server, 'listening').then(() => {
      const { port } = server.address() as AddressInfo;
      sent = request({ port, host: '127.0.0.1', method: 'POST', headers: { 'content-length': '4' } });
      sent.on('error', () => {});
      sent.write('full');
    });
  });
  expect(await read).toBe('Error: the connection was closed');
});
