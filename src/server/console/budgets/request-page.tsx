/** One request for more budget, and the form for its next step. */
import { budgetUnit } from '../../../enforcement/configuration.ts';
import { formatUnitHours } from '../../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import { type BudgetRequest, isOpen, type TakenStep } from '../../../ledger/budgets/requests/rows.ts';
import { budgetAmountText } from '../../../ledger/budgets/terms.ts';
import { ApiError } from '../../api/route.ts';
import { mayTake, requestFor, stepRequestFor } from '../../budgets/request-budgets.ts';
import { type PageRequest, pathWith, type ShownPage } from '../page.ts';
import { ChangeForm, type FieldEntry, Fields } from '../parts/fields.tsx';
import {
  type Fact,
  Facts,
  learnNames,
  Message,
  ProjectLink,
  Small,
  Text,
  Time,
  Whose,
} from '../parts/parts.tsx';
import { toSecond } from '../parts/time-scale.ts';
import {
  amountField,
  budgetValues,
  fieldsOf,
  formPages,
  local,
  REASON,
  type Sent,
  UNTIL,
  WholeMistake,
} from './form-parts.tsx';

export const REQUESTS_PATH = '/budgets/requests';

export const NEEDED_UNTIL: FieldEntry = {
  ...UNTIL,
  label: 'Needed until (UTC)',
  hint: 'A budget that ends before is extended.',
};

export const STATES: Readonly<Record<BudgetRequest['state'], string>> = {
  requested: 'waiting for a manager',
  endorsed: 'waiting for an operator',
  granted: 'the budget has grown by it',
  changed: 'granted, but not as asked',
  refused: 'nothing was changed',
  withdrawn: 'by the user who asked for it',
};

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
  const { caller, csrf, query, generation } = request;
  const found = await requestFor(request, idOf(request));
  await learnNames(generation, [found]);
  const { id, state, projectId } = found;
  const unit = budgetUnit(generation.configuration);
  const asked = { amount: budgetAmountText(found.amount), valid_until: local(found.validUntil) };
  const fields = fieldsOf(sent?.values ?? budgetValues(new URLSearchParams(asked)), sent);
  const steps = STEPS.filter(
    ([kind]) =>
      isOpen(found) && mayTake(caller, found, kind) && !(kind === 'endorse' && state === 'endorsed'),
  );
  const reason = {
    ...REASON,
    isRequired: false,
    hint: 'Needed to grant and to refuse. Everybody in the project sees it.',
  };
  return {
    title: `Request ${id}`,
    main: (
      <section>
        {query.get('done') === state && (
          <Message kind="done">
            {state === 'requested' ? 'The request is made.' : `The request is ${state}.`}
          </Message>
        )}
        <WholeMistake sent={sent} />
        <p>
          <a href={REQUESTS_PATH}>All requests</a> ·{' '}
          <a href={pathWith(REQUESTS_PATH, { project: projectId, state: 'all' })}>Those of the project</a>
        </p>
        <Facts facts={factsOf(found, unit)} />
        {steps.length > 0 && (
          <ChangeForm action={`${REQUESTS_PATH}/${id}`} csrf={csrf}>
            {steps.some(([kind]) => kind === 'grant') && (
              <div class="fields">
                <Fields fields={[amountField(unit, 'Grant'), NEEDED_UNTIL]} {...fields} />
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
    ['Whose', <Whose userId={userId} project="the whole project" />],
    [
      'Asked for',
      <>
        {formatUnitHours(amount)} {unit} more, until <Time at={validUntil * MICROSECONDS_PER_SECOND} /> UTC
      </>,
    ],
    ['Asked by', <By {...asked} reason={reason} />],
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
