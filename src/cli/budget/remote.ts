/** `budget … --endpoint`: budgets and budget requests over the API of a service. */
import { z } from 'zod';
import { EndpointError } from '../../client/bounded-fetch.ts';
import type { ApiClient } from '../../client/client.ts';
import { parseUnitHours } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND, secondText } from '../../lease/dates.ts';
import type { BudgetUsage } from '../../ledger/budgets/budgets.ts';
import type { BudgetRequest } from '../../ledger/budgets/requests/rows.ts';
import {
  amountOf,
  budgetAmountText,
  parseBudget,
  parseBudgetKey,
  secondOf,
} from '../../ledger/budgets/terms.ts';
import { BUDGET_REQUEST_STATES } from '../../ledger/storage/service-tables.ts';
import { account, allOf, namesOf, type Owner, time, understood, whole } from '../common/answers.ts';
import { UsageError } from '../common/output.ts';
import { type BudgetStore, type ChargedLease, inFlags, noSuchBudget, warnOfNoBudget } from './store.ts';

const owner = {
  project: account,
  user: account.nullable(),
  valid_from: time,
  valid_until: time,
  amount: z.string(),
  unit: z.string(),
};
const budget = z.object({
  id: whole,
  ...owner,
  exact: z.object({ amount: whole, taken: whole }),
  etag: z.string(),
});
const change = z.object({
  ...owner,
  id: whole,
  at: time,
  operation: z.enum(['set', 'removed']),
  budget_id: whole,
  exact: z.object({ amount: whole }),
  who: z.string(),
  reason: z.string().nullable(),
});
const charged = z.object({
  row: whole,
  lease_id: z.string().nullable(),
  region: z.string(),
  project: account,
  user: account,
  name: z.string(),
  start: time,
  end: time,
  state: z.enum(['open', 'ended']),
  recorded_at: time,
  charges: z.array(z.object({ account: z.string(), exact: whole, from: time, until: time })),
});
const report = z.object({
  message: z.string().optional(),
  dry_run: z.boolean(),
  set: z.int(),
  changed: z.int(),
  unchanged: z.int(),
  mistakes: z.array(
    z.object({ line: z.int().nullable(), field: z.string().nullable(), message: z.string() }),
  ),
  lines: z.array(
    z.object({
      line: z.int(),
      outcome: z.enum(['set', 'changed', 'unchanged']),
      project_id: z.string(),
      user_id: z.string().nullable(),
      valid_from: z.string(),
      valid_until: z.string(),
      amount: z.string(),
      before: z.object({ valid_until: z.string(), amount: z.string() }).nullable(),
    }),
  ),
});

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
  id: whole,
  project: account,
  user: account.nullable(),
  amount,
  unit: z.string(),
  valid_until: time,
  reason: z.string(),
  state: z.enum(BUDGET_REQUEST_STATES),
  asked: z.object({ at: time, who: z.string() }),
  endorsed: step,
  settled: step,
  granted: z.object({ amount, valid_until: time, budget_id: whole }).nullable(),
});

interface RemoteBudget extends BudgetUsage {
  readonly etag: string;
}

const limit = 1000;
/** Attempts when another client changes the budget between read and write. */
const ATTEMPTS = 3;
const AGAIN = [404, 409, 412];

/** All methods throw `EndpointError`. */
export function remoteBudgets(api: ApiClient): BudgetStore {
  const listed = async (filters: { readonly project_id?: string; readonly user_id?: string } = {}) => {
    const found = await allOf(budget, api.items('/v1/budgets', { query: { ...filters, limit } }));
    const items = found.map((one): RemoteBudget => {
      const amount = BigInt(one.exact.amount);
      const taken = BigInt(one.exact.taken);
      const { id, etag } = one;
      return { ...ownerOf(one), id: BigInt(id), amount, taken, left: amount - taken, etag };
    });
    return { items, unit: unitOf(found), names: namesOf(found) };
  };
  const requested = (found: readonly z.infer<typeof request>[]) => ({
    items: found.map(requestOf),
    unit: unitOf(found),
    names: namesOf(found),
  });
  const one = (data: unknown) => requested([understood(request, data)]);
  const sizeOf = (text: string) => budgetAmountText(inFlags(() => amountOf(text, 'unit-hours')));
  const untilOf = (text: string) => secondText(inFlags(() => secondOf('until', text)));
  /** Changes the owner's budget that starts at this time. */
  const changing = async (
    { project, user, validFrom }: { project: string; user: string | undefined; validFrom: bigint },
    change: (found: RemoteBudget | undefined) => Promise<unknown>,
  ) => {
    for (let attempt = 1; ; attempt += 1) {
      const { items } = await listed(ownedBy(project, user));
      try {
        await change(
          items.find((one) => one.validFrom === validFrom && (one.userId === null) === (user === undefined)),
        );
      } catch (thrown) {
        const isAgain = thrown instanceof EndpointError && AGAIN.includes(thrown.status ?? 0);
        if (!isAgain || attempt === ATTEMPTS) {
          throw thrown;
        }
        continue;
      }
      return listed({ project_id: project });
    }
  };
  return {
    async set(project, flags) {
      const reason = reasonOf(flags);
      const { from, until, amount, user } = flags;
      const owner = { projectId: project, userId: user };
      const wanted = inFlags(() => parseBudget({ ...owner, from, until, amount }, 'unit-hours'));
      const { validFrom } = wanted;
      const body = {
        amount: budgetAmountText(wanted.amount),
        valid_until: secondText(wanted.validUntil),
        reason,
      };
      return changing({ project, user, validFrom }, (found) =>
        found === undefined
          ? api.POST('/v1/budgets', {
              body: { ...ownedBy(project, user), valid_from: secondText(validFrom), ...body },
            })
          : api.PATCH('/v1/budgets/{budget_id}', {
              params: { path: { budget_id: String(found.id) }, header: { 'If-Match': found.etag } },
              body,
            }),
      );
    },

    async remove(project, flags) {
      const reason = reasonOf(flags);
      const { from, user } = flags;
      const { validFrom } = inFlags(() => parseBudgetKey({ projectId: project, userId: user, from }));
      return changing({ project, user, validFrom }, async (found) => {
        if (found === undefined) {
          throw noSuchBudget({ projectId: project, userId: user ?? null, validFrom });
        }
        await api.DELETE('/v1/budgets/{budget_id}', {
          params: {
            path: { budget_id: String(found.id) },
            header: { 'If-Match': found.etag },
            query: { reason },
          },
        });
      });
    },

    list: () => listed(),

    async show(project) {
      const { items, unit, names } = await listed({ project_id: project });
      const found = await allOf(
        charged,
        api.items('/v1/budgets/charges', { query: { project_id: project, limit } }),
      );
      if (items.length === 0) {
        warnOfNoBudget(project, found.length > 0);
      }
      const ofLeases = namesOf(found);
      const user = (id: string) => (names.user(id) === id ? ofLeases.user(id) : names.user(id));
      return { items, unit, names: { ...names, user }, leases: found.map(chargedLease) };
    },

    async changes(project) {
      const filters = { order: 'oldest' as const, ...(project !== undefined && { project_id: project }) };
      const found = await allOf(change, api.items('/v1/budgets/changes', { query: { ...filters, limit } }));
      const items = found.map((one) => ({
        ...ownerOf(one),
        id: BigInt(one.id),
        at: one.at,
        budget: BigInt(one.budget_id),
        operation: one.operation,
        amount: BigInt(one.exact.amount),
        who: one.who,
        reason: one.reason,
      }));
      return { items, unit: unitOf(found) };
    },

    async import(open, flags) {
      const isDryRun = flags.dryRun ?? false;
      refuseWho(flags.who);
      const reason = isDryRun ? flags.reason : reasonOf(flags);
      const { text, isJson } = open();
      try {
        const { data } = await api.POST('/v1/budgets/import', {
          params: {
            query: { dry_run: isDryRun ? 'true' : 'false', ...(reason !== undefined && { reason }) },
          },
          headers: { 'Content-Type': isJson ? 'application/json' : 'text/csv' },
          body: text,
          bodySerializer: (body: unknown) => body as string,
        });
        return understood(report, data);
      } catch (thrown) {
        // Errors in the file are a valid response, too.
        const refused = thrown instanceof EndpointError ? report.safeParse(thrown.answer).data : undefined;
        if (refused === undefined) {
          throw thrown;
        }
        return refused;
      }
    },

    async export(format, project) {
      const query = { format, ...(project !== undefined && { project_id: project }) };
      const { data } = await api.GET('/v1/budgets/export', { params: { query }, parseAs: 'text' });
      return [understood(z.string(), data)];
    },

    async ask(project, flags) {
      refuseWho(flags.who);
      const { user, reason } = flags;
      const body = {
        ...ownedBy(project, user),
        amount: sizeOf(flags.amount),
        valid_until: untilOf(flags.until),
        reason,
      };
      return one((await api.POST('/v1/budget-requests', { body })).data);
    },

    async take(kind, id, flags) {
      refuseWho(flags.who);
      const { reason, amount: size, until } = flags;
      const params = { path: { request_id: id } };
      const body = {
        ...((kind === 'grant' || kind === 'refuse' || reason !== undefined) && { reason: reason ?? '' }),
        ...(size !== undefined && { amount: sizeOf(size) }),
        ...(until !== undefined && { valid_until: untilOf(until) }),
      };
      const path = `/v1/budget-requests/{request_id}/${kind}` as const;
      return one((await api.POST(path, { params, body })).data);
    },

    async requests(project, state) {
      const filters = {
        ...(project !== undefined && { project_id: project }),
        ...(state !== 'all' && { state }),
      };
      return requested(
        await allOf(request, api.items('/v1/budget-requests', { query: { ...filters, limit } })),
      );
    },
  };
}

function requestOf({ project, user, valid_until, granted, ...rest }: z.infer<typeof request>): BudgetRequest {
  return {
    ...rest,
    id: BigInt(rest.id),
    projectId: project.id,
    userId: user?.id ?? null,
    asker: '',
    validUntil: valid_until / MICROSECONDS_PER_SECOND,
    granted: granted && {
      amount: granted.amount,
      budget: BigInt(granted.budget_id),
      validUntil: granted.valid_until / MICROSECONDS_PER_SECOND,
    },
  };
}

function chargedLease(one: z.infer<typeof charged>): ChargedLease {
  return {
    lease: {
      row: BigInt(one.row),
      leaseId: one.lease_id,
      region: one.region,
      projectId: one.project.id,
      userId: one.user.id,
      name: one.name,
      start: one.start,
      end: one.end,
      state: one.state,
      recordedAt: one.recorded_at,
      endedAt: null,
    },
    charges: one.charges.map(({ account: name, exact, from, until }) => ({
      account: name,
      amount: BigInt(exact),
      from: from / MICROSECONDS_PER_SECOND,
      until: until / MICROSECONDS_PER_SECOND,
    })),
  };
}

function ownedBy(project: string, user: string | undefined) {
  return { project_id: project, ...(user !== undefined && { user_id: user }) };
}

function refuseWho(who: string | undefined): void {
  if (who !== undefined) {
    throw new UsageError('--who: a service records who the token belongs to; leave it out with --endpoint');
  }
}

/** A service records the user of the token, and requires a reason. */
function reasonOf({ reason, who }: { readonly reason?: string; readonly who?: string }): string {
  refuseWho(who);
  if (reason === undefined || reason.trim() === '') {
    throw new UsageError('--reason: required with --endpoint');
  }
  return reason;
}

function ownerOf({
  project,
  user,
  valid_from,
  valid_until,
}: Owner & { readonly valid_from: bigint; readonly valid_until: bigint }) {
  return {
    projectId: project.id,
    userId: user?.id ?? null,
    validFrom: valid_from / MICROSECONDS_PER_SECOND,
    validUntil: valid_until / MICROSECONDS_PER_SECOND,
  };
}

function unitOf(found: readonly { readonly unit: string }[]): string {
  return found[0]?.unit ?? 'unit-hours';
}
