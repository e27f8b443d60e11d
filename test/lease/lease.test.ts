import { describe, expect, it } from 'vitest';
import { formatInstant, toInstant } from '../../src/index.ts';
import { endInBlazar } from '../../src/lease/lease.ts';

const DATE = '2026-12-02T00:00:00Z';
const LATER = '2026-12-05T00:00:00Z';
const event = (status: string, time: unknown = LATER, event_type = 'end_lease') => ({
  event_type,
  status,
  time,
});

describe('endInBlazar', () => {
  it.each<[string, string, unknown, string]>([
    ['of a lease as it should be', 'active', [event('UNDONE', DATE)], DATE],
    ['of an event that comes later', 'active', [event('UNDONE')], LATER],
    ['of an event that comes later', 'error', [event('UNDONE', '2026-12-05 00:00:00.000000')], LATER],
    ['of an event that runs', 'active', [event('IN_PROGRESS')], LATER],
    ['of the last of several events', 'active', [event('UNDONE'), event('UNDONE', DATE)], LATER],
    ['of an event that comes earlier', 'active', [event('UNDONE', '2026-12-01T12:00:00Z')], DATE],
    ['of an event that is done', 'active', [event('DONE')], DATE],
    ['of an event that has failed', 'active', [event('ERROR')], DATE],
    ['of another event', 'active', [event('UNDONE', LATER, 'before_end_lease')], DATE],
    ['of a lease that has not started', 'pending', [event('UNDONE')], DATE],
    ['of a lease that has ended', 'deleted', [event('UNDONE')], DATE],
    ['of events that cannot be read', 'active', [null, 'end_lease', event('UNDONE', null), {}], DATE],
    ['of a lease without events', 'active', undefined, DATE],
  ])('is that %s (%s): %j', (_, status, events, expected) => {
    const reservations = [{ status: 'pending' }, { status }];
    const end = endInBlazar(toInstant(DATE) ?? 0n, { events, reservations });
    expect(formatInstant(end)).toBe(expected);
  });
});
