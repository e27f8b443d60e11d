/** Budgets in pages, with what may be done with each. */
import { formatUnitHours } from '../../../filter/amount.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { BudgetView } from '../../../ledger/budgets/view.ts';
import type { PageOf } from '../../../ledger/reports/pages.ts';
import { mayChange } from '../../budgets/change-budgets.ts';
import { may } from '../../users/access.ts';
import type { Person } from '../../users/person.ts';
import { Account, type NameOf } from '../account.tsx';
import { BudgetBar } from '../budget-bar.tsx';
import { WithNames } from '../known-names.tsx';
import { Message } from '../message.tsx';
import { Pager } from '../pager.tsx';
import { pathWith, projectPath } from '../paths.ts';
import { Table } from '../table.tsx';
import { Text } from '../text.tsx';
import { shownDate } from '../time-scale.ts';

export interface BudgetListProps {
  readonly page: PageOf<BudgetView>;
  /** Of the page. */
  readonly query: URLSearchParams;
  readonly search: string;
  /** Only of this project; empty = of all. */
  readonly project: string;
  readonly person: Person;
  readonly unit: string;
  readonly nameOf: NameOf;
  /** Microseconds of the epoch. */
  readonly now: bigint;
  /** What was done just before. */
  readonly done: string | undefined;
}

export function BudgetList(props: BudgetListProps) {
  const { page, query, search, project, person, nameOf, done } = props;
  const setsAny = may(person, 'set-user-budget', project === '' ? undefined : project);
  return (
    <WithNames nameOf={nameOf}>
      <section>
        {done !== undefined && <Message kind="done">{done}</Message>}
        <nav aria-label="About budgets" class="pages">
          {setsAny && <a href={pathWith('/budgets/new', { project })}>Set a budget</a>}
          <a href={pathWith('/budgets/history', { project })}>History</a>
          {may(person, 'import-budgets') && <a href="/budgets/import">Import</a>}
          <a href={pathWith('/v1/budgets/export', { format: 'csv' })} download="budgets.csv">
            Export as CSV
          </a>
        </nav>
        <form method="get" action="/budgets" class="inline">
          <label for="search">Id of project or user contains</label>
          <input
            id="search"
            name="search"
            type="search"
            value={search}
            maxLength={255}
            autocomplete="off"
            spellcheck={false}
          />
          {project !== '' && <input type="hidden" name="project" value={project} />}
          <button type="submit">Search</button>
          {(search !== '' || project !== '') && <a href="/budgets">Show all</a>}
        </form>
        {project !== '' && (
          <p>
            Of the project{' '}
            <a href={projectPath(project)}>
              <Account kind="project" id={project} />
            </a>
          </p>
        )}
        {page.items.length === 0 ? <p>There are none.</p> : <Rows {...props} />}
        <Pager label="budgets" path="/budgets" query={query} next={page.next} />
      </section>
    </WithNames>
  );
}

function Rows({ page, person, unit, now }: BudgetListProps) {
  return (
    <Table
      label="Budgets"
      head={['Project', 'Whose', 'Budget', 'Left', 'Valid (UTC)', 'Set last', 'Actions']}
    >
      {page.items.map((budget) => (
        <Row budget={budget} person={person} unit={unit} second={now / MICROSECONDS_PER_SECOND} />
      ))}
    </Table>
  );
}

interface RowProps {
  readonly budget: BudgetView;
  readonly person: Person;
  readonly unit: string;
  readonly second: bigint;
}

function Row({ budget, person, unit, second }: RowProps) {
  const { id, projectId, userId, amount, taken, left, validFrom, validUntil, changedBy, reason } = budget;
  const when = validUntil <= second ? 'not valid any more' : validFrom > second ? 'not valid yet' : '';
  return (
    <tr>
      <th scope="row" class="what">
        <a href={projectPath(projectId)}>
          <Account kind="project" id={projectId} />
        </a>
      </th>
      <td class="who">{userId === null ? 'Project' : <Account kind="user" id={userId} />}</td>
      <td class="number">{formatUnitHours(amount)}</td>
      <td>
        <BudgetBar amount={amount} taken={taken} left={left} unit={unit} />
      </td>
      <td class="time">
        {shownDate(validFrom * MICROSECONDS_PER_SECOND)} to
        <br />
        {shownDate(validUntil * MICROSECONDS_PER_SECOND)}
        {when !== '' && <small>{when}</small>}
      </td>
      <td>
        <Text>{changedBy}</Text>
        {reason !== null && (
          <small>
            <Text>{reason}</Text>
          </small>
        )}
      </td>
      <td>
        {mayChange(person, budget) && (
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
