import { expect, it, onTestFinished, vi } from 'vitest';
import { Listeners } from '../../../../src/server/console/live/listeners.ts';
import { member } from '../../served-generation.ts';

it.each([
  [10_000, false],
  [10_001, true],
])('of %i projects that change at once, all members are notified: %s', (count, isNotified) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const listeners = new Listeners();
  onTestFinished(() => listeners.close());
  const caller = member('alice', { last: false });
  const stream = listeners.open({
    caller,
    key: 'browser',
    identity: 'alice',
    isStillThere: async () => true,
    askEvery: 60_000,
  });
  for (let index = 0; index < count; index += 1) {
    listeners.changed(`project ${index}`);
  }
  listeners.changed(count > 10_000 ? 'last' : 'project 0');
  vi.advanceTimersByTime(500);
  expect(String(stream?.read()).includes('event: change')).toBe(isNotified);
});
