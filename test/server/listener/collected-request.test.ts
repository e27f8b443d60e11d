import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { CollectedRequest } from '../../../src/server/listener/connections.ts';
import { listen } from '../../support/listening.ts';

/** A connection to a server that has such requests. */
async function connected(
  heard: (request: CollectedRequest, response: ServerResponse) => void,
): Promise<Socket> {
  const { port } = await listen(createServer({ IncomingMessage: CollectedRequest }, heard));
  const socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

const head = (length: number) => `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n`;
const answerWith = (response: ServerResponse, text: string) => response.end(text);

function settled<Value>() {
  let resolve: (value: Value) => void = () => {};
  const promise = new Promise<Value>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

async function received(socket: Socket, text: string): Promise<void> {
  let all = '';
  socket.on('data', (chunk) => {
    all += chunk;
  });
  await expect.poll(() => all).toContain(text);
}

it('has a body that comes in one part, in several, and none', async () => {
  let parts = 0;
  const socket = await connected((request, response) => {
    const { push } = request;
    request.push = (part: Buffer | null) => {
      parts += 1;
      return push.call(request, part);
    };
    void request.collect()?.then((bytes) => {
      expect(request.complete).toBe(true);
      answerWith(response, `got <${bytes}>`);
    });
  });
  socket.write(`${head(4)}full`);
  await received(socket, 'got <full>');
  parts = 0;
  socket.write(`${head(10)}one,`);
  await expect.poll(() => parts).toBe(1);
  socket.write('two');
  await expect.poll(() => parts).toBe(2);
  socket.write(',.\n');
  await received(socket, 'got <one,two,.\n>');
  socket.write(head(0));
  await received(socket, 'got <>');
});

it('rejects if the client goes away before the end', async () => {
  const outcome = settled<string>();
  const socket = await connected((request) => {
    request.collect()?.then(
      (bytes) => outcome.resolve(`got ${bytes}`),
      (thrown: unknown) => outcome.resolve(`rejected: ${thrown instanceof Error && thrown.message}`),
    );
    socket.destroy();
  });
  socket.write(`${head(10)}half`);
  expect(await outcome.promise).toMatch(/^rejected: (aborted|the connection was closed)$/);
});

it('is a stream like any other until then, and has no body to collect when some of it is in the stream', async () => {
  const socket = await connected((request, response) => {
    request.once('readable', () => {
      expect(request.collect()).toBeUndefined();
      let text = '';
      request.on('data', (chunk) => {
        text += chunk;
      });
      request.on('end', () => answerWith(response, `streamed <${text}>`));
    });
  });
  socket.write(`${head(4)}full`);
  await received(socket, 'streamed <full>');
});

it('has no body to collect when the client has gone', async () => {
  const outcome = settled<unknown>();
  const socket = await connected((request) => {
    request.once('close', () => outcome.resolve(request.collect()));
    socket.destroy();
  });
  socket.write(`${head(10)}half`);
  expect(await outcome.promise).toBeUndefined();
});
