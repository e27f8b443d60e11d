import { beforeEach, expect, it, vi } from 'vitest';
import { now } from '../../src/decisions/lease-record.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

it('tells the time as a date does, whichever second came before', () => {
  const times = [
    '2026-11-23T09:47:05.000Z',
    '2026-11-23T09:47:05.007Z',
    '2026-11-23T09:47:05.070Z',
    '2026-11-23T09:47:05.070Z',
    '2026-11-23T09:47:05.999Z',
    '2026-11-23T09:47:06.999Z',
    '2026-12-31T23:59:59.999Z',
    '2027-01-01T00:00:00.000Z',
    '2026-11-23T09:47:05.123Z',
  ];
  for (const time of times) {
    vi.setSystemTime(time);
    expect(now()).toBe(time);
  }
});
