/** Requests for more budget, and their forms. */

import { formatUnitHours } from '../../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { BudgetRequest, TakenStep } from '../../../ledger/budgets/requests/rows.ts';
import type { RequestStep } from '../../../ledger/budgets/requests/steps.ts';
import type { PageOf } from '../../../ledger/reports/pages.ts';
import { BUDGET_REQUEST_STATES } from '../../../ledger/storage/service-tables.ts';
import { pathWith } from '../page.ts';
import { ChangeForm, type FieldEntry, Fields } from '../parts/fields.tsx';
import { List } from '../parts/pager.tsx';
import {
  type Column,
  type Fact,
  Facts,
  Message,
  OfProject,
  ProjectLink,
  Small,
  Text,
  Time,
  Whose,
} from '../parts/parts.tsx';
import { toSecond } from '../parts/time-scale.ts';
import {
  amountField,
  type BudgetValues,
  type FormMistake,
  mistakesOf,
  ProjectField,
  REASON,
  UNTIL,
  WholeMistake,
} from './budget-forms-view.tsx';

const PATH = '/budgets/requests';
const NEEDED_UNTIL: FieldEntry = {
  ...UNTIL,
  label: 'Needed until (UTC)',
  hint: 'A budget that ends before is extended.',
};

const STATES: Readonly<Record<BudgetRequest['state'], string>> = {
  requested: 'waiting for a manager',
  endorsed: 'waiting for an operator',
  granted: 'the budget has grown by it',
  changed: 'granted, but not as asked',
  refused: 'nothing was changed',
  withdrawn: 'by the user who asked for it',
};

interface RequestListProps {
  readonly page: PageOf<BudgetRequest>;
  readonly query: URLSearchParams;
  /** Only this project; empty = all. */
  readonly project: string;
  /** `open`, `all`, or a state. */
  readonly state: string;
  readonly unit: string;
  /** `undefined` = the caller may not request. */
  readonly askPath: string | undefined;
}

export function RequestList({ page, query, project, state, unit, askPath }: RequestListProps) {
  return (
    <section>
      <nav aria-label="About requests" class="pages">
        {askPath !== undefined && <a href={askPath}>Ask for more budget</a>}
        <a href="/budgets">Budgets</a>
      </nav>
      <form method="get" action={PATH} class="inline">
        {project !== '' && <input type="hidden" name="project" value={project} />}
        <label for="state">State</label>
        <select id="state" name="state">
          {['open', 'all', ...BUDGET_REQUEST_STATES].map((one) => (
            <option value={one} selected={one === state}>
              {one}
            </option>
          ))}
        </select>
        <button type="submit">Show</button>
        {project !== '' && <a href={PATH}>Show all projects</a>}
      </form>
      <OfProject id={project} />
      <List
        label="Requests for more budget"
        columns={requestColumns(unit)}
        path={PATH}
        empty="No requests."
        page={page}
        query={query}
      />
    </section>
  );
}

function requestColumns(unit: string): readonly Column<BudgetRequest>[] {
  return [
    ['Request', undefined, ({ id }) => <a href={`${PATH}/${id}`}>Request {String(id)}</a>],
    [
      'State',
      undefined,
      ({ state }) => (
        <>
          {state}
          <small>{STATES[state]}</small>
        </>
      ),
    ],
    ['Project', 'what', ({ projectId }) => <ProjectLink id={projectId} />],
    ['Whose', 'who', ({ userId }) => <Whose userId={userId} />],
    [`More (${unit})`, 'number', ({ amount }) => formatUnitHours(amount)],
    ['Until (UTC)', 'time', ({ validUntil }) => <Time at={validUntil * MICROSECONDS_PER_SECOND} />],
    [
      'Asked',
      undefined,
      ({ asked, reason }) => (
        <>
          <Text>{asked.who}</Text>
          <Small text={reason} />
        </>
      ),
    ],
  ];
}

interface FormProps {
  readonly csrf: string;
  readonly unit: string;
  readonly values: BudgetValues;
  readonly mistake: FormMistake | undefined;
}

interface AskProps extends FormProps {
  /** Whether the project is entered; otherwise it is the project in the values. */
  readonly isProjectTyped: boolean;
  /** Whether the caller may request for every user; otherwise only for the project and themselves. */
  readonly mayNameUsers: boolean;
  readonly ownId: string | null;
}

export function AskView({ csrf, unit, values, mistake, isProjectTyped, mayNameUsers, ownId }: AskProps) {
  const sent = { values, mistakes: mistakesOf(mistake) };
  const user: FieldEntry = {
    name: 'user_id',
    label: 'For whom',
    hint: 'A user can only be given more if they have a budget of their own.',
    ...(mayNameUsers
      ? { label: 'For the user (may be empty)' }
      : {
          options: [['', 'The whole project'] as const, ...(ownId === null ? [] : [[ownId, 'Me'] as const])],
        }),
  };
  return (
    <section>
      <WholeMistake mistake={mistake} />
      <p class="hint">A manager of the project endorses it, and an operator grants it.</p>
      <ChangeForm action={`${PATH}/new`} csrf={csrf}>
        <ProjectField isTyped={isProjectTyped} sent={sent} id={values.project_id} />
        <Fields fields={[user]} {...sent} />
        <div class="fields">
          <Fields
            fields={[{ ...amountField(unit), label: `How much more, in ${unit}` }, NEEDED_UNTIL]}
            {...sent}
          />
        </div>
        <Fields fields={[{ ...REASON, hint: 'Everybody in the project sees it.' }]} {...sent} />
        <button type="submit">Ask for it</button>
      </ChangeForm>
    </section>
  );
}

const BUTTONS: Readonly<Record<RequestStep['kind'], string>> = {
  endorse: 'Endorse',
  grant: 'Grant',
  refuse: 'Refuse',
  withdraw: 'Withdraw',
};

interface OneRequestProps extends FormProps {
  readonly request: BudgetRequest;
  /** Steps that the caller may take now. */
  readonly steps: readonly RequestStep['kind'][];
  /** Whether a step was just taken. */
  readonly done: boolean;
}

export function OneRequest({ request, steps, done, csrf, unit, values, mistake }: OneRequestProps) {
  const { id, state, projectId } = request;
  const sent = { values, mistakes: mistakesOf(mistake) };
  const reason = {
    ...REASON,
    isRequired: false,
    hint: 'Needed to grant and to refuse. Everybody in the project sees it.',
  };
  return (
    <section>
      {done && (
        <Message kind="done">
          {state === 'requested' ? 'The request is made.' : `The request is ${state}.`}
        </Message>
      )}
      <WholeMistake mistake={mistake} />
      <p>
        <a href={PATH}>All requests</a> ·{' '}
        <a href={pathWith(PATH, { project: projectId, state: 'all' })}>Those of the project</a>
      </p>
      <Facts facts={factsOf(request, unit)} />
      {steps.length > 0 && (
        <ChangeForm action={`${PATH}/${id}`} csrf={csrf}>
          {steps.includes('grant') && (
            <div class="fields">
              <Fields
                fields={[{ ...amountField(unit), label: `Grant, in ${unit}` }, NEEDED_UNTIL]}
                {...sent}
              />
            </div>
          )}
          <Fields fields={[reason]} {...sent} />
          <p class="buttons">
            {steps.map((kind) => (
              <button type="submit" name="step" value={kind}>
                {BUTTONS[kind]}
              </button>
            ))}
          </p>
        </ChangeForm>
      )}
    </section>
  );
}

function factsOf(request: BudgetRequest, unit: string): Fact[] {
  const { projectId, userId, amount, validUntil, reason, state, asked, endorsed, settled, granted } = request;
  return [
    ['State', `${state}: ${STATES[state]}`],
    ['Project', <ProjectLink id={projectId} />],
    ['Whose', <Whose userId={userId} project="the whole project" />],
    [
      'Asked for',
      <>
        {formatUnitHours(amount)} {unit} more, until <Time at={validUntil * MICROSECONDS_PER_SECOND} /> UTC
      </>,
    ],
    ['Asked by', <By step={{ ...asked, reason }} />],
    endorsed !== null && ['Endorsed by', <By step={endorsed} />],
    settled !== null && ['Decided by', <By step={settled} />],
    granted !== null && [
      'Granted',
      <>
        {formatUnitHours(granted.amount)} {unit}, until{' '}
        <Time at={granted.validUntil * MICROSECONDS_PER_SECOND} /> UTC ·{' '}
        <a href={pathWith('/budgets/history', { budget: String(granted.budget) })}>History of the budget</a>
      </>,
    ],
  ];
}

function By({ step: { at, who, reason } }: { readonly step: TakenStep }) {
  return (
    <>
      <Text>{who}</Text>, <Time at={toSecond(at)} /> UTC
      <Small text={reason} />
    </>
  );
}
