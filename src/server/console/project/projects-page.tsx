import { budgetUnit } from '../../../enforcement/budget-unit.ts';
import { listProjects } from '../../../ledger/reports/projects.ts';
import { ledgerFor } from '../../budgets/asker.ts';
import { visibleProjects } from '../../users/access.ts';
import { learnNames, nameOfFor } from '../known-names.tsx';
import type { ConsolePage } from '../page.ts';
import { listPage } from '../pager.tsx';
import { ProjectsView } from './projects-view.tsx';

const ROWS = 50;
const MAX_SEARCH = 255;

export const projectsPage: ConsolePage = {
  method: 'GET',
  path: '/projects',
  action: 'list-projects',
  label: 'Projects',
  answer: async (request) => {
    const { person, query, generation, deadline } = request;
    const search = (query.get('search') ?? '').trim().slice(0, MAX_SEARCH);
    const { after } = listPage(query);
    const projectIds = visibleProjects(person);
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
          nameOf={nameOfFor(generation, person)}
          seesAll={projectIds === undefined}
        />
      ),
    };
  },
};
