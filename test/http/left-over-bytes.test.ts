/** Bytes after an answer must never be read as the next answer: a no to one lease would become a yes. */
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { HttpClient } from '../../src/http/contract.ts';
import { loadLibraries, newClient, type Service, startTcpService } from '../support/services.ts';

const SOON = { timeout: 120_000, interval: 5 };

beforeAll(loadLibraries, 60_000);

const json = '{}';
const YES = 'HTTP/1.1 204 No Content\r\n\r\n';
const NO = 'HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n';
/** Long enough for a client to have read what was written before. */
const LATER_MS = 20;

/** Says yes with `head` to the very first request and no to all others. Sends `behind` on the first connection, at the given time. */
async function deceitful(head: string, behind: string, when: 'at once' | 'while idle' | 'with the next') {
  const perSocket = new Map<Socket, number>();
  const service = await startTcpService((socket) => {
    const isFirst = perSocket.size === 0;
    perSocket.set(socket, 0);
    socket.on('data', async () => {
      const requests = (perSocket.get(socket) ?? 0) + 1;
      perSocket.set(socket, requests);
      if (!isFirst) {
        socket.write(NO);
      } else if (requests > 1) {
        socket.write(when === 'with the next' ? behind + NO : NO);
      } else if (when === 'at once') {
        socket.write(head + behind);
      } else {
        socket.write(head);
        if (when === 'while idle') {
          await pause(LATER_MS);
          socket.write(behind);
        }
      }
    });
  });
  return { ...service, requestsPerConnection: () => [...perSocket.values()] };
}

/** One call after the other; `between` is awaited after the first. */
async function statuses(url: string, count: number, between: () => Promise<unknown>): Promise<number[]> {
  const client: HttpClient = newClient();
  const found: number[] = [];
  for (let call = 0; call < count; call += 1) {
    found.push((await client.postJson(url, json)).status);
    // The connection is idle again, and would be reused for the next call.
    await (call === 0 ? between() : pause(LATER_MS));
  }
  return found;
}

/** Waits until the client has closed the first connection. */
const givenUp = ({ sockets: [first] }: Service) =>
  vi.waitFor(() => expect(first?.destroyed).toBe(true), SOON);

describe.each(['at once', 'while idle', 'with the next'] as const)('a yes behind a yes, %s', (when) => {
  it.each([
    ['of an announced length', `HTTP/1.1 204 No Content\r\nContent-Length: ${YES.length}\r\n\r\n`, YES],
    [
      'in chunks',
      'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n',
      `${YES.length.toString(16)}\r\n${YES}\r\n0\r\n\r\n`,
    ],
    ['in broken chunks', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n', YES],
  ])('is not the answer to the next call: %s', async (_name, head, behind) => {
    const service = await deceitful(head, behind, when);
    const between = () => (when === 'with the next' ? pause(LATER_MS) : givenUp(service));
    expect(await statuses(service.url, 3, between)).toEqual([204, 403, 403]);
    expect(service.requestsPerConnection()[0]).toBe(1);
  });
});

describe.each(['at once', 'while idle'] as const)('unannounced bytes, %s', (when) => {
  it.each([
    ['a yes', YES],
    ['a body', '{"message":"yes"}'],
  ])('are not the answer to the next call: %s', async (_name, behind) => {
    const service = await deceitful('HTTP/1.1 204 No Content\r\n\r\n', behind, when);
    expect(await statuses(service.url, 2, () => givenUp(service))).toEqual([204, 403]);
    expect(service.requestsPerConnection()[0]).toBe(1);
  });

  it('end the reuse of connections to that service', async () => {
    const service = await deceitful('HTTP/1.1 204 No Content\r\n\r\n', 'more', when);
    expect(await statuses(service.url, 4, () => givenUp(service))).toEqual([204, 403, 403, 403]);
    expect(service.requestsPerConnection().filter((count) => count > 0)).toEqual([1, 1, 1, 1]);
  });
});

it('a connection without left-over bytes is reused', async () => {
  const service = await deceitful('HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n', '', 'at once');
  expect(await statuses(service.url, 3, () => pause(LATER_MS))).toEqual([204, 403, 403]);
  expect(service.requestsPerConnection()).toEqual([3]);
});
