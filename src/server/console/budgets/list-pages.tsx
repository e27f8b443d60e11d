/** Lists of budgets and their history. */
import { formatUnitHours } from '../../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { BudgetChange } from '../../../ledger/budgets/budgets.ts';
import type { BudgetView } from '../../../ledger/budgets/view.ts';
import type { PageOf } from '../../../ledger/reports/pages.ts';
import { learnNames, rowNumber } from '../../api/shown.ts';
import { budgetChangesFor, budgetsFor } from '../../budgets/budget-lists.ts';
import { mayChange } from '../../budgets/change-budgets.ts';
import { ledgerFor } from '../../budgets/named-accounts.ts';
import { type Caller, may } from '../../users/caller.ts';
import { type ConsolePage, pathWith, queryText } from '../page.ts';
import { SearchForm } from '../parts/fields.tsx';
import { List, listPage } from '../parts/pager.tsx';
import {
  BudgetOwner,
  type Column,
  column,
  Message,
  OfProject,
  ProjectLink,
  Small,
  Span,
  Text,
  Time,
} from '../parts/parts.tsx';
import { BudgetBar } from '../parts/pictures.tsx';
import { toSecond } from '../parts/time-scale.ts';

const ROWS = 50;

/** Messages by the word in the URL, so that a link cannot inject other texts. */
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
    const { caller, query, unit } = request;
    const search = queryText(query, 'search');
    const project = queryText(query, 'project');
    const now = (await ledgerFor(request)).now();
    const page = await budgetsFor(request, {
      limit: ROWS,
      after: listPage(query).after,
      projectId: project || undefined,
      search: search || undefined,
    });
    await learnNames(request, page.items);
    const plain = new URLSearchParams(query);
    plain.delete('done');
    return {
      title: 'Budgets',
      main: (
        <BudgetList
          page={page}
          search={search}
          project={project}
          caller={caller}
          now={now}
          query={plain}
          unit={unit}
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
    const { query, unit } = request;
    const budget = queryText(query, 'budget');
    const page = await budgetChangesFor(request, {
      limit: ROWS,
      after: listPage(query).after,
      projectId: queryText(query, 'project') || undefined,
      budget: budget === '' ? undefined : rowNumber(budget),
    });
    await learnNames(request, page.items);
    return {
      title: 'History of budgets',
      main: <BudgetHistory page={page} query={query} unit={unit} />,
    };
  },
};

interface BudgetListProps {
  readonly page: PageOf<BudgetView>;
  readonly query: URLSearchParams;
  readonly search: string;
  /** Only this project; empty = all. */
  readonly project: string;
  readonly caller: Caller;
  readonly unit: string;
  /** Microseconds of the epoch. */
  readonly now: bigint;
  readonly done: string | undefined;
}

export function BudgetList(props: BudgetListProps) {
  const { page, query, search, project, caller, unit, now, done } = props;
  const setsAny = may(caller, 'set-user-budget', project || undefined);
  return (
    <section>
      {done !== undefined && <Message kind="done">{done}</Message>}
      <nav aria-label="Tasks with budgets" class="pages">
        {setsAny && <a href={pathWith('/budgets/new', { project })}>Set a budget</a>}
        <a href={pathWith('/budgets/requests', { project })}>Budget requests</a>
        <a href={pathWith('/budgets/history', { project })}>History</a>
        {may(caller, 'import-budgets') && <a href="/budgets/import">Import</a>}
        <a href={pathWith('/v1/budgets/export', { format: 'csv' })} download="budgets.csv">
          Export as CSV
        </a>
      </nav>
      <SearchForm
        action="/budgets"
        label="Id of project or user contains"
        search={search}
        isNarrowed={search !== '' || project !== ''}
      >
        {project !== '' && <input type="hidden" name="project" value={project} />}
      </SearchForm>
      <OfProject id={project} />
      <List
        label="Budgets"
        columns={budgetColumns(caller, unit, now / MICROSECONDS_PER_SECOND)}
        path="/budgets"
        empty="No budgets."
        page={page}
        query={query}
      />
    </section>
  );
}

/** `second`: now. */
function budgetColumns(caller: Caller, unit: string, second: bigint): readonly Column<BudgetView>[] {
  return [
    column('Project', 'what', ({ projectId }) => <ProjectLink id={projectId} />),
    column('Owner', 'who', ({ userId }) => <BudgetOwner userId={userId} />),
    column('Budget', 'number', ({ amount }) => formatUnitHours(amount)),
    column('Left', undefined, (budget) => <BudgetBar {...budget} unit={unit} />),
    column('Valid (UTC)', 'time', ({ validFrom, validUntil }) => (
      <>
        <Span from={validFrom} until={validUntil} />
        {validUntil <= second && <small>expired</small>}
        {validUntil > second && validFrom > second && <small>not in force yet</small>}
      </>
    )),
    column('Last change', undefined, ({ changedBy, reason }) => (
      <>
        <Text>{changedBy}</Text>
        <Small text={reason} />
      </>
    )),
    column('Actions', undefined, (budget) => (
      <Actions id={budget.id} isChangeable={mayChange(caller, budget)} />
    )),
  ];
}

function Actions({ id, isChangeable }: { readonly id: bigint; readonly isChangeable: boolean }) {
  return (
    <>
      {isChangeable && (
        <>
          <a href={`/budgets/${id}`} aria-label={`Change budget ${id}`}>
            Change
          </a>
          <br />
          <a href={`/budgets/${id}/remove`} aria-label={`Remove budget ${id}`}>
            Remove
          </a>
          <br />
        </>
      )}
      <a href={pathWith('/budgets/history', { budget: String(id) })} aria-label={`History of budget ${id}`}>
        History
      </a>
    </>
  );
}

interface BudgetHistoryProps {
  readonly page: PageOf<BudgetChange>;
  readonly query: URLSearchParams;
  readonly unit: string;
}

export function BudgetHistory({ page, query, unit }: BudgetHistoryProps) {
  return (
    <section>
      <p>
        <a href="/budgets">All budgets</a>
      </p>
      <List
        label="Changes of budgets"
        columns={changeColumns(unit)}
        named={1}
        path="/budgets/history"
        empty="No changes."
        page={page}
        query={query}
      />
    </section>
  );
}

function changeColumns(unit: string): readonly Column<BudgetChange>[] {
  return [
    column('Time (UTC)', 'time', ({ at }) => <Time at={toSecond(at)} />),
    column('Changed by', 'who', ({ who }) => <Text>{who}</Text>),
    column('Reason', 'why', ({ reason }) =>
      reason === null ? <span class="none">no reason</span> : <Text>{reason}</Text>,
    ),
    column('Project', 'what', ({ projectId }) => <ProjectLink id={projectId} />),
    column('Owner', undefined, ({ userId }) => <BudgetOwner userId={userId} />),
    column('Change', undefined, ({ operation }) => operation),
    column(`Budget (${unit})`, 'number', ({ amount }) => formatUnitHours(amount)),
    column('Valid (UTC)', 'time', ({ validFrom, validUntil }) => (
      <Span from={validFrom} until={validUntil} />
    )),
  ];
}
