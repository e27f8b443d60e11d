/** Pages that set, change and remove a budget. */
import { formatUnitHours } from '../../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import { budgetAmountText } from '../../../ledger/budgets/terms.ts';
import { type BudgetView, pageOfBudgets } from '../../../ledger/budgets/view.ts';
import { learnNames } from '../../api/shown.ts';
import {
  amendBudgetFor,
  budgetEtag,
  budgetFor,
  createBudgetFor,
  mayChange,
  withdrawBudgetFor,
} from '../../budgets/change-budgets.ts';
import { ledgerFor, notAllowed } from '../../budgets/named-accounts.ts';
import { may } from '../../users/caller.ts';
import { type PageRequest, pathWith, type ShownPage } from '../page.ts';
import { ChangeForm, type FieldEntry, Fields } from '../parts/fields.tsx';
import { Account, BudgetOwner, type Fact, Facts, Message, Text, Time } from '../parts/parts.tsx';
import { shownSecond, toSecond } from '../parts/time-scale.ts';
import {
  amountField,
  budgetValues,
  ChooseProject,
  FROM,
  fieldsOf,
  formPages,
  local,
  ProjectField,
  REASON,
  type Sent,
  UNTIL,
  WholeMistake,
} from './form-parts.tsx';

const SETTING = { GET: 'set-user-budget', POST: 'set-user-budget' } as const;
const NEW_PATH = '/budgets/new';

/** `done`: a word for the list of budgets. */
const toBudgets = ({ projectId: project }: BudgetView, done: string) =>
  pathWith('/budgets', { project, done });

export const NEW_BUDGET_PAGES = formPages(NEW_PATH, SETTING, newBudget, async (request, values) =>
  toBudgets(await createBudgetFor(request, { ...values, user_id: values.user_id || null }), 'set'),
);

async function newBudget(request: PageRequest, sent: Sent | undefined): Promise<ShownPage> {
  const { caller, csrf, query, unit } = request;
  const title = 'Set a budget';
  const maySetProject = may(caller, 'set-project-budget');
  const managed = caller.memberships.filter(({ isManager }) => isManager).map(({ projectId }) => projectId);
  const linked = { project_id: query.get('project') ?? '', user_id: query.get('user') ?? '' };
  const given = sent?.values ?? budgetValues(new URLSearchParams(linked));
  const project = given.project_id || (!maySetProject && managed.length === 1 ? (managed[0] ?? '') : '');
  if (!maySetProject && project === '') {
    return { title, main: <ChooseProject projects={managed} path={NEW_PATH} /> };
  }
  if (project !== '' && !may(caller, 'set-user-budget', project)) {
    throw notAllowed();
  }
  const within = project === '' ? undefined : await budgetInForce(request, project);
  const values =
    sent === undefined
      ? {
          ...given,
          project_id: project,
          valid_from: given.valid_from || (within ? local(within.validFrom) : ''),
          valid_until: given.valid_until || (within ? local(within.validUntil) : ''),
        }
      : given;
  const fields = fieldsOf(values, sent);
  const user: FieldEntry = {
    name: 'user_id',
    label: maySetProject ? 'User (optional)' : 'User',
    hint: maySetProject ? 'The id, or name@domain. Empty: the whole project.' : 'The id, or name@domain.',
    isRequired: !maySetProject,
  };
  return {
    title,
    main: (
      <section>
        <WholeMistake sent={sent} />
        {within !== undefined && (
          <p class="hint">
            The project's budget in force: {formatUnitHours(within.amount)} {unit}, of which{' '}
            {formatUnitHours(within.left, 'down')} are left, from {shownSecond(within.validFrom)} to{' '}
            {shownSecond(within.validUntil)}.
          </p>
        )}
        <ChangeForm action={NEW_PATH} csrf={csrf}>
          <ProjectField isTyped={maySetProject} fields={fields} />
          <Fields fields={[user]} {...fields} />
          <div class="fields">
            <Fields fields={[amountField(unit), FROM, UNTIL]} {...fields} />
          </div>
          <Fields fields={[REASON]} {...fields} />
          <button type="submit">Set the budget</button>
        </ChangeForm>
      </section>
    ),
  };
}

/** The project's own budget that is in force now, which limits what a manager may set. */
async function budgetInForce(request: PageRequest, projectId: string): Promise<BudgetView | undefined> {
  const ledger = await ledgerFor(request);
  const validAt = ledger.now() / MICROSECONDS_PER_SECOND;
  const query = { projectIds: [projectId], userId: null, validAt, limit: 1, after: undefined };
  return (await pageOfBudgets(ledger, query, request.deadline)).items[0];
}

const PATH = '/budgets/{budget_id}';
const idOf = ({ params }: PageRequest) => params.budget_id ?? '';
const etagOf = ({ form }: PageRequest) => form.get('etag') ?? '';

export const EDIT_BUDGET_PAGES = [
  ...formPages(PATH, SETTING, editBudget(false), async (request, values) => {
    return toBudgets(await amendBudgetFor(request, idOf(request), etagOf(request), values), 'changed');
  }),
  ...formPages(`${PATH}/remove`, SETTING, editBudget(true), async (request, { reason }) =>
    toBudgets(await withdrawBudgetFor(request, idOf(request), etagOf(request), reason), 'removed'),
  ),
];

const CONFLICT = 412;

function editBudget(isRemoval: boolean) {
  return async (request: PageRequest, sent: Sent | undefined): Promise<ShownPage> => {
    const { caller, csrf, unit } = request;
    const budget = await budgetFor(request, idOf(request));
    if (!mayChange(caller, budget)) {
      throw notAllowed();
    }
    await learnNames(request, [budget]);
    const path = `/budgets/${budget.id}`;
    /** Whether another user has changed it since the form was opened. */
    const isChanged = sent?.status === CONFLICT;
    // After other mistakes the old ETag stays: the user has not been shown concurrent changes yet.
    const etag = sent === undefined || isChanged ? budgetEtag(budget) : etagOf(request);
    const now = { amount: budgetAmountText(budget.amount), valid_until: local(budget.validUntil) };
    const fields = fieldsOf(sent?.values ?? budgetValues(new URLSearchParams(now)), sent);
    return {
      title: isRemoval ? 'Remove a budget' : 'Change a budget',
      main: (
        <section>
          {isChanged ? <Changed {...budget} /> : <WholeMistake sent={sent} />}
          {isRemoval && <p>Remove this budget? Its charges are kept.</p>}
          <Facts facts={factsOf(budget, unit)} />
          <ChangeForm action={isRemoval ? `${path}/remove` : path} csrf={csrf}>
            {/* A text field: "back" does not restore fields of type hidden. */}
            <input name="etag" value={etag} hidden />
            {!isRemoval && (
              <div class="fields">
                <Fields fields={[amountField(unit), UNTIL]} {...fields} />
              </div>
            )}
            <Fields fields={[REASON]} {...fields} />
            {isRemoval ? (
              <p class="buttons">
                <button type="submit">Remove the budget</button>
                <a href={pathWith('/budgets', { project: budget.projectId })}>Keep the budget</a>
              </p>
            ) : (
              <button type="submit">{isChanged ? 'Change it anyway' : 'Change the budget'}</button>
            )}
          </ChangeForm>
          {!isRemoval && (
            <p>
              <a href={`${path}/remove`}>Remove this budget</a>
            </p>
          )}
        </section>
      ),
    };
  };
}

/** Another user changed the budget first: shows that change, which is not overwritten without asking. */
function Changed({ changedBy, reason }: BudgetView) {
  return (
    <Message kind="error">
      Nothing was changed: <Text>{changedBy}</Text> has changed this budget since
      {reason !== null && (
        <>
          {' ('}
          <Text>{reason}</Text>)
        </>
      )}
      . Its current values are below.
    </Message>
  );
}

function factsOf(budget: BudgetView, unit: string): Fact[] {
  const { projectId, userId, amount, taken, left, validFrom, validUntil, changedAt, changedBy } = budget;
  return [
    ['Project', <Account kind="project" id={projectId} />],
    ['Owner', <BudgetOwner userId={userId} project="the whole project" />],
    [
      'Budget',
      `${formatUnitHours(amount)} ${unit}, ${formatUnitHours(taken)} taken, ${formatUnitHours(left, 'down')} left`,
    ],
    [
      'Valid (UTC)',
      <>
        <Time at={validFrom * MICROSECONDS_PER_SECOND} /> to{' '}
        <Time at={validUntil * MICROSECONDS_PER_SECOND} />
      </>,
    ],
    [
      'Last change',
      <>
        <Time at={toSecond(changedAt)} /> by <Text>{changedBy}</Text>
      </>,
    ],
  ];
}
