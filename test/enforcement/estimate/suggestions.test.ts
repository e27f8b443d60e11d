/** What an estimate suggests instead of a lease that is refused. */
import { describe, expect, it } from 'vitest';
import type { CreateRequest, Lease, UsageEnforcement } from '../../../src/index.ts';
import { onLedger } from '../../filters/on-ledger.ts';
import { hosts, lasting, withBudgets } from '../../filters/usage-budgets.ts';
import { filterSource } from '../../support/filter-folder.ts';
import { notes } from '../chain.ts';

/** `change: end, start or count that is different`. */
async function suggested(enforcement: UsageEnforcement, request: CreateRequest): Promise<string[]> {
  const { suggestions } = await enforcement.estimate(request);
  return suggestions.map(({ change, lease }) => {
    const [one] = lease.reservations ?? [];
    return `${change}: ${String(lease.start_date)} to ${String(lease.end_date)}, ${one?.max ?? one?.amount}`;
  });
}

const DAYS: Lease = {
  start_date: '2026-12-01 09:00',
  end_date: '2026-12-11 09:00',
  reservations: [hosts(4)],
};

describe('a lease that is too dear', () => {
  it('fits with an earlier end, rounded down to the minute, or with fewer hosts', async () => {
    const { enforcement } = await withBudgets(['500.01']);
    // 500.01 of four hosts are 125 hours and 9 seconds.
    expect(await suggested(enforcement, lasting(0, DAYS))).toEqual([
      'shorter: 2026-12-01 09:00 to 2026-12-06 14:00, 4',
      'smaller: 2026-12-01 09:00 to 2026-12-11 09:00, 2',
    ]);
  });

  it('fits when the next budget begins, which is the nearest start', async () => {
    const { enforcement } = await withBudgets([
      { amount: '1', from: '2026-11-01', until: '2027-01-01' },
      { amount: '5000', from: '2027-01-01', until: '2028-01-01' },
    ]);
    const [only, ...others] = (await enforcement.estimate(lasting(0, DAYS))).suggestions;
    expect(others).toEqual([]);
    expect(only).toMatchObject({
      change: 'later',
      text: 'Start on 2026-12-31 at 23:45 UTC and end on 2027-01-10 at 23:45 UTC: as long, but later.',
      lease: { ...DAYS, name: 'run', start_date: '2026-12-31 23:45', end_date: '2027-01-10 23:45' },
    });
    // A quarter of an hour of four hosts is left of the old one.
    expect(only?.charges.map(({ left }) => left)).toEqual([0n, 4041n * 3_600_000_000n]);
  });

  it('fits up to the end of the validity, where there is no budget behind it', async () => {
    const { enforcement } = await withBudgets([{ amount: '5000', from: '2026-11-01', until: '2026-12-05' }]);
    expect(await suggested(enforcement, lasting(0, DAYS))).toEqual([
      'shorter: 2026-12-01 09:00 to 2026-12-05 00:00, 4',
    ]);
  });

  it('keeps min, and is not made smaller than it', async () => {
    const { enforcement } = await withBudgets(['250']);
    const reservations = [{ ...hosts(4), min: 2 }];
    expect(await suggested(enforcement, lasting(100, { reservations }))).toEqual(
      [
        'smaller: 2026-12-01T09:00:00.000Z to 2026-12-05T13:00:00.000Z, 2',
        'shorter: 2026-12-01T09:00:00.000Z to 2026-12-03T23:30:00Z, 4',
      ].sort((a, b) => (a < b ? -1 : 1)),
    );
    const { suggestions } = await enforcement.estimate(
      lasting(100, { reservations: [{ ...hosts(4), min: 3 }] }),
    );
    expect(suggestions.map(({ change }) => change)).toEqual(['shorter']);
  });

  it('fits with less of the reservation that loses the least, and else with less of all', async () => {
    const { enforcement } = await withBudgets(['100'], {
      usage_budget_rates: { 'physical:host': 1, 'virtual:instance': 0.5 },
    });
    const both = (instances: number) => [hosts(4), { resource_type: 'virtual:instance', amount: instances }];
    const of = async (instances: number) => {
      const { suggestions } = await enforcement.estimate(lasting(10, { reservations: both(instances) }));
      return suggestions.find(({ change }) => change === 'smaller')?.text;
    };
    expect(await of(14)).toBe('Ask for at most 3 instead of 4 of physical:host.');
    expect(await of(30)).toBe('Ask for at most 12 instead of 30 of virtual:instance.');
    const { enforcement: poor } = await withBudgets(['25']);
    const hostsTwice = [hosts(8, { id: 'a' }), hosts(6, { id: 'b' })];
    const { suggestions } = await poor.estimate(lasting(10, { reservations: hostsTwice }));
    expect(suggestions.map(({ text }) => text)).toEqual([
      'End on 2026-12-01 at 10:47 UTC instead of 2026-12-01 at 19:00 UTC.',
      'Ask for at most 1 instead of 8 of physical:host, 1 instead of 6 of physical:host.',
    ]);
  });
});

describe('a lease against the rules', () => {
  it('ends where the longest duration ends', async () => {
    const { enforcement } = await onLedger({
      enabled: ['MaxLeaseDurationFilter'],
      options: { max_lease_duration: 172_830 },
    });
    expect(await suggested(enforcement, lasting(0, DAYS))).toEqual([
      'shorter: 2026-12-01 09:00 to 2026-12-03 09:00, 4',
    ]);
  });

  it('starts after now, with time to ask for it', async () => {
    const { enforcement } = await onLedger({
      enabled: ['LeaseDatesFilter'],
      options: { lease_dates_earliest_start: '+3600' },
    });
    const soon = lasting(0, {
      start_date: '2026-11-21 09:01',
      end_date: '2026-11-21 11:01',
      reservations: [],
    });
    expect(await suggested(enforcement, soon)).toEqual([
      'later: 2026-11-21 10:15 to 2026-11-21 12:15, undefined',
    ]);
  });

  it('is found although only some of what is nearer is allowed', async () => {
    const rule = `
      const hours = (Date.parse(lease.end_date) - Date.parse(lease.start_date)) / 3600000;
      return hours <= 48 && hours >= 20 ? allow() : reject('from 20 to 48 hours');`;
    const { enforcement } = await onLedger({
      enabled: ['RangeFilter'],
      files: { RangeFilter: filterSource('RangeFilter', { create: rule }) },
    });
    expect(await suggested(enforcement, lasting(240))).toEqual([
      'shorter: 2026-12-01T09:00:00.000Z to 2026-12-03T09:00:00Z, 1',
    ]);
  });

  it('gets no suggestion where there is none, and reads what was looked for', async () => {
    const { enforcement } = await onLedger({
      enabled: ['MaxLeasesFilter'],
      options: { max_leases_per_project: 0 },
    });
    const { suggestions, searched } = await enforcement.estimate(lasting(0, DAYS));
    expect(suggestions).toEqual([]);
    expect(searched).toBe(
      'Looked for the nearest lease that is shorter (at least 60 minutes, or less if less was asked for), smaller (not below min, and at least 1) or later (by up to 366 days). Found none that is shorter. Found none that is smaller. Found none that is later. Looked for two of these changes at once, and found none.',
    );
  });

  it('is not searched for where a filter fails', async () => {
    const { enforcement } = await onLedger({
      enabled: ['MaxLeaseDurationFilter', 'BrokenFilter'],
      options: { max_lease_duration: 60 },
      files: { BrokenFilter: filterSource('BrokenFilter', { create: "throw new Error('x');" }) },
    });
    expect(await enforcement.estimate(lasting(10))).toMatchObject({
      suggestions: [],
      searched: 'A filter could not decide, so nothing else was looked for.',
    });
  });

  it('ignores filters that are only tried', async () => {
    const { enforcement } = await onLedger({
      enabled: ['MaxLeaseDurationFilter', 'MaxReservationSizeFilter'],
      options: {
        audit_filters: ['MaxReservationSizeFilter'],
        max_lease_duration: 3600,
        max_reservation_size: { 'physical:host': 1 },
      },
    });
    expect(await suggested(enforcement, lasting(0, DAYS))).toEqual([
      'shorter: 2026-12-01 09:00 to 2026-12-01 10:00, 4',
    ]);
  });
});

describe('a lease for which one change is not enough', () => {
  const LIMITS = {
    enabled: ['MaxLeaseDurationFilter', 'MaxReservationSizeFilter'],
    options: { max_lease_duration: 172_800, max_reservation_size: { 'physical:host': 3 } },
  };

  it('fits with two, each as small as it may be', async () => {
    const { enforcement } = await onLedger(LIMITS);
    const { suggestions, searched } = await enforcement.estimate(lasting(0, DAYS));
    expect(suggestions).toMatchObject([
      {
        change: 'smaller-shorter',
        text: 'Ask for at most 3 instead of 4 of physical:host. End on 2026-12-03 at 09:00 UTC instead of 2026-12-11 at 09:00 UTC.',
        lease: { ...DAYS, end_date: '2026-12-03 09:00', reservations: [hosts(3)] },
      },
    ]);
    expect(searched).toMatch(/Found none that is later\. Looked for two of these changes at once\.$/);
  });

  it('fits later and shorter, or later and smaller', async () => {
    const { enforcement } = await onLedger({
      ...LIMITS,
      enabled: [...LIMITS.enabled, 'LeaseDatesFilter'],
      options: {
        max_lease_duration: 172_800,
        lease_dates_earliest_start: '2026-12-24 00:00',
        max_reservation_size: { 'physical:host': 3 },
      },
    });
    expect(await suggested(enforcement, lasting(0, { ...DAYS, reservations: [hosts(2)] }))).toEqual([
      'shorter-later: 2026-12-24 00:00 to 2026-12-26 00:00, 2',
    ]);
    expect(await suggested(enforcement, lasting(0, { ...DAYS, end_date: '2026-12-02 09:00' }))).toEqual([
      'smaller-later: 2026-12-24 00:00 to 2026-12-25 00:00, 3',
    ]);
  });

  it('is asked of filters a bounded number of times', async () => {
    const calls = notes();
    const create = 'notes.push(lease); return reject("never");';
    const { enforcement } = await onLedger({
      enabled: ['CountingFilter'],
      files: { CountingFilter: filterSource('CountingFilter', { create }) },
    });
    const { suggestions } = await enforcement.estimate(lasting(0, DAYS));
    expect(suggestions).toEqual([]);
    expect(calls.length).toBeLessThanOrEqual(241);
    expect(calls.length).toBeGreaterThan(50);
  });
});
