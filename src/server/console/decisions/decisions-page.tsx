/** What was decided, and a form to look for it. */
import { visibleProjects } from '../../users/caller.ts';
import type { ConsolePage, PageRequest } from '../page.ts';
import { Field, Select } from '../parts/fields.tsx';
import { listPage, Pager } from '../parts/pager.tsx';
import { LivePart, Message } from '../parts/parts.tsx';
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
    const isWrong = Object.keys(asked.mistakes).length > 0;
    const { after } = listPage(request.query);
    const found = isWrong
      ? undefined
      : await findDecisions(request, { filters: asked.filters, limit: LIMIT, after });
    return {
      status: isWrong ? 400 : 200,
      title: 'Decisions',
      main: (
        <>
          <SearchForm asked={asked} request={request} />
          {found !== undefined && (
            <LivePart name="decisions">
              <Found
                {...found}
                query={request.query}
                isForMember={visibleProjects(request.caller) !== undefined}
              />
            </LivePart>
          )}
        </>
      ),
    };
  },
};

function SearchForm({ asked, request }: { readonly asked: AskedDecisions; readonly request: PageRequest }) {
  const { texts, mistakes } = asked;
  const isMember = visibleProjects(request.caller) !== undefined;
  const filters = request.generation.configuration.filters.filter(({ audit }) => !(audit && isMember));
  // A browser shows no date that is not valid.
  const typeOf = (name: 'since' | 'until') => (mistakes[name] === undefined ? 'datetime-local' : 'text');
  const field = (name: keyof typeof texts) => ({ name, value: texts[name], mistake: mistakes[name] });
  const isAsked = FIELDS.some((name) => texts[name] !== '');
  return (
    <section aria-labelledby="search">
      <h2 id="search">Search</h2>
      {Object.keys(mistakes).length > 0 && (
        <Message kind="error">Nothing was looked for: some fields below are not valid.</Message>
      )}
      <form method="get" action={PATH} autocomplete="off">
        <div class="fields">
          <Field
            {...field('project')}
            label="Project"
            hint="Its id, or name@domain."
            suggestions={ownProjects(request)}
          />
          <Field {...field('user')} label="User" hint="The id, or name@domain." />
          <Field {...field('lease')} label="Lease id" />
          <Field
            {...field('filter')}
            label="Filter"
            hint="One that refused, or would have."
            suggestions={filters.map(({ installed }) => installed.name)}
          />
          <Select
            {...field('outcome')}
            label="Outcome"
            options={[
              ['', 'any'],
              ['refused', 'refused: rejected or failed'],
              ...OUTCOMES.map((one) => [one, one] as const),
            ]}
          />
          <Field {...field('since')} label="From (UTC)" type={typeOf('since')} />
          <Field {...field('until')} label="Until (UTC)" type={typeOf('until')} />
          <Field
            {...field('request')}
            label="Request id"
            hint="As in the answer that the user saw, or in a log."
          />
        </div>
        <div class="actions">
          <button type="submit">Search</button>
          {isAsked && <a href={PATH}>Show all</a>}
        </div>
      </form>
    </section>
  );
}

function ownProjects({ caller }: PageRequest): readonly string[] {
  return visibleProjects(caller) ?? [];
}

type FoundProps = FoundDecisions & { readonly query: URLSearchParams; readonly isForMember: boolean };

function Found({ decisions, next, of, query, isForMember }: FoundProps) {
  const label = 'Decisions, the newest first';
  return (
    <section aria-labelledby="found">
      <h2 id="found">Found</h2>
      {of === 'away' && <Message kind="error">{AWAY}</Message>}
      <p class="hint">
        {of === 'all'
          ? 'Of all replicas.'
          : of === 'away'
            ? 'Of the last 50 decisions of this process alone.'
            : 'Of the last 50 decisions of this process alone: decisions are not stored ([service] decision_store).'}{' '}
        <b>exempt</b>: the project is in exempt_projects, so no filter was asked.{' '}
        {!isForMember && (
          <>
            <b>audit</b>: allowed, but an audited filter would have rejected it. <b>allowed-on-error</b>:
            allowed by a filter that failed. <b>bypassed</b>: a cluster of SkyPilot that no policy was asked
            about.{' '}
          </>
        )}
        <b>changed</b>: allowed, but changed by a filter.
      </p>
      {decisions.length === 0 ? (
        <p>
          {next === undefined
            ? 'There is none.'
            : 'None among those looked at so far; go on to the next page.'}
        </p>
      ) : (
        <DecisionTable
          label={label}
          decisions={decisions.map(({ record }) => record)}
          isForMember={isForMember}
        />
      )}
      <Pager label={label} path={PATH} query={query} next={next} />
    </section>
  );
}
