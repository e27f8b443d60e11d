/** What an estimate answers about a change of a lease: the difference to what it is charged, and what would be allowed instead. */
import { describe, expect, it } from 'vitest';
import type { Lease, UpdateRequest } from '../../../src/index.ts';
import { hours, onLedger } from '../../filters/on-ledger.ts';
import { change, hosts, lasting, withBudgets } from '../../filters/usage-budgets.ts';
import { filterSource } from '../../support/filter-folder.ts';

const BOTH = { enabled: ['MaxLeasesFilter', 'UsageBudgetFilter'] };
/** Ten hours from 9 on. */
const DATES = { start_date: '2026-12-01T09:00:00', end_date: '2026-12-01T19:00:00' };
const LEASE = lasting(10, { ...DATES, reservations: [hosts(2, { min: 2 })] });
const until = (end: string, more: Lease = {}): UpdateRequest =>
  change(LEASE, { ...DATES, end_date: end, reservations: LEASE.lease.reservations ?? [], ...more });

describe('the estimate of a change', () => {
  it('has the difference to what the lease is charged, and what is left after it', async () => {
    const { enforcement } = await withBudgets(['100'], { max_leases_per_project: 1 }, BOTH);
    await enforcement.checkCreate(LEASE);
    const longer = await enforcement.estimate(until('2026-12-02T19:00:00'));
    expect(longer.decision).toMatchObject({ allowed: true, operation: 'update' });
    expect(longer.charges.filter(({ limit }) => limit !== null)).toEqual([
      {
        filter: 'MaxLeasesFilter',
        account: 'max_leases/project',
        kind: 'held',
        precision: 'exact',
        amount: 0n,
        limit: 1n,
        taken: 1n,
        left: 0n,
      },
      {
        filter: 'UsageBudgetFilter',
        account: expect.stringMatching(/^usage_budget\/\d+$/),
        kind: 'usage',
        precision: 'exact',
        amount: hours('48'),
        limit: hours('100'),
        taken: hours('20'),
        left: hours('32'),
      },
    ]);
    const shorter = await enforcement.estimate(until('2026-12-01T14:00:00'));
    expect(shorter.charges.at(-1)).toMatchObject({ amount: -hours('10'), left: hours('90') });
    const fewer = await enforcement.estimate(until(DATES.end_date, { reservations: [hosts(1, { min: 1 })] }));
    expect(fewer.charges.at(-1)).toMatchObject({ amount: -hours('10'), left: hours('90') });
  });

  it('charges a lease that has begun for the time that is to come', async () => {
    let now = '2026-11-21T09:00:30Z';
    const { enforcement } = await withBudgets(['100'], {}, { now: () => now });
    await enforcement.checkCreate(LEASE);
    now = '2026-12-01T13:00:00Z';
    const more = until(DATES.end_date, { reservations: [hosts(4, { min: 4 })] });
    const { charges } = await enforcement.estimate(more);
    // Two hosts more for six hours: four hours are over.
    expect(charges).toMatchObject([{ amount: hours('12'), taken: hours('20'), left: hours('68') }]);
  });

  it('gives back to the budget that the lease no longer takes from', async () => {
    const { enforcement } = await withBudgets([
      { amount: '100', from: '2026-01-01', until: '2027-01-01' },
      { amount: '100', from: '2027-01-01', until: '2028-01-01' },
    ]);
    await enforcement.checkCreate(LEASE);
    const { charges } = await enforcement.estimate(
      until('2027-02-01T19:00:00', { start_date: '2027-02-01T09:00:00' }),
    );
    expect(charges.map(({ filter, amount, left }) => [filter, amount, left])).toEqual([
      ['UsageBudgetFilter', hours('20'), hours('80')],
      ['UsageBudgetFilter', -hours('20'), hours('100')],
    ]);
  });

  it('says that it is about right where a filter sees less than what the lease costs', async () => {
    const { enforcement } = await withBudgets(['1000'], {
      usage_budget_rates: { 'flavor:instance': 1 },
      usage_budget_flavor_rates: { large: 4 },
    });
    const instances = { id: 'r', resource_type: 'flavor:instance', amount: 2 };
    const large = lasting(10, { ...DATES, reservations: [{ ...instances, flavor_id: 'large' }] });
    await enforcement.checkCreate(large);
    const end_date = '2026-12-01T20:00:00';
    const seen = change(large, { ...DATES, end_date, reservations: large.lease.reservations ?? [] });
    expect((await enforcement.estimate(seen)).charges).toMatchObject([
      { precision: 'exact', amount: hours('8') },
    ]);
    const unseen = { ...seen, currentLease: { ...seen.currentLease, reservations: [instances] } };
    const { charges } = await enforcement.estimate({
      ...unseen,
      lease: { ...unseen.lease, reservations: [instances] },
    });
    expect(charges).toMatchObject([{ precision: 'about' }]);
  });

  it('takes the current lease under either of its names, and a change without what stays', async () => {
    const { enforcement } = await withBudgets(['100']);
    await enforcement.checkCreate(LEASE);
    const { context, currentLease: current_lease } = until('');
    const wire = { context, current_lease, lease: { end_date: '2026-12-05T19:00:00' } };
    const { decision, suggestions } = await enforcement.estimate(wire as unknown as UpdateRequest);
    expect(decision).toMatchObject({ allowed: false, operation: 'update' });
    expect(suggestions).toMatchObject([
      { change: 'shorter', lease: { start_date: DATES.start_date, end_date: '2026-12-03T11:00:00' } },
    ]);
  });
});

describe('a change that is refused', () => {
  it('is not suggested as the lease that is there, nor as less than that where more was asked for', async () => {
    const { enforcement } = await withBudgets(['20']);
    await enforcement.checkCreate(LEASE);
    const { decision, suggestions, searched } = await enforcement.estimate(until('2026-12-02T09:00:00'));
    expect([decision.allowed, suggestions]).toEqual([false, []]);
    expect(searched).toContain('Looked for two of these changes at once, and found none.');
    const { enforcement: richer } = await withBudgets(['26']);
    await richer.checkCreate(LEASE);
    expect((await richer.estimate(until('2026-12-02T09:00:00'))).suggestions).toMatchObject([
      { change: 'shorter', lease: { end_date: '2026-12-01T22:00:00' } },
    ]);
  });

  it('keeps the start of a lease that has begun, and ends after now', async () => {
    let now = '2026-11-21T09:00:30Z';
    const { enforcement } = await onLedger({
      enabled: ['RangeFilter'],
      files: {
        RangeFilter: filterSource('RangeFilter', {
          update: `
            const late = newLease.start_date !== currentLease.start_date;
            return late || newLease.end_date < '2026-12-01T14' ? allow() : reject('shorter, or later');`,
        }),
      },
      now: () => now,
    });
    const suggested = async () => (await enforcement.estimate(until('2026-12-01T18:00:00'))).suggestions;
    expect(await suggested()).toMatchObject([{ change: 'later' }, { change: 'shorter' }]);
    now = '2026-12-01T13:00:00Z';
    expect(await suggested()).toMatchObject([
      { change: 'shorter', lease: { end_date: '2026-12-01T13:59:00' } },
    ]);
    now = '2026-12-01T14:00:00Z';
    expect(await suggested()).toEqual([]);
  });
});
