/** A client that sends requests without reading the responses. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { openRaw } from './raw-http.ts';
import { runService } from './running-service.ts';

export const ASK = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n';

export async function stalledClient(setup?: Parameters<typeof runService>[0]) {
  const accepted: Socket[] = [];
  const onSocket = (message: unknown) => accepted.push((message as { socket: Socket }).socket);
  subscribe('net.server.socket', onSocket);
  onTestFinished(() => void unsubscribe('net.server.socket', onSocket));
  const running = await runService(setup);
  const size = Buffer.byteLength((await running.request('/openapi.json')).text);
  const stalled = await openRaw(running.port);
  stalled.socket.pause();
  return { running, size, stalled, ofService: () => accepted.at(-1) };
}
