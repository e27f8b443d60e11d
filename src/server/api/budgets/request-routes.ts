/** Requests for more budget: created, endorsed, granted or refused, and withdrawn. */
import { z } from 'zod';
import { secondText } from '../../../lease/dates.ts';
import type { BudgetRequest, TakenStep } from '../../../ledger/budgets/requests/rows.ts';
import type { RequestStep } from '../../../ledger/budgets/requests/steps.ts';
import { budgetAmountText } from '../../../ledger/budgets/terms.ts';
import { BUDGET_REQUEST_STATES, OPEN_STATES } from '../../../ledger/storage/service-tables.ts';
import { requestInput, type StepInput, stepInputs } from '../../budgets/inputs.ts';
import type { Requester } from '../../budgets/named-accounts.ts';
import {
  askForBudgetFor,
  requestFor,
  requestPath,
  requestsFor,
  stepRequestFor,
} from '../../budgets/request-budgets.ts';
import { type ApiExample, type ApiRoute, route } from '../route.ts';
import {
  type Accounts,
  accountSchema,
  accountsOf,
  listQuery,
  namedPage,
  ofProject,
  ofUser,
  pageAnswer,
  pageQueryOf,
  refusedAs,
  timeSchema,
  timeText,
  UNNAMED,
  WITHOUT_LEDGER,
} from '../shown.ts';
import { exactSchema, idSchema, unit } from './json.ts';

const step = z.strictObject({ at: timeSchema, who: z.string(), reason: z.string().nullable() }).nullable();
const requestSchema = z.strictObject({
  id: idSchema,
  project: accountSchema,
  user: accountSchema.nullable().meta({ description: 'null = the whole project.' }),
  amount: exactSchema.meta({ description: 'The requested increase of the budget, in unit-hours.' }),
  unit,
  valid_until: timeSchema.meta({ description: 'The time until which it is needed.' }),
  reason: z.string().meta({ description: 'The reason for the request.' }),
  state: z.enum(BUDGET_REQUEST_STATES).meta({
    description:
      '`requested` and `endorsed` are open; the others are final. `changed`: granted, but not as requested.',
  }),
  asked: z.strictObject({ at: timeSchema, who: z.string() }),
  endorsed: step.meta({ description: 'null = not endorsed.' }),
  settled: step.meta({ description: 'The step that made it final; null = open.' }),
  granted: z
    .strictObject({ amount: exactSchema, valid_until: timeSchema, budget_id: idSchema })
    .nullable()
    .meta({ description: 'The increase of the budget; null = not granted.' }),
});

const shown = (status: number, description: string, headers: ApiExample['headers'] = {}): ApiExample => ({
  status,
  description,
  schema: requestSchema,
  name: 'BudgetRequest',
  headers,
});
const NOT_THERE = refusedAs(
  404,
  'No such request, or the caller may not see its project, or no enabled filter uses a ledger.',
);
const NOT_OPEN = refusedAs(409, 'The state of the request does not allow this step.');

const listRequests = route({
  id: 'listBudgetRequests',
  method: 'GET',
  path: '/v1/budget-requests',
  action: 'list-budgets',
  summary: 'List requests for more budget',
  description: 'Newest first. Members see requests of their projects.',
  query: listQuery({
    project_id: ofProject(),
    user_id: ofUser('requests for'),
    state: z
      .enum([...BUDGET_REQUEST_STATES, 'open'])
      .optional()
      .meta({ description: 'Only requests in this state; `open` = requested or endorsed.' }),
  }),
  answers: [pageAnswer(requestSchema, 'BudgetRequests'), WITHOUT_LEDGER, UNNAMED],
  async answer(request) {
    const { project_id, user_id, state } = request.query;
    const page = await requestsFor(request, {
      ...pageQueryOf(request.query),
      projectId: project_id,
      userId: user_id,
      states: state === undefined ? undefined : state === 'open' ? OPEN_STATES : [state],
    });
    return { json: await namedPage(request, page, requestJson) };
  },
});

const getRequest = route({
  id: 'getBudgetRequest',
  method: 'GET',
  path: '/v1/budget-requests/{request_id}',
  action: 'list-budgets',
  summary: 'Show a request for more budget',
  description: 'The request and its outcome.',
  answers: [shown(200, 'The request.'), NOT_THERE],
  async answer(request) {
    return answered(request, await requestFor(request, request.params.request_id ?? ''));
  },
});

const askForBudget = route({
  id: 'requestBudget',
  method: 'POST',
  path: '/v1/budget-requests',
  action: 'request-budget',
  summary: 'Request more budget',
  description:
    'Members may request budget for their project or for themselves; managers and operators for any user. Repeating an open request does not create another. A project has at most 20 open requests, and 100 within 24 hours.',
  body: {
    name: 'NewBudgetRequest',
    schema: requestInput,
    example: {
      project_id: 'climate',
      amount: '50',
      valid_until: '2030-01-01T00:00:00Z',
      reason: 'A workshop',
    },
  },
  answers: [
    shown(201, 'The request is open.', { Location: { description: 'Its URL.' } }),
    WITHOUT_LEDGER,
    refusedAs(409, 'The project has too many open requests, or has made too many within 24 hours.'),
    refusedAs(
      422,
      'A value is wrong: a date, an amount, a missing reason, an account that Keystone does not have, or a user without a budget of their own.',
    ),
  ],
  async answer(request) {
    const asked = await askForBudgetFor(request, request.body);
    return { ...(await answered(request, asked)), status: 201, headers: { Location: requestPath(asked) } };
  },
});

interface StepTexts extends Pick<ApiRoute, 'id' | 'action' | 'summary' | 'description'> {
  readonly done: string;
}

function stepRoute<Body extends StepInput>(
  kind: RequestStep['kind'],
  { description, done, ...texts }: StepTexts,
  body: NonNullable<ApiRoute<Body, Body>['body']>,
): ApiRoute {
  return route({
    ...texts,
    method: 'POST' as const,
    path: `/v1/budget-requests/{request_id}/${kind}`,
    description: `${description} A repeated request has no further effect.`,
    body,
    answers: [
      shown(200, done),
      NOT_THERE,
      NOT_OPEN,
      refusedAs(422, 'A value is wrong, the end has passed, or the budget cannot be changed this way.'),
    ],
    async answer(request) {
      const id = request.params.request_id ?? '';
      return answered(request, await stepRequestFor(request, id, kind, request.body));
    },
  });
}

const optionalReason = {
  name: 'BudgetRequestStep',
  schema: stepInputs.step,
  example: { reason: 'The workshop is part of the project' },
};

const STEPS = [
  stepRoute(
    'endorse',
    {
      id: 'endorseBudgetRequest',
      action: 'endorse-budget-request',
      summary: 'Endorse a request',
      description: 'For managers of the project and operators.',
      done: 'The request is endorsed.',
    },
    optionalReason,
  ),
  stepRoute(
    'grant',
    {
      id: 'grantBudgetRequest',
      action: 'set-user-budget',
      summary: 'Grant a request, as requested or changed',
      description:
        "Increases the owner's last budget that is in force at some time until then, and extends it if it ends earlier; a project without one gets a budget that starts now. Operators may grant every request; managers those for users of their projects, within the budgets of the project. Granting a request also endorses it.",
      done: 'The budget is increased.',
    },
    {
      name: 'BudgetGrant',
      schema: stepInputs.grant,
      example: { amount: '40', reason: 'What is left of the quarter' },
    },
  ),
  stepRoute(
    'refuse',
    {
      id: 'refuseBudgetRequest',
      action: 'endorse-budget-request',
      summary: 'Refuse a request',
      description: 'For managers of the project and operators.',
      done: 'The request is refused.',
    },
    {
      name: 'BudgetRequestRefusal',
      schema: stepInputs.refusal,
      example: { reason: 'Not before next quarter' },
    },
  ),
  stepRoute(
    'withdraw',
    {
      id: 'withdrawBudgetRequest',
      action: 'request-budget',
      summary: 'Withdraw a request',
      description: 'For the user who made the request.',
      done: 'The request is withdrawn.',
    },
    optionalReason,
  ),
];

export const BUDGET_REQUEST_ROUTES: readonly ApiRoute[] = [listRequests, getRequest, askForBudget, ...STEPS];

async function answered(requester: Requester, request: BudgetRequest) {
  return { json: requestJson(request, await accountsOf(requester, [request])) };
}

function requestJson(request: BudgetRequest, accounts: Accounts): z.infer<typeof requestSchema> {
  const { id, validUntil, state, asked, endorsed, settled, granted } = request;
  return {
    id: String(id),
    ...accounts.owner(request),
    amount: budgetAmountText(request.amount),
    unit: accounts.unit,
    valid_until: secondText(validUntil),
    reason: request.reason,
    state,
    asked: { at: timeText(asked.at), who: asked.who },
    endorsed: stepJson(endorsed),
    settled: stepJson(settled),
    granted: granted && {
      amount: budgetAmountText(granted.amount),
      valid_until: secondText(granted.validUntil),
      budget_id: String(granted.budget),
    },
  };
}

function stepJson(taken: TakenStep | null) {
  return taken && { at: timeText(taken.at), who: taken.who, reason: taken.reason };
}
