import { setImmediate as nextTurn } from 'node:timers/promises';
import { CompiledQuery } from 'kysely';
import { describe, expect, it } from 'vitest';
import { budgetAccount } from '../../../src/filter/claim.ts';
import type { WantedLine } from '../../../src/ledger/budgets/file.ts';
import { importBudgets } from '../../../src/ledger/budgets/import.ts';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import type { BudgetWatch } from '../../../src/ledger/outbox/crossings.ts';
import { rows } from '../../../src/ledger/storage/database.ts';
import { DIALECTS, giveBudget, NO_WAIT, newLedgers, openedLedger } from '../../support/ledgers.ts';

const newLedger = newLedgers();
const AUTHOR = { who: 'operator', reason: 'a new year' };
const FROM = 1_798_761_600n;
const UNTIL = 1_830_297_600n;

const wanted = (projects: readonly string[], amount = 5n): WantedLine[] =>
  projects.map((projectId, index) => ({
    line: index + 2,
    wanted: { projectId, userId: null, validFrom: FROM, validUntil: UNTIL, amount },
  }));

async function fixture(dialect: (typeof DIALECTS)[number], watch?: BudgetWatch) {
  const ledger = await openedLedger(await newLedger(dialect), watch && { watch });
  const all = async () => {
    const query = ledger.database.queries.selectFrom('budgets').selectAll().orderBy('id').compile();
    return (await ledger.database.read(() => rows(query), NO_WAIT)).map(
      ({ project_id, amount, valid_from }) => [project_id, amount, valid_from === FROM],
    );
  };
  /** Runs `work` between the first plan and its transaction. */
  const disturb = (work: () => Promise<unknown>) => {
    const transact = ledger.transact.bind(ledger);
    let isFirst = true;
    const disturbed: Ledger['transact'] = async (...given) => {
      if (isFirst) {
        isFirst = false;
        await work();
      }
      return transact(...given);
    };
    ledger.transact = disturbed;
  };
  return { ledger, all, disturb };
}

describe.each(DIALECTS)('an import into a ledger on %s', (dialect) => {
  it('sets all of its budgets, each with an entry of the history that names it', async () => {
    const { ledger, all } = await fixture(dialect);
    await giveBudget(ledger, { projectId: 'b', amount: '1', from: '2027-01-01', until: '2028-01-01' });
    await importBudgets(ledger, wanted(['c', 'b', 'a']), AUTHOR, NO_WAIT);
    expect((await all()).sort()).toEqual([
      ['a', 5n, true],
      ['b', 5n, true],
      ['c', 5n, true],
    ]);
    const query = ledger.database.queries
      .selectFrom('budget_changes')
      .innerJoin('budgets', 'budgets.id', 'budget_changes.budget')
      .select(['budgets.project_id', 'budget_changes.amount', 'who'])
      .where('reason', '=', AUTHOR.reason)
      .orderBy('budgets.project_id')
      .compile();
    expect(await ledger.database.read(() => rows(query), NO_WAIT)).toEqual(
      ['a', 'b', 'c'].map((project_id) => ({ project_id, amount: 5n, who: 'operator' })),
    );
    const again = await importBudgets(ledger, wanted(['a', 'b', 'c']), AUTHOR, NO_WAIT);
    expect(again.lines.map(({ outcome }) => outcome)).toEqual(['unchanged', 'unchanged', 'unchanged']);
    expect(await ledger.database.read(() => rows(query), NO_WAIT)).toHaveLength(3);
  });

  it('sets nothing if somebody has set a budget meanwhile that one of them would overlap with', async () => {
    const { ledger, all, disturb } = await fixture(dialect);
    disturb(() =>
      giveBudget(ledger, { projectId: 'b', amount: '1', from: '2027-06-01', until: '2028-06-01' }),
    );
    const plan = await importBudgets(ledger, wanted(['a', 'b']), AUTHOR, NO_WAIT);
    expect(plan.mistakes).toMatchObject([{ line: 3, field: 'valid_from' }]);
    expect(await all()).toEqual([['b', 3_600_000_000n, false]]);
  });

  it('tells of each budget of which more is taken now than a threshold', async () => {
    const watch = { thresholds: [80], senders: ['notifications'], body: () => '{}' };
    const { ledger } = await fixture(dialect, watch);
    await importBudgets(ledger, wanted(['a', 'b', 'c'], 100n), AUTHOR, NO_WAIT);
    const { queries } = ledger.database;
    const budgets = queries.selectFrom('budgets').select(['id', 'project_id']).compile();
    const found = await ledger.database.read(() => rows(budgets), NO_WAIT);
    const taken = found
      .filter(({ project_id }) => project_id !== 'c')
      .map(({ id, project_id }) => ({
        project_id,
        name: budgetAccount({ id }),
        balance: project_id === 'a' ? 45n : 10n,
      }));
    const add = queries.insertInto('accounts').values(taken).compile();
    await ledger.database.transact(() => rows(add), NO_WAIT);
    await importBudgets(ledger, wanted(['a', 'b', 'c'], 50n), AUTHOR, NO_WAIT);
    const told = queries.selectFrom('outbox').select('project_id').compile();
    expect(await ledger.database.read(() => rows(told), NO_WAIT)).toEqual([{ project_id: 'a' }]);
  });

  it('replaces what somebody has set meanwhile', async () => {
    const { ledger, all, disturb } = await fixture(dialect);
    disturb(() =>
      giveBudget(ledger, { projectId: 'b', amount: '1', from: '2027-01-01', until: '2028-01-01' }),
    );
    const plan = await importBudgets(ledger, wanted(['b']), AUTHOR, NO_WAIT);
    expect(plan.lines.map(({ outcome, before }) => [outcome, before?.amount])).toEqual([
      ['changed', 3_600_000_000n],
    ]);
    expect(await all()).toEqual([['b', 5n, true]]);
  });
});

describe('an import into a file', () => {
  it('begins again when the connection has lost its lines, and leaves none behind', async () => {
    const { ledger, all, disturb } = await fixture('sqlite');
    const run = (text: string) => ledger.database.transact(() => rows(CompiledQuery.raw(text)), NO_WAIT);
    disturb(() => run('drop table temp.import_lines'));
    await importBudgets(ledger, wanted(['a', 'b']), AUTHOR, NO_WAIT);
    expect(await all()).toHaveLength(2);
    expect(await run('select * from temp.import_lines')).toEqual([]);
  });

  it('lets others have their turns before its transaction, and after it', async () => {
    const { ledger, disturb } = await fixture('sqlite');
    const turns: string[] = [];
    let state = 'before';
    disturb(async () => {
      state = 'after';
    });
    let isOver = false;
    const others = (async () => {
      while (!isOver) {
        await nextTurn();
        turns.push(state);
      }
    })();
    const projects = Array.from({ length: 1000 }, (_, index) => `project-${index}`);
    await importBudgets(ledger, wanted(projects), AUTHOR, NO_WAIT);
    isOver = true;
    await others;
    expect(new Set(turns)).toEqual(new Set(['before', 'after']));
  });
});
