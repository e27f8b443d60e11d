/** Budgets, and their history. */
import { budgetUnit } from '../../../enforcement/budget-unit.ts';
import { ledgerFor } from '../../budgets/asker.ts';
import { budgetChangesFor, budgetsFor } from '../../budgets/budget-lists.ts';
import { learnNames, nameOfFor } from '../known-names.tsx';
import type { ConsolePage } from '../page.ts';
import { listPage } from '../pager.tsx';
import { BudgetHistory } from './budget-history-view.tsx';
import { BudgetList } from './budget-list.tsx';

const ROWS = 50;
const MAX_TEXT = 255;

/** What was done, by the word in the address: nobody can have the page say anything else. */
const DONE: Readonly<Record<string, string>> = {
  set: 'The budget is set.',
  changed: 'The budget is changed.',
  removed: 'The budget is removed.',
  imported: 'All budgets of the file are set.',
};

export const budgetsPage: ConsolePage = {
  method: 'GET',
  path: '/budgets',
  action: 'list-budgets',
  label: 'Budgets',
  answer: async (request) => {
    const { person, query, generation } = request;
    const search = textOf(query, 'search');
    const project = textOf(query, 'project');
    const { now } = await ledgerFor(request).then((ledger) => ({ now: ledger.now() }));
    const page = await budgetsFor(request, {
      ...{ limit: ROWS, after: listPage(query).after },
      ...{ projectId: project || undefined, search: search || undefined },
    });
    await learnNames(
      generation,
      page.items.map(({ projectId }) => projectId),
      page.items.flatMap(({ userId }) => userId ?? []),
    );
    const plain = new URLSearchParams(query);
    plain.delete('done');
    return {
      title: 'Budgets',
      main: (
        <BudgetList
          {...{ page, search, project, person, now }}
          query={plain}
          unit={budgetUnit(generation.configuration)}
          nameOf={nameOfFor(generation, person)}
          done={DONE[query.get('done') ?? '']}
        />
      ),
    };
  },
};

export const budgetHistoryPage: ConsolePage = {
  method: 'GET',
  path: '/budgets/history',
  action: 'list-budgets',
  answer: async (request) => {
    const { person, query, generation } = request;
    const budget = textOf(query, 'budget');
    const page = await budgetChangesFor(request, {
      ...{ limit: ROWS, after: listPage(query).after },
      projectId: textOf(query, 'project') || undefined,
      // None has the id 0.
      budget: budget === '' ? undefined : /^\d{1,18}$/.test(budget) ? BigInt(budget) : 0n,
    });
    await learnNames(
      generation,
      page.items.map(({ projectId }) => projectId),
      page.items.flatMap(({ userId }) => userId ?? []),
    );
    return {
      title: 'History of budgets',
      main: (
        <BudgetHistory
          {...{ page, query }}
          unit={budgetUnit(generation.configuration)}
          nameOf={nameOfFor(generation, person)}
        />
      ),
    };
  },
};

function textOf(query: URLSearchParams, name: string): string {
  return (query.get(name) ?? '').trim().slice(0, MAX_TEXT);
}
