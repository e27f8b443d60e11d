import { describe, expect, it } from 'vitest';
import { ALLOWED, REJECTED, rejectedWith } from '../support/decisions.ts';
import { hours } from './on-ledger.ts';
import { lasting, withBudgets } from './usage-budgets.ts';

const JANUARY = { from: '2027-01-01', until: '2027-02-01' };
/** The last five hours of December and the first five of January. */
const OVER_NEW_YEAR = { start_date: '2026-12-31 19:00', end_date: '2027-01-01 05:00' };

describe('a project', () => {
  it('without a budget is refused leases that cost something', async () => {
    const { enforcement } = await withBudgets([{ projectId: 'physics', amount: '1000' }]);
    expect(await enforcement.checkCreate(lasting(1))).toMatchObject(
      rejectedWith('Project climate has no budget.'),
    );
    expect(await enforcement.checkCreate(lasting(1, {}, { project_id: 'physics' }))).toMatchObject(ALLOWED);
  });

  it('without a budget has no limit with usage_budget_required = false; one with a budget has', async () => {
    const options = { usage_budget_required: false };
    const { enforcement, balances } = await withBudgets([{ projectId: 'physics', amount: '1' }], options);
    expect(await enforcement.checkCreate(lasting(1000))).toMatchObject(ALLOWED);
    expect(balances()).toEqual({});
    expect(await enforcement.checkCreate(lasting(1000, {}, { project_id: 'physics' }))).toMatchObject(
      REJECTED,
    );
  });

  it('is refused leases at a time without a budget, whether or not one is required', async () => {
    for (const usage_budget_required of [true, false]) {
      const { enforcement } = await withBudgets([{ ...JANUARY, amount: '1000' }], { usage_budget_required });
      const message =
        'Project climate has no budget for a lease from 2026-12-31T19:00:00Z to 2027-01-01T05:00:00Z; it has one from 2027-01-01T00:00:00Z to 2027-02-01T00:00:00Z.';
      expect(await enforcement.checkCreate(lasting(1, OVER_NEW_YEAR))).toMatchObject({
        allowed: false,
        message,
      });
    }
  });

  it('is refused a lease that extends a second into a gap between budgets or past the last one', async () => {
    const { enforcement } = await withBudgets([
      { from: '2026-12-01', until: '2026-12-31', amount: '1000' },
      { ...JANUARY, amount: '1000' },
    ]);
    const allowed = async (start_date: string, end_date: string) =>
      (await enforcement.checkCreate(lasting(1, { start_date, end_date }), { dryRun: true })).allowed;
    expect(await allowed('2026-12-30T00:00:00', '2026-12-31T00:00:00')).toBe(true);
    expect(await allowed('2026-12-30T00:00:00', '2026-12-31T00:00:01')).toBe(false);
    expect(await allowed('2026-12-31T23:59:59', '2027-01-02T00:00:00')).toBe(false);
    expect(await allowed('2026-12-30T00:00:00', '2027-01-02T00:00:00')).toBe(false);
    expect(await allowed('2027-01-01T00:00:00', '2027-02-01T00:00:00')).toBe(true);
    expect(await allowed('2027-01-01T00:00:00', '2027-02-01T00:00:00.000001')).toBe(false);
  });
});

describe('a user', () => {
  it('with a budget is refused leases outside its time, although the project has a budget', async () => {
    const { enforcement, balances } = await withBudgets([
      '100',
      { userId: 'alice', ...JANUARY, amount: '10' },
    ]);
    expect(await enforcement.checkCreate(lasting(1))).toMatchObject(
      rejectedWith(
        'User alice in project climate has no budget for a lease from 2026-12-01T09:00:00Z to 2026-12-01T10:00:00Z; it has one from 2027-01-01T00:00:00Z to 2027-02-01T00:00:00Z.',
      ),
    );
    expect(balances()).toEqual({});
  });

  it('with a budget is limited by it even if the project needs none', async () => {
    const { enforcement } = await withBudgets([{ userId: 'alice', amount: '10' }], {
      usage_budget_required: false,
    });
    expect(await enforcement.checkCreate(lasting(11))).toMatchObject(REJECTED);
    expect(await enforcement.checkCreate(lasting(10))).toMatchObject(ALLOWED);
    expect(await enforcement.checkCreate(lasting(1000, {}, { user_id: 'bob' }))).toMatchObject(ALLOWED);
  });
});

describe('ids', () => {
  it.each(['__proto__', 'constructor', 'a/b', 'climate/user/alice', "x' OR 1=1 --", '%', '*', 'π'])(
    'with unusual characters have their own budgets: %s',
    async (id) => {
      const who = { user_id: id, project_id: id };
      const { enforcement, balances } = await withBudgets([
        '1000',
        { userId: 'alice', amount: '1000' },
        { projectId: id, amount: '10' },
        { projectId: id, userId: id, amount: '5' },
      ]);
      const judge = async (hoursLong: number, context: object) =>
        (await enforcement.checkCreate(lasting(hoursLong, {}, context), { dryRun: true })).allowed;
      expect(await judge(5, who)).toBe(true);
      expect(await judge(6, who)).toBe(false);
      expect(await judge(6, { project_id: id })).toBe(true);
      expect(await judge(11, { project_id: id })).toBe(false);
      await enforcement.checkCreate(lasting(5, {}, who));
      expect(balances(id)).toEqual({ 'usage_budget/3': hours('5'), 'usage_budget/4': hours('5') });
      expect(balances('climate')).toEqual({});
    },
  );

  it('of users with slashes have their own accounts for times without a budget', async () => {
    const { enforcement, balances } = await withBudgets(
      [
        { ...JANUARY, userId: 'a', amount: '1' },
        { ...JANUARY, userId: 'user/a', amount: '1' },
      ],
      { audit_filters: ['UsageBudgetFilter'], usage_budget_required: false },
    );
    for (const user_id of ['a', 'user/a']) {
      await enforcement.checkCreate(lasting(1, { name: user_id }, { user_id }));
    }
    expect(balances()).toEqual({
      'usage_budget/uncovered/user/a': hours('1'),
      'usage_budget/uncovered/user/user/a': hours('1'),
    });
  });
});
