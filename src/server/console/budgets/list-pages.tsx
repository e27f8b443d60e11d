/** Budgets, and their history. */
import { budgetUnit } from '../../../enforcement/budget-unit.ts';
import { formatUnitHours } from '../../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { BudgetChange } from '../../../ledger/budgets/budgets.ts';
import type { BudgetView } from '../../../ledger/budgets/view.ts';
import type { PageOf } from '../../../ledger/reports/pages.ts';
import { budgetChangesFor, budgetsFor } from '../../budgets/budget-lists.ts';
import { mayChange } from '../../budgets/change-budgets.ts';
import { ledgerFor } from '../../budgets/named-accounts.ts';
import type { Generation } from '../../configuration/generation.ts';
import { type Caller, may } from '../../users/caller.ts';
import { type ConsolePage, pathWith } from '../page.ts';
import { SearchForm } from '../parts/fields.tsx';
import { listPage, Pager } from '../parts/pager.tsx';
import {
  learnNames,
  Message,
  type NameOf,
  nameOfFor,
  ProjectLink,
  SpanCell,
  Table,
  Text,
  Whose,
  WithNames,
} from '../parts/parts.tsx';
import { BudgetBar } from '../parts/pictures.tsx';
import { shownDate, toSecond } from '../parts/time-scale.ts';

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
    const { caller, query, generation } = request;
    const search = textOf(query, 'search');
    const project = textOf(query, 'project');
    const now = (await ledgerFor(request)).now();
    const page = await budgetsFor(request, {
      ...{ limit: ROWS, after: listPage(query).after },
      ...{ projectId: project || undefined, search: search || undefined },
    });
    await learnOwners(generation, page.items);
    const plain = new URLSearchParams(query);
    plain.delete('done');
    return {
      title: 'Budgets',
      main: (
        <BudgetList
          {...{ page, search, project, caller, now }}
          query={plain}
          unit={budgetUnit(generation.configuration)}
          nameOf={nameOfFor(generation, caller)}
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
    const { caller, query, generation } = request;
    const budget = textOf(query, 'budget');
    const page = await budgetChangesFor(request, {
      ...{ limit: ROWS, after: listPage(query).after },
      projectId: textOf(query, 'project') || undefined,
      // None has the id 0.
      budget: budget === '' ? undefined : /^\d{1,18}$/.test(budget) ? BigInt(budget) : 0n,
    });
    await learnOwners(generation, page.items);
    return {
      title: 'History of budgets',
      main: (
        <BudgetHistory
          {...{ page, query }}
          unit={budgetUnit(generation.configuration)}
          nameOf={nameOfFor(generation, caller)}
        />
      ),
    };
  },
};

function learnOwners(
  generation: Generation,
  budgets: readonly { readonly projectId: string; readonly userId: string | null }[],
): Promise<void> {
  return learnNames(
    generation,
    budgets.map(({ projectId }) => projectId),
    budgets.flatMap(({ userId }) => userId ?? []),
  );
}

function textOf(query: URLSearchParams, name: string): string {
  return (query.get(name) ?? '').trim().slice(0, MAX_TEXT);
}

interface BudgetListProps {
  readonly page: PageOf<BudgetView>;
  readonly query: URLSearchParams;
  readonly search: string;
  /** Only of this project; empty = of all. */
  readonly project: string;
  readonly caller: Caller;
  readonly unit: string;
  readonly nameOf: NameOf;
  /** Microseconds of the epoch. */
  readonly now: bigint;
  readonly done: string | undefined;
}

export function BudgetList(props: BudgetListProps) {
  const { page, query, search, project, caller, unit, nameOf, now, done } = props;
  const setsAny = may(caller, 'set-user-budget', project === '' ? undefined : project);
  return (
    <WithNames nameOf={nameOf}>
      <section>
        {done !== undefined && <Message kind="done">{done}</Message>}
        <nav aria-label="About budgets" class="pages">
          {setsAny && <a href={pathWith('/budgets/new', { project })}>Set a budget</a>}
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
        {project !== '' && (
          <p>
            Of the project <ProjectLink id={project} />
          </p>
        )}
        {page.items.length === 0 ? (
          <p>There are none.</p>
        ) : (
          <Table
            label="Budgets"
            head={['Project', 'Whose', 'Budget', 'Left', 'Valid (UTC)', 'Set last', 'Actions']}
          >
            {page.items.map((budget) => (
              <BudgetRow {...{ budget, caller, unit }} second={now / MICROSECONDS_PER_SECOND} />
            ))}
          </Table>
        )}
        <Pager label="budgets" path="/budgets" query={query} next={page.next} />
      </section>
    </WithNames>
  );
}

interface RowProps {
  readonly budget: BudgetView;
  readonly caller: Caller;
  readonly unit: string;
  readonly second: bigint;
}

function BudgetRow({ budget, caller, unit, second }: RowProps) {
  const { id, projectId, userId, amount, taken, left, validFrom, validUntil, changedBy, reason } = budget;
  const when = validUntil <= second ? 'not valid any more' : validFrom > second ? 'not valid yet' : '';
  return (
    <tr>
      <th scope="row" class="what">
        <ProjectLink id={projectId} />
      </th>
      <td class="who">
        <Whose userId={userId} />
      </td>
      <td class="number">{formatUnitHours(amount)}</td>
      <td>
        <BudgetBar amount={amount} taken={taken} left={left} unit={unit} />
      </td>
      <SpanCell from={validFrom} until={validUntil}>
        {when !== '' && <small>{when}</small>}
      </SpanCell>
      <td>
        <Text>{changedBy}</Text>
        {reason !== null && (
          <small>
            <Text>{reason}</Text>
          </small>
        )}
      </td>
      <td>
        {mayChange(caller, budget) && (
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
      </td>
    </tr>
  );
}

interface BudgetHistoryProps {
  readonly page: PageOf<BudgetChange>;
  readonly query: URLSearchParams;
  readonly unit: string;
  readonly nameOf: NameOf;
}

export function BudgetHistory({ page, query, unit, nameOf }: BudgetHistoryProps) {
  return (
    <WithNames nameOf={nameOf}>
      <section>
        <p>
          <a href="/budgets">All budgets</a>
        </p>
        {page.items.length === 0 ? (
          <p>Nothing was changed.</p>
        ) : (
          <Table
            label="Changes of budgets"
            head={[
              'Time (UTC)',
              'Who',
              'Why',
              'Project',
              'Whose',
              'Change',
              `Budget (${unit})`,
              'Valid (UTC)',
            ]}
          >
            {page.items.map((change) => (
              <ChangeRow {...change} />
            ))}
          </Table>
        )}
        <Pager label="changes of budgets" path="/budgets/history" query={query} next={page.next} />
      </section>
    </WithNames>
  );
}

function ChangeRow(change: BudgetChange) {
  const { at, who, reason, projectId, userId, operation, amount, validFrom, validUntil } = change;
  return (
    <tr>
      <td class="time">{shownDate(toSecond(at))}</td>
      <th scope="row" class="who">
        <Text>{who}</Text>
      </th>
      <td class="why">{reason === null ? <span class="none">no reason</span> : <Text>{reason}</Text>}</td>
      <td class="what">
        <ProjectLink id={projectId} />
      </td>
      <td>
        <Whose userId={userId} />
      </td>
      <td>{operation}</td>
      <td class="number">{formatUnitHours(amount)}</td>
      <SpanCell from={validFrom} until={validUntil} />
    </tr>
  );
}
