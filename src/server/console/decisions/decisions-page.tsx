/** The list of decisions with a search form. */
import { visibleProjects } from '../../users/caller.ts';
import type { ConsolePage, PageRequest } from '../page.ts';
import { Fields } from '../parts/fields.tsx';
import { listPage, Pager } from '../parts/pager.tsx';
import { Message, Section } from '../parts/parts.tsx';
import { DecisionTable } from './decision-table.tsx';
import {
  type AskedDecisions,
  AWAY,
  askedDecisions,
  FIELDS,
  type FoundDecisions,
  findDecisions,
  OUTCOMES,
} from './found-decisions.ts';

const PATH = '/decisions';
const LIMIT = 50;

export const decisionsPage: ConsolePage = {
  method: 'GET',
  path: PATH,
  action: 'see-decisions',
  label: 'Decisions',
  answer: async (request) => {
    const asked = askedDecisions(request.query);
    const isWrong = asked.mistakes.size > 0;
    const { after } = listPage(request.query);
    const found = isWrong
      ? undefined
      : await findDecisions(request, { ...asked.filters, limit: LIMIT, after });
    return {
      status: isWrong ? 400 : 200,
      title: 'Decisions',
      main: (
        <>
          <SearchForm asked={asked} request={request} />
          {found !== undefined && <Found found={found} request={request} />}
        </>
      ),
    };
  },
};

interface Props {
  readonly asked: AskedDecisions;
  readonly found: FoundDecisions;
  readonly request: PageRequest;
}

function SearchForm({ asked: { texts, mistakes }, request }: Pick<Props, 'asked' | 'request'>) {
  const own = visibleProjects(request.caller);
  const { filters } = request.generation.configuration;
  // Date inputs do not show invalid dates.
  const typeOf = (name: string) => (mistakes.has(name) ? 'text' : 'datetime-local');
  return (
    <Section id="search" title="Search">
      {mistakes.size > 0 && <Message kind="error">Nothing was searched: some fields are not valid.</Message>}
      <form method="get" action={PATH} autocomplete="off">
        <div class="fields">
          <Fields
            values={texts}
            mistakes={mistakes}
            fields={[
              { name: 'project', label: 'Project', hint: 'Its id, or name@domain.', suggestions: own ?? [] },
              { name: 'user', label: 'User', hint: 'The id, or name@domain.' },
              { name: 'lease', label: 'Lease id' },
              {
                name: 'filter',
                label: 'Filter',
                hint: 'A filter that refused the lease, or would have.',
                suggestions: filters
                  .filter(({ audit }) => !(audit && own !== undefined))
                  .map(({ installed }) => installed.name),
              },
              {
                name: 'outcome',
                label: 'Outcome',
                options: [
                  ['', 'any'],
                  ['refused', 'refused: rejected or failed'],
                  ...OUTCOMES.map((one) => [one, one] as const),
                ],
              },
              { name: 'since', label: 'From (UTC)', type: typeOf('since') },
              { name: 'until', label: 'Until (UTC)', type: typeOf('until') },
              {
                name: 'request',
                label: 'Request id',
                hint: 'From the response to the user, or from a log.',
              },
            ]}
          />
        </div>
        <div class="actions">
          <button type="submit">Search</button>
          {FIELDS.some((name) => texts[name] !== '') && <a href={PATH}>Show all</a>}
        </div>
      </form>
    </Section>
  );
}

function Found({ found: { items, next, of }, request }: Pick<Props, 'found' | 'request'>) {
  const isForMember = visibleProjects(request.caller) !== undefined;
  const label = 'Decisions, newest first';
  const empty =
    next === undefined ? 'No decisions.' : 'No decisions on this page; the search continues on the next one.';
  return (
    <Section id="found" title="Results" isLive>
      {of === 'away' && <Message kind="error">{AWAY}</Message>}
      <p class="hint">
        {of === 'all'
          ? 'Decisions of all replicas.'
          : of === 'away'
            ? 'Only the last 50 decisions of this process.'
            : 'Only the last 50 decisions of this process: decisions are not stored ([service] decision_store).'}{' '}
        <b>exempt</b>: the project is in exempt_projects, so no filter was run.{' '}
        {!isForMember && (
          <>
            <b>audit</b>: allowed, but an audited filter would have rejected it. <b>allowed-on-error</b>:
            allowed by a filter that failed. <b>bypassed</b>: a cluster of SkyPilot that no policy has
            checked.{' '}
          </>
        )}
        <b>changed</b>: allowed, but changed by a filter.
      </p>
      <DecisionTable label={label} decisions={items} isForMember={isForMember} empty={empty} />
      <Pager label={label} path={PATH} query={request.query} next={next} />
    </Section>
  );
}
