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
    const sorted = ({ differences, compared }: Verification) => ({
      compared,
      differences: differences
        .map(({ kind, projectId, subject, expected, found }) =>
          [kind, projectId, subject, expected, found].join(' '),
        )
        .sort(),
    });
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
  it.each([
    [
      'a balance that is not what its entries come to',
      "UPDATE accounts SET balance = balance + 1 WHERE name = 'usage_budget/1' AND project_id = 'climate'",
      [{ kind: 'balance', projectId: 'climate', subject: 'usage_budget/1' }],
    ],
    [
      'an account without entries',
      "INSERT INTO accounts (project_id, name, balance) VALUES ('ocean', 'x', 5)",
      [{ kind: 'balance', projectId: 'ocean', subject: 'x', expected: '0', found: '5' }],
    ],
    [
      'an account that is gone',
      "DELETE FROM accounts WHERE name = 'max_leases/user/bob'",
      [
        { kind: 'balance', subject: 'max_leases/user/bob', expected: '1', found: 'nothing' },
        { kind: 'held', subject: 'max_leases/user/bob', expected: '1', found: 'nothing' },
      ],
    ],
    [
      'an entry that was taken away',
      "DELETE FROM entries WHERE account = 'usage_budget/1' AND lease = 1",
      [{ kind: 'balance', subject: 'usage_budget/1' }],
    ],
    [
      'a lease that is said to have ended, and holds what it held',
      "UPDATE leases SET state = 'ended' WHERE id = 2",
      [
        { kind: 'held', subject: 'max_leases/project', expected: '1', found: '2' },
        { kind: 'held', subject: 'max_leases/user/bob', expected: '0', found: '1' },
      ],
    ],
    [
      'a lease that is said to be there, and holds nothing',
      "UPDATE leases SET state = 'open' WHERE id = 3",
      [
        { kind: 'held', projectId: 'ocean', subject: 'max_leases/project', expected: '1', found: '0' },
        { kind: 'held', projectId: 'ocean', subject: 'max_leases/user/alice', expected: '1', found: '0' },
      ],
    ],
    [
      'a budget that nobody has set to what it is',
      'UPDATE budgets SET amount = 999',
      [{ kind: 'budget', projectId: 'climate', subject: '1', found: expect.stringMatching(/^999 of/) }],
    ],
    [
      'a budget that nobody has removed',
      'UPDATE budgets SET removed_at = 1',
      [{ kind: 'budget', subject: '1', found: expect.stringMatching(/^removed: 720000000000 of/) }],
    ],
    [
      'a budget whose changes are gone',
      'DELETE FROM budget_changes',
      [{ kind: 'budget', subject: '1', expected: 'nothing' }],
    ],
  ])('finds %s', async (_, sql, expected) => {
    const ledger = await usedLedger('sqlite');
    await tamper(ledger, sql);
    const { differences } = await verifyLedger(ledger, NO_WAIT);
    const byAccount = [...differences].sort((a, b) =>
      `${a.kind} ${a.subject}` < `${b.kind} ${b.subject}` ? -1 : 1,
    );
    expect(byAccount).toEqual(expected.map((one) => expect.objectContaining(one)));
  });
});
