import { beforeEach, expect, it, vi } from 'vitest';
import { Progress } from '../../../src/cli/common/progress.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  vi.stubEnv('TERM', 'xterm');
});

function terminal(columns = 80) {
  const written: string[] = [];
  return { isTTY: true, columns, written, write: (text: string) => written.push(text) };
}

it('shows share, count and rate, five times a second, and removes the line', () => {
  const screen = terminal();
  const progress = new Progress('leases', 4000, screen);
  for (let done = 1; done <= 1000; done += 1) {
    vi.advanceTimersByTime(1);
    progress.show(done);
  }
  progress.end();
  expect(screen.written).toEqual([
    '\r\x1b[K[##                      ]  10 %  400 leases, 1,000/s',
    '\r\x1b[K[###                     ]  15 %  600 leases, 1,000/s',
    '\r\x1b[K[####                    ]  20 %  800 leases, 1,000/s',
    '\r\x1b[K[######                  ]  25 %  1,000 leases, 1,000/s',
    '\r\x1b[K',
  ]);
});

it('fits into a narrow terminal, and has no bar without a total', () => {
  const screen = terminal(12);
  const progress = new Progress('pods', undefined, screen);
  vi.advanceTimersByTime(1000);
  progress.show(123_456);
  progress.end();
  expect(screen.written).toEqual(['\r\x1b[K123,456 pod', '\r\x1b[K']);
});

it('leaves out the bar where a terminal has no room for it, before the numbers', () => {
  const screen = terminal(20);
  const progress = new Progress('leases', 4000, screen);
  vi.advanceTimersByTime(1000);
  progress.show(1000);
  screen.columns = 60;
  vi.advanceTimersByTime(1000);
  progress.show(2000);
  progress.end();
  expect(screen.written).toEqual([
    '\r\x1b[K 25 %  1,000 leases',
    '\r\x1b[K[############            ]  50 %  2,000 leases, 1,000/s',
    '\r\x1b[K',
  ]);
});

it('leaves nothing for work that is over at once, and no listeners for signals', () => {
  const before = process.listenerCount('SIGINT');
  const screen = terminal();
  const progress = new Progress('leases', 10, screen);
  vi.advanceTimersByTime(300);
  progress.show(5);
  progress.end();
  expect(screen.written).toEqual([]);
  vi.advanceTimersByTime(300);
  progress.show(6);
  expect(process.listenerCount('SIGINT')).toBe(before + 1);
  progress.end();
  expect(process.listenerCount('SIGINT')).toBe(before);
});
