import { describe, expect, it } from 'vitest';
import { setBudget } from '../../../src/ledger/budgets/budgets.ts';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import { type Verification, verifyLedger } from '../../../src/ledger/reports/verify.ts';
import { rows } from '../../../src/ledger/storage/database.ts';
import { DIALECTS, giveBudget, ledgerAt, NO_WAIT, newLedgers, openedLedger } from '../../support/ledgers.ts';
import { copiedLedgers, endLease, recordLease } from '../recorded-leases.ts';

const newLedger = newLedgers();

async function usedLedger(dialect: (typeof DIALECTS)[number]): Promise<Ledger> {
  const isFile = dialect === 'sqlite';
  const ledger = await openedLedger(await (isFile ? usedFile() : newLedger(dialect)));
  if (!isFile) {
    await use(ledger);
  }
  return ledger;
}

const usedFile = copiedLedgers(async (connection) => {
  const ledger = await ledgerAt(connection);
  await use(ledger);
  await ledger.close();
});

/** Two leases that are there, one that has ended, and a budget that was changed. */
async function use(ledger: Ledger): Promise<void> {
  await giveBudget(ledger, { amount: '100' });
  await giveBudget(ledger, { amount: '200' });
  await recordLease(ledger, { name: 'a' });
  await recordLease(ledger, { name: 'b', userId: 'bob' });
  const ended = await recordLease(ledger, { name: 'c', projectId: 'ocean', leaseId: 'C' });
  await endLease(ledger, ended);
}

/** As somebody would who is at the database himself. */
async function tamper(ledger: Ledger, sql: string): Promise<void> {
  const { queries } = ledger.database;
  const query = queries.selectFrom('leases').select('id').compile();
  await ledger.transact('commit', () => rows({ ...query, sql, parameters: [] }), NO_WAIT);
}

/** `held of climate: max_leases/project, 1, 2`: what was expected, and what was found. */
const textsOf = ({ differences }: Verification) =>
  differences
    .map(
      ({ kind, projectId, subject, expected, found }) =>
        `${kind} of ${projectId}: ${subject}, ${expected}, ${found}`,
    )
    .sort();

describe.each(DIALECTS)('verifyLedger on %s', (dialect) => {
  it('finds nothing in an intact ledger, and counts what it compared', async () => {
    const ledger = await usedLedger(dialect);
    const { differences, compared } = await verifyLedger(ledger, NO_WAIT);
    expect(differences).toEqual([]);
    expect(compared).toEqual({ accounts: 7, entries: 12n, leases: 3, budgets: 1 });
  });

  it('sums entries whose intermediate sums overflow', async () => {
    const ledger = await usedLedger(dialect);
    const huge = 2n ** 62n;
    for (const delta of [huge, huge, -huge, -huge]) {
      await tamper(
        ledger,
        `INSERT INTO entries (at, project_id, account, delta, lease, operation, who) VALUES (1, 'climate', 'usage_budget/1', ${delta}, 1, 'create', 'x')`,
      );
    }
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
  });

  it('finds the same, however few accounts it holds in memory', async () => {
    const ledger = await usedLedger(dialect);
    const budget = { validFrom: 0n, validUntil: 9n, amount: 5n, userId: null };
    for (const projectId of ['alpha', 'ocean', 'zeta']) {
      await setBudget(ledger, { ...budget, projectId }, { who: 'x', reason: null }, NO_WAIT);
      await recordLease(ledger, { name: 'more', projectId });
    }
    for (const sql of [
      "UPDATE accounts SET balance = balance + 1 WHERE project_id IN ('alpha', 'zeta') AND name = 'max_leases/project'",
      "DELETE FROM accounts WHERE project_id = 'ocean'",
      "UPDATE budgets SET amount = 7 WHERE project_id = 'zeta'",
      "DELETE FROM budget_changes WHERE project_id = 'alpha'",
    ]) {
      await tamper(ledger, sql);
    }
    const sorted = (one: Verification) => ({ compared: one.compared, differences: textsOf(one) });
    const whole = sorted(await verifyLedger(ledger, NO_WAIT));
    expect(whole.differences).toHaveLength(11);
    const told: (readonly [number, number])[] = [];
    for (const most of [1, 2, 3]) {
      const seen = (...counts: [number, number]) => void told.push(counts);
      expect(sorted(await verifyLedger(ledger, NO_WAIT, seen, most))).toEqual(whole);
      expect(new Set(told.map(([, all]) => all))).toEqual(new Set([6]));
      const counts = told.splice(0).map(([count]) => count);
      expect(counts).toEqual([...counts].sort((a, b) => a - b));
      expect([...new Set(counts)].filter((count) => count > 0)).toEqual([1, 2, 3, 4, 5, 6]);
    }
  });

  it('sees one moment, whatever is recorded meanwhile', async () => {
    const ledger = await usedLedger(dialect);
    let isOver = false;
    const writing = (async () => {
      for (let count = 0; !isOver; count += 1) {
        await recordLease(ledger, { name: `w${count}`, userId: 'carol' });
      }
    })();
    const found: Verification[] = [];
    // Until something was recorded between two looks.
    const leases = (one: Verification | undefined) => one?.compared.leases ?? 0;
    while (found.length < 4 || leases(found.at(-1)) <= leases(found[0])) {
      found.push(await verifyLedger(ledger, NO_WAIT));
    }
    isOver = true;
    await writing;
    expect(found.flatMap(({ differences }) => differences)).toEqual([]);
  });
});

describe('verifyLedger', () => {
  const OF_CLIMATE = "WHERE name = 'usage_budget/1' AND project_id = 'climate'";
  const YEARS = 'of project climate from 1767225600 until 1830297600';
  const BUDGET = `720000000000 ${YEARS}`;
  it.each([
    [
      'a balance that is not what its entries come to',
      `UPDATE accounts SET balance = balance + 1 ${OF_CLIMATE}`,
      ['balance of climate: usage_budget/1, 172800000000, 172800000001'],
    ],
    [
      'an account without entries',
      "INSERT INTO accounts (project_id, name, balance) VALUES ('ocean', 'x', 5)",
      ['balance of ocean: x, 0, 5'],
    ],
    [
      'an account that is gone',
      "DELETE FROM accounts WHERE name = 'max_leases/user/bob'",
      [
        'balance of climate: max_leases/user/bob, 1, nothing',
        'held of climate: max_leases/user/bob, 1, nothing',
      ],
    ],
    [
      'an entry that was taken away',
      "DELETE FROM entries WHERE account = 'usage_budget/1' AND lease = 1",
      ['balance of climate: usage_budget/1, 86400000000, 172800000000'],
    ],
    [
      'a lease that is said to have ended, and holds what it held',
      "UPDATE leases SET state = 'ended' WHERE id = 2",
      ['held of climate: max_leases/project, 1, 2', 'held of climate: max_leases/user/bob, 0, 1'],
    ],
    [
      'a lease that is said to be there, and holds nothing',
      "UPDATE leases SET state = 'open' WHERE id = 3",
      ['held of ocean: max_leases/project, 1, 0', 'held of ocean: max_leases/user/alice, 1, 0'],
    ],
    [
      'a budget that nobody has set to what it is',
      'UPDATE budgets SET amount = 999',
      [`budget of climate: 1, ${BUDGET}, 999 ${YEARS}`],
    ],
    [
      'a budget that nobody has removed',
      'UPDATE budgets SET removed_at = 1',
      [`budget of climate: 1, ${BUDGET}, removed: ${BUDGET}`],
    ],
    [
      'a budget whose changes are gone',
      'DELETE FROM budget_changes',
      [`budget of climate: 1, nothing, ${BUDGET}`],
    ],
  ])('finds %s', async (_, sql, expected) => {
    const ledger = await usedLedger('sqlite');
    await tamper(ledger, sql);
    expect(textsOf(await verifyLedger(ledger, NO_WAIT))).toEqual(expected);
  });
});
