import { budgetUnit } from '../../../enforcement/budget-unit.ts';
import type { PageOf } from '../../../ledger/reports/pages.ts';
import { COUNTED_OPEN, listProjects, type ProjectRow } from '../../../ledger/reports/projects.ts';

import { ledgerFor } from '../../budgets/named-accounts.ts';
import { visibleProjects } from '../../users/caller.ts';
import type { ConsolePage } from '../page.ts';
import { SearchForm } from '../parts/fields.tsx';
import { listPage, Pager } from '../parts/pager.tsx';
import { learnNames, type NameOf, nameOfFor, ProjectLink, Table, WithNames } from '../parts/parts.tsx';
import { BudgetBar } from '../parts/pictures.tsx';
import { shownSecond } from '../parts/time-scale.ts';

const ROWS = 50;
const MAX_SEARCH = 255;

export const projectsPage: ConsolePage = {
  method: 'GET',
  path: '/projects',
  action: 'list-projects',
  label: 'Projects',
  answer: async (request) => {
    const { caller, query, generation, deadline } = request;
    const search = (query.get('search') ?? '').trim().slice(0, MAX_SEARCH);
    const { after } = listPage(query);
    const projectIds = visibleProjects(caller);
    const wanted = { projectIds, search: search === '' ? undefined : search, limit: ROWS, after };
    const page = await listProjects(await ledgerFor(request), wanted, deadline);
    await learnNames(
      generation,
      page.items.map(({ projectId }) => projectId),
      [],
    );
    return {
      title: 'Projects',
      main: (
        <ProjectsView
          search={search}
          page={page}
          query={query}
          unit={budgetUnit(generation.configuration)}
          nameOf={nameOfFor(generation, caller)}
          seesAll={projectIds === undefined}
        />
      ),
    };
  },
};

interface ProjectsData {
  readonly search: string;
  readonly page: PageOf<ProjectRow>;
  readonly query: URLSearchParams;
  readonly unit: string;
  readonly nameOf: NameOf;
  /** Whether the caller sees all projects there are. */
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
        <SearchForm action="/projects" label="Id contains" search={search} isNarrowed={search !== ''} />
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
        <ProjectLink id={projectId} />
      </th>
      <td>{budget === null ? <span class="none">none</span> : <BudgetBar {...budget} unit={unit} />}</td>
      <td class="time">{budget === null ? '' : shownSecond(budget.validUntil)}</td>
      <td class="number">{openLeases >= COUNTED_OPEN ? `more than ${COUNTED_OPEN - 1}` : openLeases}</td>
    </tr>
  );
}
