/** Requests for more budget: the list, the form for a new one, and each with the form for its next step. */
import { missingBudgets } from '../../../filter/budget-claims.ts';
import { ceil, formatUnitHours, smaller } from '../../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND, secondText } from '../../../lease/dates.ts';
import { type BudgetRequest, isOpen, type TakenStep } from '../../../ledger/budgets/requests/rows.ts';
import { budgetAmountText } from '../../../ledger/budgets/terms.ts';
import { BUDGET_REQUEST_STATES, OPEN_STATES } from '../../../ledger/storage/service-tables.ts';
import { ApiError } from '../../api/route.ts';
import { learnNames } from '../../api/shown.ts';
import { notAllowed } from '../../budgets/named-accounts.ts';
import {
  askForBudgetFor,
  mayTake,
  requestFor,
  requestsFor,
  stepRequestFor,
} from '../../budgets/request-budgets.ts';
import type { FoundDecision } from '../../leases/lease-history.ts';
import { may, visibleProjects } from '../../users/caller.ts';
import { type ConsolePage, type PageRequest, pathWith, queryText, type ShownPage } from '../page.ts';
import { ChangeForm, type FieldEntry, Fields } from '../parts/fields.tsx';
import { List, listPage } from '../parts/pager.tsx';
import {
  BudgetOwner,
  type Column,
  column,
  type Fact,
  Facts,
  Message,
  OfProject,
  ProjectLink,
  Small,
  Text,
  Time,
} from '../parts/parts.tsx';
import { toSecond } from '../parts/time-scale.ts';
import {
  amountField,
  budgetValues,
  ChooseProject,
  fieldsOf,
  formPages,
  local,
  ProjectField,
  REASON,
  type Sent,
  UNTIL,
  WholeMistake,
} from './form-parts.tsx';

const REQUESTS_PATH = '/budgets/requests';
const NEW_PATH = `${REQUESTS_PATH}/new`;
const ROWS = 50;

const NEEDED_UNTIL: FieldEntry = {
  ...UNTIL,
  label: 'Needed until (UTC)',
  hint: 'A budget that ends earlier is extended.',
};

const STATES: Readonly<Record<BudgetRequest['state'], string>> = {
  requested: 'waiting for a manager',
  endorsed: 'waiting for an operator',
  granted: 'the budget was increased',
  changed: 'granted, but not as requested',
  refused: 'nothing was changed',
  withdrawn: 'by the user who made it',
};

export const requestsPage: ConsolePage = {
  method: 'GET',
  path: REQUESTS_PATH,
  action: 'list-budgets',
  answer: async (request) => {
    const { caller, query, unit } = request;
    const project = queryText(query, 'project');
    const asked = query.get('state') ?? 'open';
    const state = [...BUDGET_REQUEST_STATES, 'all'].find((one) => one === asked) ?? 'open';
    const states = BUDGET_REQUEST_STATES.filter((one) => one === state);
    const page = await requestsFor(request, {
      limit: ROWS,
      after: listPage(query).after,
      projectId: project || undefined,
      states: state === 'all' ? undefined : state === 'open' ? OPEN_STATES : states,
    });
    await learnNames(request, page.items);
    return {
      title: 'Budget requests',
      main: (
        <section>
          <nav aria-label="Requests and budgets" class="pages">
            {may(caller, 'request-budget', project || undefined) && (
              <a href={pathWith(NEW_PATH, { project })}>Request more budget</a>
            )}
            <a href="/budgets">Budgets</a>
          </nav>
          <form method="get" action={REQUESTS_PATH} class="inline">
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
            {project !== '' && <a href={REQUESTS_PATH}>Show all projects</a>}
          </form>
          <OfProject id={project} />
          <List
            label="Budget requests"
            columns={requestColumns(unit)}
            path={REQUESTS_PATH}
            empty="No requests."
            page={page}
            query={query}
          />
        </section>
      ),
    };
  },
};

function requestColumns(unit: string): readonly Column<BudgetRequest>[] {
  return [
    column('Request', undefined, ({ id }) => <a href={`${REQUESTS_PATH}/${id}`}>Request {String(id)}</a>),
    column('State', undefined, ({ state }) => (
      <>
        {state}
        <small>{STATES[state]}</small>
      </>
    )),
    column('Project', 'what', ({ projectId }) => <ProjectLink id={projectId} />),
    column('Owner', 'who', ({ userId }) => <BudgetOwner userId={userId} />),
    column(`More (${unit})`, 'number', ({ amount }) => formatUnitHours(amount)),
    column('Until (UTC)', 'time', ({ validUntil }) => <Time at={validUntil * MICROSECONDS_PER_SECOND} />),
    column('Requested by', undefined, ({ asked, reason }) => (
      <>
        <Text>{asked.who}</Text>
        <Small text={reason} />
      </>
    )),
  ];
}

export const ASK_PAGES = formPages(
  NEW_PATH,
  { GET: 'request-budget', POST: 'request-budget' },
  askForMore,
  async (request, values) => {
    const { id } = await askForBudgetFor(request, { ...values, user_id: values.user_id || null });
    return pathWith(`${REQUESTS_PATH}/${id}`, { done: 'requested' });
  },
);

async function askForMore(request: PageRequest, sent: Sent | undefined): Promise<ShownPage> {
  const { caller, csrf, query, unit } = request;
  const title = 'Request more budget';
  const own = visibleProjects(caller);
  const linked = {
    project_id: query.get('project') ?? '',
    user_id: query.get('user') ?? '',
    amount: query.get('amount') ?? '',
    valid_until: query.get('until') ?? '',
    reason: query.get('reason') ?? '',
  };
  const given = sent?.values ?? budgetValues(new URLSearchParams(linked));
  const project = given.project_id || (own?.length === 1 ? (own[0] ?? '') : '');
  if (own !== undefined && project === '') {
    return { title, main: <ChooseProject projects={own} path={NEW_PATH} /> };
  }
  if (project !== '' && !may(caller, 'request-budget', project)) {
    throw notAllowed();
  }
  await learnNames(request, [{ projectId: project || undefined }]);
  const fields = fieldsOf({ ...given, project_id: project }, sent);
  const whole: [string, string] = ['', 'The whole project'];
  const user: FieldEntry = {
    name: 'user_id',
    hint: 'Only users with a budget of their own can have more.',
    ...(may(caller, 'set-user-budget', project || undefined)
      ? { label: 'User (optional)' }
      : { label: 'Owner', options: caller.userId === null ? [whole] : [whole, [caller.userId, 'Me']] }),
  };
  return {
    title,
    main: (
      <section>
        <WholeMistake sent={sent} />
        <p class="hint">A manager of the project endorses the request, and an operator grants it.</p>
        <ChangeForm action={NEW_PATH} csrf={csrf}>
          <ProjectField isTyped={own === undefined} fields={fields} />
          <Fields fields={[user]} {...fields} />
          <div class="fields">
            <Fields fields={[amountField(unit, 'Increase'), NEEDED_UNTIL]} {...fields} />
          </div>
          <Fields fields={[{ ...REASON, hint: 'Visible to everyone in the project.' }]} {...fields} />
          <button type="submit">Request</button>
        </ChangeForm>
      </section>
    ),
  };
}

const MAX_NAME = 200;

/** A link to the request form, filled in with what a refused lease lacked in one budget. */
interface AskLink {
  readonly path: string;
  readonly text: string;
}

/** One for each budget that lacked something and for which the caller may request more. */
export function askLinksOf(
  { caller }: Pick<PageRequest, 'caller'>,
  { record, asked }: Pick<FoundDecision, 'record' | 'asked'>,
): AskLink[] {
  const { project_id: project, user_id: user, lease_name: name, outcome, operation, filters } = record;
  if (
    project === null ||
    outcome !== 'rejected' ||
    operation.includes('.') ||
    !may(caller, 'request-budget', project)
  ) {
    return [];
  }
  const missing = filters
    .flatMap(({ outcome: of, audit, message }) =>
      of === 'rejected' && !audit && message !== null ? missingBudgets(message) : [],
    )
    .filter(({ isOfUser }) => !isOfUser || user === caller.userId || may(caller, 'set-user-budget', project));
  const end = asked && ceil(asked.end);
  return missing.map(({ amount, validUntil, isOfUser }) => {
    // A grant adds to the last budget until then: not to a later one, which pays for the rest of the lease.
    const until = end !== undefined && validUntil !== undefined ? smaller(end, validUntil) : end;
    const path = pathWith(NEW_PATH, {
      project,
      user: isOfUser ? (user ?? undefined) : undefined,
      amount: amount === undefined || amount <= 0n ? undefined : budgetAmountText(amount),
      until: until === undefined ? undefined : local(until),
      reason: name === null || name === '' ? undefined : `Lease ${name.slice(0, MAX_NAME).toWellFormed()}`,
    });
    const owner = isOfUser ? 'user' : 'project';
    const valid = validUntil === undefined ? '' : ` until ${secondText(validUntil)}`;
    const which = missing.length === 1 ? '' : ` for the ${owner}${valid}`;
    return { path, text: `Request more budget${which}` };
  });
}

const STEPS = [
  ['endorse', 'Endorse'],
  ['grant', 'Grant'],
  ['refuse', 'Refuse'],
  ['withdraw', 'Withdraw'],
] as const;
const idOf = ({ params }: PageRequest) => params.request_id ?? '';

export const REQUEST_PAGES = formPages(
  `${REQUESTS_PATH}/{request_id}`,
  { GET: 'list-budgets', POST: 'request-budget' },
  oneRequest,
  async (request, { amount, valid_until, reason }) => {
    const [kind] = STEPS.find(([one]) => one === request.form.get('step')) ?? [];
    if (kind === undefined) {
      throw new ApiError(400, 'expected one of the buttons of the form');
    }
    const terms = kind === 'grant' ? { amount, valid_until } : {};
    const { id, state } = await stepRequestFor(request, idOf(request), kind, { reason, ...terms });
    return pathWith(`${REQUESTS_PATH}/${id}`, { done: state });
  },
);

async function oneRequest(request: PageRequest, sent: Sent | undefined): Promise<ShownPage> {
  const { caller, csrf, query, unit } = request;
  const found = await requestFor(request, idOf(request));
  await learnNames(request, [found]);
  const { id, state, projectId } = found;
  const asked = { amount: budgetAmountText(found.amount), valid_until: local(found.validUntil) };
  const fields = fieldsOf(sent?.values ?? budgetValues(new URLSearchParams(asked)), sent);
  const steps = STEPS.filter(
    ([kind]) =>
      isOpen(found) && mayTake(caller, found, kind) && !(kind === 'endorse' && state === 'endorsed'),
  );
  const reason = {
    ...REASON,
    isRequired: false,
    hint: 'Required to grant and to refuse. Visible to everyone in the project.',
  };
  return {
    title: `Request ${id}`,
    main: (
      <section>
        {query.get('done') === state && (
          <Message kind="done">
            {state === 'requested' ? 'The request is open.' : `The request is ${state}.`}
          </Message>
        )}
        <WholeMistake sent={sent} />
        <p>
          <a href={REQUESTS_PATH}>All requests</a> ·{' '}
          <a href={pathWith(REQUESTS_PATH, { project: projectId, state: 'all' })}>Requests of the project</a>
        </p>
        <Facts facts={factsOf(found, unit)} />
        {steps.length > 0 && (
          <ChangeForm action={`${REQUESTS_PATH}/${id}`} csrf={csrf}>
            {/* The Enter key presses the first button: a reason to refuse must not endorse or grant. */}
            {steps.length > 1 && <button type="submit" disabled hidden />}
            {steps.some(([kind]) => kind === 'grant') && (
              <div class="fields">
                <Fields fields={[amountField(unit, 'Increase'), NEEDED_UNTIL]} {...fields} />
              </div>
            )}
            <Fields fields={[reason]} {...fields} />
            <p class="buttons">
              {steps.map(([kind, text]) => (
                <button type="submit" name="step" value={kind}>
                  {text}
                </button>
              ))}
            </p>
          </ChangeForm>
        )}
      </section>
    ),
  };
}

function factsOf(request: BudgetRequest, unit: string): Fact[] {
  const { projectId, userId, amount, validUntil, reason, state, asked, endorsed, settled, granted } = request;
  return [
    ['State', `${state}: ${STATES[state]}`],
    ['Project', <ProjectLink id={projectId} />],
    ['Owner', <BudgetOwner userId={userId} project="the whole project" />],
    [
      'Requested',
      <>
        {formatUnitHours(amount)} {unit} more, until <Time at={validUntil * MICROSECONDS_PER_SECOND} /> UTC
      </>,
    ],
    ['Requested by', <By {...asked} reason={reason} />],
    endorsed !== null && ['Endorsed by', <By {...endorsed} />],
    settled !== null && ['Decided by', <By {...settled} />],
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

function By({ at, who, reason }: TakenStep) {
  return (
    <>
      <Text>{who}</Text>, <Time at={toSecond(at)} /> UTC
      <Small text={reason} />
    </>
  );
}
