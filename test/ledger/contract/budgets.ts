import { expect, it } from 'vitest';
import { listBudgets, removeBudget, setBudget } from '../../../src/ledger/budgets/budgets.ts';
import { budgetHistory } from '../../../src/ledger/budgets/history.ts';
import { budgetUse, mostTakenBudgets } from '../../../src/ledger/budgets/view.ts';
import { NO_WAIT } from '../../support/ledgers.ts';
import { type LedgerFixtures, leaseOf } from '../fixture.ts';

const DAY = 86_400n;
const FIRST = 1_796_083_200n;
const OPERATOR = { who: 'operator', reason: 'a good one' };

/** Budgets: set, changed and removed, and who pays. */
export function budgeting(fixtures: LedgerFixtures): void {
  it('lists budgets with what is taken and left, project budgets first', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.give({ userId: 'alice', amount: '50' });
    await fixture.give({ from: '2028-01-01', until: '2029-01-01', amount: '7' });
    await fixture.create(leaseOf());
    const found = await listBudgets(fixture.ledger, fixture.project, NO_WAIT);
    const hour = 3_600_000_000n;
    expect(
      found.map(({ userId, amount, taken, left }) => [userId, amount / hour, taken / hour, left / hour]),
    ).toEqual([
      [null, 100n, 24n, 76n],
      [null, 7n, 0n, 7n],
      ['alice', 50n, 24n, 26n],
    ]);
    const everywhere = await listBudgets(fixture.ledger, undefined, NO_WAIT);
    expect(everywhere).toEqual(expect.arrayContaining(found));
  });

  it('changes the budget that starts at the same second, and keeps what was taken', async () => {
    const fixture = await fixtures({ budget: '24' });
    await fixture.create(leaseOf());
    const [before] = await listBudgets(fixture.ledger, fixture.project, NO_WAIT);
    await fixture.give({ amount: '25', until: '2027-01-01' });
    const [after] = await listBudgets(fixture.ledger, fixture.project, NO_WAIT);
    expect(after).toEqual({
      ...before,
      amount: 90_000_000_000n,
      left: 3_600_000_000n,
      validUntil: 1_798_761_600n,
    });
    const hour = leaseOf({ name: 'hour', until: '2026-12-01 01:00' });
    expect((await fixture.create(hour)).refusal).toBeUndefined();
  });

  it('refuses overlapping budgets of one owner, and changes nothing', async () => {
    const fixture = await fixtures();
    const wanted = {
      projectId: fixture.project,
      userId: null,
      validFrom: 100n,
      validUntil: 200n,
      amount: 5n,
    };
    const budget = await setBudget(fixture.ledger, wanted, OPERATOR, NO_WAIT);
    const before = await fixture.everything();
    for (const [validFrom, validUntil] of [
      [99n, 101n],
      [101n, 150n],
      [199n, 201n],
      [0n, 300n],
    ] as const) {
      const other = setBudget(fixture.ledger, { ...wanted, validFrom, validUntil }, OPERATOR, NO_WAIT);
      await expect(other).rejects.toMatchObject({ name: 'BudgetConflictError', other: budget });
    }
    expect(await fixture.everything()).toEqual(before);
    await setBudget(fixture.ledger, { ...wanted, validFrom: 200n, validUntil: 300n }, OPERATOR, NO_WAIT);
    await setBudget(fixture.ledger, { ...wanted, validFrom: 0n, validUntil: 100n }, OPERATOR, NO_WAIT);
    await setBudget(fixture.ledger, { ...wanted, userId: 'alice', validFrom: 150n }, OPERATOR, NO_WAIT);
    const longer = setBudget(fixture.ledger, { ...wanted, validUntil: 201n }, OPERATOR, NO_WAIT);
    await expect(longer).rejects.toThrow('it would overlap with another budget');
    expect(await listBudgets(fixture.ledger, fixture.project, NO_WAIT)).toHaveLength(4);
  });

  it('accepts one of several overlapping budgets that are set at once', async () => {
    const fixture = await fixtures();
    const wanted = { projectId: fixture.project, userId: null, validUntil: 200n, amount: 5n };
    const set = (validFrom: bigint) => setBudget(fixture.ledger, { ...wanted, validFrom }, OPERATOR, NO_WAIT);
    const settled = await Promise.allSettled([set(100n), set(101n), set(102n)]);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await listBudgets(fixture.ledger, fixture.project, NO_WAIT)).toHaveLength(1);
  });

  it('keeps the charges of a budget that is removed and set again', async () => {
    const fixture = await fixtures({ budget: '24' });
    await fixture.create(leaseOf());
    const [{ validFrom = 0n } = {}] = await listBudgets(fixture.ledger, fixture.project, NO_WAIT);
    const which = { projectId: fixture.project, userId: null, validFrom };
    await removeBudget(fixture.ledger, which, OPERATOR, NO_WAIT);
    await fixture.give({ amount: '24' });
    expect(await listBudgets(fixture.ledger, fixture.project, NO_WAIT)).toMatchObject([{ left: 0n }]);
    expect((await fixture.create(leaseOf({ name: 'another' }))).refusal).toBeDefined();
  });

  it('removes a budget, which then pays for no lease', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf());
    const which = { projectId: fixture.project, userId: null, validFrom: 1_767_225_600n };
    expect((await removeBudget(fixture.ledger, which, OPERATOR, NO_WAIT))?.amount).toBe(360_000_000_000n);
    expect(await removeBudget(fixture.ledger, which, OPERATOR, NO_WAIT)).toBeUndefined();
    expect(await listBudgets(fixture.ledger, fixture.project, NO_WAIT)).toEqual([]);
    expect((await fixture.create(leaseOf({ name: 'other' }))).refusal?.message).toMatch(/has no budget\.$/);
    await fixture.end(leaseOf({ id: 'A' }));
    expect((await fixture.rows('accounts')).every(({ balance }) => balance === 0n)).toBe(true);
  });

  it('returns the history of budgets, with who and why', async () => {
    const fixture = await fixtures();
    const wanted = {
      projectId: fixture.project,
      userId: 'alice',
      validFrom: 100n,
      validUntil: 200n,
      amount: 5n,
    };
    const { id: budget } = await setBudget(fixture.ledger, wanted, OPERATOR, NO_WAIT);
    fixture.now = '2026-11-22T00:00:00Z';
    await setBudget(fixture.ledger, { ...wanted, amount: 6n }, { who: 'root', reason: null }, NO_WAIT);
    await removeBudget(fixture.ledger, wanted, OPERATOR, NO_WAIT);
    const history = await budgetHistory(fixture.ledger, fixture.project, NO_WAIT);
    const first = 1_795_251_630_000_000n;
    const later = 1_795_305_600_000_000n;
    expect(history.map(({ id, ...change }) => change)).toEqual([
      { ...wanted, ...OPERATOR, budget, at: first, operation: 'set' },
      { ...wanted, amount: 6n, who: 'root', reason: null, budget, at: later, operation: 'set' },
      { ...wanted, amount: 6n, ...OPERATOR, budget, at: later, operation: 'removed' },
    ]);
    const ids = history.map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => (a < b ? -1 : 1)));
    expect(await budgetHistory(fixture.ledger, undefined, NO_WAIT)).toEqual(expect.arrayContaining(history));
  });

  it('charges a lease to consecutive budgets', async () => {
    const fixture = await fixtures({ budget: '0' });
    await fixture.give({ amount: '0', until: '2026-11-30' });
    await fixture.give({ amount: '6', from: '2026-11-30', until: '2026-12-01 06:00' });
    await fixture.give({ amount: '17.5', from: '2026-12-01 06:00', until: '2027-01-01' });
    const { refusal } = await fixture.create(leaseOf());
    expect(refusal?.message).toMatch(
      /would cost 18 node-hours from 2026-12-01T06:00:00Z to 2026-12-02T00:00:00Z; .* has 17\.5 node-hours left/,
    );
    await fixture.create(leaseOf({ until: '2026-12-01 23:30' }));
    expect(await fixture.taken()).toEqual(['0', '6', '17.5']);
    fixture.now = '2026-12-01T05:00:00Z';
    await fixture.end(leaseOf({ id: 'A', until: '2026-12-01 23:30' }));
    expect(await fixture.taken()).toEqual(['0', '5', '0']);
  });

  it('refuses a lease for time without a budget', async () => {
    const fixture = await fixtures({ budget: '0' });
    await fixture.give({ amount: '100', until: '2026-12-01 23:59:59' });
    const { refusal } = await fixture.create(leaseOf());
    expect(refusal?.message).toMatch(
      /has no budget for a lease from 2026-12-01T00:00:00Z to 2026-12-02T00:00:00Z/,
    );
    expect((await fixture.create(leaseOf({ until: '2026-12-01 23:59:59' }))).refusal).toBeUndefined();
    for (const day of ['03', '04', '05', '06', '07', '08']) {
      await fixture.give({ amount: '1', from: `2027-01-${day}`, until: `2027-01-${day} 12:00` });
    }
    const [, shown = ''] =
      /; it has one (.*)\.$/.exec((await fixture.create(leaseOf())).refusal?.message ?? '') ?? [];
    expect(shown).toMatch(/^from 2027-01-04T00:00:00Z to 2027-01-04T12:00:00Z, .*T12:00:00Z, and 2 earlier$/);
  });

  it('needs a budget of the user as well as one of the project', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.give({ userId: 'alice', amount: '30' });
    expect((await fixture.create(leaseOf(), 'bob')).refusal).toBeUndefined();
    expect((await fixture.create(leaseOf())).refusal).toBeUndefined();
    const more = leaseOf({ name: 'more', until: '2026-12-01 07:00' });
    expect((await fixture.create(more)).refusal?.message).toMatch(
      /user alice in project .* has 6 node-hours left/,
    );
    expect((await fixture.create(more, 'bob')).refusal).toBeUndefined();
    expect(await fixture.taken()).toEqual(['55', '24']);
    const tooMuch = leaseOf({ name: 'too much', until: '2026-12-03' });
    expect((await fixture.create(tooMuch)).refusal?.message).toMatch(
      /^The lease .*; project .* has 45 node-hours left, .*Z\. The lease .*; user alice in project .* has 6 node-hours left, .*Z\.$/,
    );
  });

  it('counts budgets in force by how much is taken, up to the largest amounts', async () => {
    const fixture = await fixtures();
    const counted = async () => [...(await budgetUse(fixture.ledger, NO_WAIT)).values()];
    const before = await counted();
    const give = (amount: string, until?: string) =>
      fixture.give({ userId: `user-${amount}`, amount, ...(until === undefined ? {} : { until }) });
    // A day of each user, who has a budget of their own.
    for (const [amount, user] of [
      ['24', 'a'],
      ['25', 'b'],
      ['27', 'c'],
      ['40', 'd'],
      ['49', 'e'],
    ] as const) {
      await fixture.give({ userId: user, amount });
      await fixture.create(leaseOf({ name: user }), user);
    }
    await give('2562047788.0152');
    await give('0', '2026-11-01');
    const after = await counted();
    expect(after.map((count, index) => count - (before[index] ?? 0))).toEqual([2, 1, 1, 1, 1]);
    const fullest = await mostTakenBudgets(fixture.ledger, 10_000, NO_WAIT);
    expect(
      fullest.filter(({ projectId, userId }) => projectId === fixture.project && userId === 'b'),
    ).toEqual([
      {
        projectId: fixture.project,
        userId: 'b',
        amount: 25n * 3_600_000_000n,
        taken: 24n * 3_600_000_000n,
        validFrom: expect.any(BigInt),
        validUntil: expect.any(BigInt),
      },
    ]);
  });

  it('moves a lease from one budget to the next by an update', async () => {
    const fixture = await fixtures();
    const owner = { projectId: fixture.project, userId: null, amount: 24n * 3_600_000_000n };
    const first = { ...owner, validFrom: FIRST, validUntil: FIRST + DAY };
    await setBudget(fixture.ledger, first, OPERATOR, NO_WAIT);
    await setBudget(
      fixture.ledger,
      { ...first, validFrom: FIRST + DAY, validUntil: FIRST + 3n * DAY },
      OPERATOR,
      NO_WAIT,
    );
    await fixture.create(leaseOf());
    expect(await fixture.taken()).toEqual(['24', '0']);
    await fixture.update(leaseOf({ id: 'A' }), {
      start_date: '2026-12-02 00:00',
      end_date: '2026-12-03 00:00',
    });
    // Until it is known where it is, both pay.
    expect(await fixture.taken()).toEqual(['24', '24']);
    await fixture.update(leaseOf({ id: 'A', from: '2026-12-02 00:00', until: '2026-12-03 00:00' }), {});
    expect(await fixture.taken()).toEqual(['0', '24']);
  });
}
