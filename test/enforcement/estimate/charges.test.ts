/** What an estimate answers about the lease itself: the verdict of every filter, and what it would take. */
import { describe, expect, it } from 'vitest';
import { hours, onLedger } from '../../filters/on-ledger.ts';
import { hosts, lasting, withBudgets } from '../../filters/usage-budgets.ts';

const BOTH = { enabled: ['MaxLeasesFilter', 'UsageBudgetFilter'] };

describe('the estimate of a lease', () => {
  it('has what it takes from each account, and what is left after it', async () => {
    const { enforcement } = await withBudgets(['100'], { max_leases_per_project: 3 }, BOTH);
    await enforcement.checkCreate(lasting(10));
    const { decision, charges, suggestions, searched } = await enforcement.estimate(lasting(20));
    expect(decision).toMatchObject({ allowed: true, operation: 'create' });
    expect([suggestions, searched]).toEqual([[], null]);
    expect(charges.filter(({ limit }) => limit !== null)).toEqual([
      {
        filter: 'MaxLeasesFilter',
        account: 'max_leases/project',
        kind: 'held',
        amount: 1n,
        precision: 'exact',
        limit: 3n,
        taken: 1n,
        left: 1n,
      },
      {
        filter: 'UsageBudgetFilter',
        account: expect.stringMatching(/^usage_budget\/\d+$/),
        kind: 'usage',
        precision: 'exact',
        amount: hours('20'),
        limit: hours('100'),
        taken: hours('10'),
        left: hours('70'),
      },
    ]);
    expect(charges.find(({ account }) => account === 'max_leases/user/alice')).toMatchObject({
      limit: null,
      left: null,
      taken: 1n,
    });
  });

  it('has them for a lease that is refused, too, and the answer of every filter', async () => {
    const { enforcement } = await withBudgets(['10'], { max_leases_per_project: 0 }, BOTH);
    const { decision, charges } = await enforcement.estimate(lasting(12));
    expect(decision.outcomes.map(({ allowed }) => allowed)).toEqual([false, false]);
    expect(charges.filter(({ left }) => (left ?? 0n) < 0n).map(({ left }) => left)).toEqual([
      -1n,
      hours('10') - hours('12'),
    ]);
  });

  it.each([
    ['at-most', [{ ...hosts(3) }], {}],
    ['exact', [{ ...hosts(1) }], {}],
    [
      'exact',
      [{ resource_type: 'virtual:instance', amount: 3 }],
      { usage_budget_rates: { 'virtual:instance': 1 } },
    ],
    ['about', [hosts(1)], { usage_budget_rate_attribute: 'su_factor' }],
    ['at-most', [hosts(1)], { usage_budget_rate_attribute: 'su_factor', usage_budget_rate_attribute_max: 4 }],
  ])('says that the cost is %s for %j with %j', async (precision, reservations, options) => {
    const { enforcement } = await withBudgets(['1000'], options);
    const { charges } = await enforcement.estimate(lasting(10, { reservations }));
    expect(charges).toHaveLength(1);
    expect(charges[0]).toMatchObject({ precision });
  });

  it('charges nothing to a project that is exempt', async () => {
    const { enforcement } = await withBudgets(['1'], { exempt_projects: ['climate'] });
    const { decision, charges, suggestions, searched } = await enforcement.estimate(lasting(10));
    expect(decision).toMatchObject({ allowed: true, exempt: true });
    expect([charges, suggestions, searched]).toEqual([[], [], null]);
  });

  it('is that of a failed check where a filter breaks', async () => {
    const { enforcement } = await withBudgets(['1000'], { usage_budget_rate_attribute: 'su_factor' });
    const broken = hosts(1, { allocations: [{ id: '1', su_factor: 'much' }] });
    const { decision, charges } = await enforcement.estimate(lasting(10, { reservations: [broken] }));
    expect(decision).toMatchObject({ allowed: false, failed: true });
    expect(charges).toEqual([]);
  });

  it('needs no ledger where no filter has one', async () => {
    const { enforcement } = await onLedger({ enabled: ['MaxLeaseDurationFilter'] });
    expect(await enforcement.estimate(lasting(10))).toMatchObject({
      decision: { allowed: true },
      charges: [],
    });
  });
});
