import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { PageOf } from '../../../ledger/reports/pages.ts';
import { COUNTED_OPEN, listProjects, type ProjectRow } from '../../../ledger/reports/projects.ts';
import { learnNames } from '../../api/shown.ts';
import { ledgerFor } from '../../budgets/named-accounts.ts';
import { visibleProjects } from '../../users/caller.ts';
import { type ConsolePage, queryText } from '../page.ts';
import { SearchForm } from '../parts/fields.tsx';
import { List, listPage } from '../parts/pager.tsx';
import { type Column, column, ProjectLink, Time } from '../parts/parts.tsx';
import { BudgetBar } from '../parts/pictures.tsx';

const ROWS = 50;

export const projectsPage: ConsolePage = {
  method: 'GET',
  path: '/projects',
  action: 'list-projects',
  label: 'Projects',
  answer: async (request) => {
    const { caller, query, deadline, unit } = request;
    const search = queryText(query, 'search');
    const projectIds = visibleProjects(caller);
    const wanted = { projectIds, search: search || undefined, limit: ROWS, after: listPage(query).after };
    const page = await listProjects(await ledgerFor(request), wanted, deadline);
    await learnNames(request, page.items);
    return {
      title: 'Projects',
      main: <ProjectsView search={search} page={page} query={query} unit={unit} />,
    };
  },
};

interface ProjectsData {
  readonly search: string;
  readonly page: PageOf<ProjectRow>;
  readonly query: URLSearchParams;
  readonly unit: string;
}

export function ProjectsView({ search, page, query, unit }: ProjectsData) {
  return (
    <section>
      <p class="hint">Projects with leases or budgets.</p>
      <SearchForm action="/projects" label="Id contains" search={search} isNarrowed={search !== ''} />
      <List
        label="Projects"
        columns={columns(unit)}
        path="/projects"
        empty={search === '' ? 'No projects.' : 'No project has an id that contains this text.'}
        page={page}
        query={query}
      />
    </section>
  );
}

function columns(unit: string): readonly Column<ProjectRow>[] {
  return [
    column('Project', 'what', ({ projectId }) => <ProjectLink id={projectId} />),
    column('Budget in force', undefined, ({ budget }) =>
      budget === null ? <span class="none">none</span> : <BudgetBar {...budget} unit={unit} />,
    ),
    column('Valid until', 'time', ({ budget }) =>
      budget === null ? '' : <Time at={budget.validUntil * MICROSECONDS_PER_SECOND} />,
    ),
    column('Open leases', 'number', ({ openLeases }) =>
      openLeases >= COUNTED_OPEN ? `more than ${COUNTED_OPEN - 1}` : openLeases,
    ),
  ];
}
