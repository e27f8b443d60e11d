/** What was decided lately, and by which filter. */
import { LivePart } from '../live-part.tsx';
import type { ConsolePage } from '../page.ts';
import { DecisionTable } from './decision-table.tsx';

export const decisionsPage: ConsolePage = {
  method: 'GET',
  path: '/decisions',
  action: 'see-decisions',
  label: 'Decisions',
  answer: async ({ recorder, person }) => {
    const ids = person.kind === 'member' ? person.memberships.map(({ projectId }) => projectId) : undefined;
    const decisions = recorder.recent
      .list()
      .filter(({ project_id }) => ids === undefined || (project_id !== null && ids.includes(project_id)));
    return {
      title: 'Decisions',
      main: (
        <LivePart name="decisions">
          <section aria-label="Decisions">
            {decisions.length === 0 ? (
              <p>None since this process started.</p>
            ) : (
              <DecisionTable label="Latest decisions" decisions={decisions} />
            )}
          </section>
        </LivePart>
      ),
    };
  },
};
