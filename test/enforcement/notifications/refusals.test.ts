import { beforeEach, expect, it, vi } from 'vitest';
import type { Refusals, Refused } from '../../../src/enforcement/notifications/events.ts';
import { MergedRefusals } from '../../../src/enforcement/notifications/notifications.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

const refused = (changes: Partial<Refused> = {}): Refused => ({
  time: new Date().toISOString(),
  project_id: 'climate',
  user_id: 'alice',
  filter: 'MaxLeasesFilter',
  request_id: 'req-1',
  operation: 'create',
  outcome: 'rejected',
  message: 'Too many.',
  lease_id: null,
  lease_name: 'run',
  ...changes,
});

function merging() {
  const told: Refusals[] = [];
  return { told, refusals: new MergedRefusals((one) => told.push(structuredClone(one))) };
}

it('tells the first refusal at once, and those of a minute together', () => {
  const { told, refusals } = merging();
  for (let second = 0; second < 180; second += 1) {
    for (let one = 0; one < 1000; one += 1) {
      refusals.add(refused({ request_id: `req-${second}` }));
    }
    vi.advanceTimersByTime(1000);
  }
  expect(told.map(({ count }) => count)).toEqual([1, 59_999, 60_000, 60_000]);
  expect(told[1]?.last.request_id).toBe('req-59');
  vi.advanceTimersByTime(120_000);
  expect(told).toHaveLength(4);
  refusals.add(refused());
  expect(told).toHaveLength(5);
});

it('tells projects, users and filters apart', () => {
  const { told, refusals } = merging();
  for (let turn = 0; turn < 2; turn += 1) {
    refusals.add(refused());
    refusals.add(refused({ project_id: 'ocean' }));
    refusals.add(refused({ user_id: 'bob' }));
    refusals.add(refused({ filter: 'UsageBudgetFilter' }));
  }
  expect(told).toHaveLength(4);
});

it('tells of more than a hundred of them as of one, and keeps no more in memory', () => {
  const { told, refusals } = merging();
  for (let user = 0; user < 5000; user += 1) {
    refusals.add(refused({ user_id: `user-${user}` }));
  }
  expect(told).toHaveLength(100);
  vi.advanceTimersByTime(60_000);
  expect(told).toHaveLength(101);
  expect(told[100]).toMatchObject({ isMixed: true, count: 4900 });
});

it('tells the rest when it is closed, and keeps no timer', () => {
  const { told, refusals } = merging();
  refusals.add(refused());
  refusals.add(refused());
  refusals.close();
  expect(told.map(({ count }) => count)).toEqual([1, 1]);
  expect(vi.getTimerCount()).toBe(0);
});
