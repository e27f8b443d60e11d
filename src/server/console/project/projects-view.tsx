/** The list of projects: what is left of each one's budget, and how many leases are open. */

import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { PageOf } from '../../../ledger/reports/pages.ts';
import { COUNTED_OPEN, type ProjectRow } from '../../../ledger/reports/projects.ts';
import { Account, type NameOf } from '../account.tsx';
import { BudgetBar } from '../budget-bar.tsx';
import { WithNames } from '../known-names.tsx';
import { Pager } from '../pager.tsx';
import { projectPath } from '../paths.ts';
import { Table } from '../table.tsx';
import { shownDate } from '../time-scale.ts';

export interface ProjectsData {
  readonly search: string;
  readonly page: PageOf<ProjectRow>;
  /** Of the page. */
  readonly query: URLSearchParams;
  readonly unit: string;
  readonly nameOf: NameOf;
  /** Whether the person sees all projects there are. */
  readonly seesAll: boolean;
}

export function ProjectsView({ search, page, query, unit, nameOf, seesAll }: ProjectsData) {
  return (
    <WithNames nameOf={nameOf}>
      <section>
        <p class="hint">
          {seesAll
            ? 'Projects with leases or budgets.'
            : 'Your projects, as far as they have leases or budgets.'}
        </p>
        <form method="get" action="/projects" class="inline">
          <label for="search">Id contains</label>
          <input
            id="search"
            name="search"
            type="search"
            value={search}
            maxLength={255}
            autocomplete="off"
            spellcheck={false}
          />
          <button type="submit">Search</button>
          {search !== '' && <a href="/projects">Show all</a>}
        </form>
        {page.items.length === 0 ? (
          <p>{search === '' ? 'There are none.' : 'No project has an id that contains this text.'}</p>
        ) : (
          <Table label="Projects" head={['Project', 'Budget in force', 'Valid until', 'Open leases']}>
            {page.items.map((row) => (
              <Row row={row} unit={unit} />
            ))}
          </Table>
        )}
        <Pager label="projects" path="/projects" query={query} next={page.next} />
      </section>
    </WithNames>
  );
}

function Row({ row, unit }: { readonly row: ProjectRow; readonly unit: string }) {
  const { projectId, openLeases, budget } = row;
  return (
    <tr>
      <th scope="row" class="what">
        <a href={projectPath(projectId)}>
          <Account kind="project" id={projectId} />
        </a>
      </th>
      <td>{budget === null ? <span class="none">none</span> : <BudgetBar {...budget} unit={unit} />}</td>
      <td class="time">{budget === null ? '' : shownDate(budget.validUntil * MICROSECONDS_PER_SECOND)}</td>
      <td class="number">{openLeases >= COUNTED_OPEN ? `more than ${COUNTED_OPEN - 1}` : openLeases}</td>
    </tr>
  );
}
