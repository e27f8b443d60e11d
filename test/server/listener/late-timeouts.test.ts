import { once } from 'node:events';
import { connect, createServer, Socket } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { LateTimeouts } from '../../../src/server/listener/connections.ts';
import { listen } from '../../support/listening.ts';

/** A connection, and the timeouts that are really set. */
function watched() {
  const set = vi.fn();
  const socket = new Socket();
  socket.setTimeout = (milliseconds) => {
    set(milliseconds);
    Object.assign(socket, { timeout: milliseconds });
    return socket;
  };
  socket.setTimeout(1000);
  set.mockClear();
  const timeouts = new LateTimeouts();
  timeouts.add(socket);
  return { socket, set };
}

it('sets the last of several timeouts, a moment later', () => {
  vi.useFakeTimers();
  const { socket, set } = watched();
  socket.setTimeout(7000);
  socket.setTimeout(9000);
  expect(set).not.toHaveBeenCalled();
  vi.advanceTimersByTime(250);
  expect(set.mock.calls).toEqual([[9000]]);
  socket.setTimeout(8000);
  vi.advanceTimersByTime(250);
  expect(set.mock.calls).toEqual([[9000], [8000]]);
});

it('sets nothing if it is again what it was', () => {
  vi.useFakeTimers();
  const { socket, set } = watched();
  socket.setTimeout(7000);
  socket.setTimeout(1000);
  vi.advanceTimersByTime(1000);
  expect(set).not.toHaveBeenCalled();
});

it('tells of a connection on which nothing moves for so long', async () => {
  const timeouts = new LateTimeouts();
  let outcome: string | undefined;
  const server = createServer((socket) => {
    timeouts.add(socket);
    socket.setTimeout(50, () => {
      outcome = 'timeout';
      socket.destroy();
    });
  });
  const client = connect((await listen(server)).port, '127.0.0.1');
  onTestFinished(() => void client.destroy());
  await once(client, 'close');
  expect(outcome).toBe('timeout');
});
