/** `budget request … --endpoint`: requests for more budget at a service, over its API. */
import { z } from 'zod';
import type { ApiClient } from '../../client/client.ts';
import { parseUnitHours } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { BudgetRequest } from '../../ledger/budgets/requests/rows.ts';
import { amountOf, budgetAmountText, dateText, secondOf } from '../../ledger/budgets/terms.ts';
import { BUDGET_REQUEST_STATES } from '../../ledger/storage/service-tables.ts';
import { account, allOf, namesOf, time, understood, whole } from '../common/answers.ts';
import { refuseWho, unitOf } from './remote.ts';
import type { RequestStore } from './requests.ts';
import { inFlags } from './store.ts';

const amount = z.string().transform((text, context) => {
  const parsed = parseUnitHours(text);
  if (parsed === undefined) {
    context.addIssue({ code: 'custom', message: 'expected an amount' });
    return z.NEVER;
  }
  return parsed;
});
const step = z.object({ at: time, who: z.string(), reason: z.string().nullable() }).nullable();
const request = z.object({
  ...{ id: whole, project: account, user: account.nullable(), amount, unit: z.string() },
  ...{ valid_until: time, reason: z.string(), state: z.enum(BUDGET_REQUEST_STATES) },
  asked: z.object({ at: time, who: z.string() }),
  ...{ endorsed: step, settled: step },
  granted: z.object({ amount, valid_until: time, budget_id: whole }).nullable(),
});

const LIMIT = 1000;

/** Everything throws `EndpointError`. */
export function remoteRequests(api: ApiClient): RequestStore {
  const listed = (found: readonly z.infer<typeof request>[]) => ({
    ...{ items: found.map(requestOf), unit: unitOf(found), names: namesOf(found) },
  });
  const one = (data: unknown) => listed([understood(request, data)]);
  const sizeOf = (text: string) => budgetAmountText(inFlags(() => amountOf(text, 'unit-hours')));
  const untilOf = (text: string) => dateText(inFlags(() => secondOf('until', text)));
  return {
    async ask(project, flags) {
      refuseWho(flags.who);
      const { user, reason } = flags;
      const body = {
        ...{ project_id: project, ...(user !== undefined && { user_id: user }) },
        ...{ amount: sizeOf(flags.amount), valid_until: untilOf(flags.until), reason },
      };
      return one((await api.POST('/v1/budget-requests', { body })).data);
    },

    async take(kind, id, flags) {
      refuseWho(flags.who);
      const { reason, amount: size, until } = flags;
      const params = { path: { request_id: id } };
      if (kind === 'grant') {
        const body = {
          ...{ reason: reason ?? '', ...(size !== undefined && { amount: sizeOf(size) }) },
          ...(until !== undefined && { valid_until: untilOf(until) }),
        };
        return one((await api.POST('/v1/budget-requests/{request_id}/grant', { params, body })).data);
      }
      if (kind === 'refuse') {
        const body = { reason: reason ?? '' };
        return one((await api.POST('/v1/budget-requests/{request_id}/refuse', { params, body })).data);
      }
      const body = reason === undefined ? {} : { reason };
      const path =
        kind === 'endorse'
          ? ('/v1/budget-requests/{request_id}/endorse' as const)
          : ('/v1/budget-requests/{request_id}/withdraw' as const);
      return one((await api.POST(path, { params, body })).data);
    },

    async requests(project, state) {
      const filters = {
        ...(project !== undefined && { project_id: project }),
        ...(state !== 'all' && { state }),
      };
      return listed(
        await allOf(request, api.items('/v1/budget-requests', { query: { ...filters, limit: LIMIT } })),
      );
    },
  };
}

function requestOf({ project, user, valid_until, granted, ...rest }: z.infer<typeof request>): BudgetRequest {
  return {
    ...{ ...rest, id: BigInt(rest.id), projectId: project.id, userId: user?.id ?? null, asker: '' },
    validUntil: valid_until / MICROSECONDS_PER_SECOND,
    granted: granted && {
      ...{ amount: granted.amount, budget: BigInt(granted.budget_id) },
      validUntil: granted.valid_until / MICROSECONDS_PER_SECOND,
    },
  };
}
