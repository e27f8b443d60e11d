/** `budget … --endpoint`: budgets at a service, over its API. */
import { z } from 'zod';
import { EndpointError } from '../../client/bounded-fetch.ts';
import type { ApiClient } from '../../client/client.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { BudgetUsage } from '../../ledger/budgets/budgets.ts';
import { budgetAmountText, dateText, parseBudget, parseBudgetKey } from '../../ledger/budgets/terms.ts';
import { account, allOf, namesOf, type Owner, time, understood, whole } from '../common/answers.ts';
import { UsageError } from '../common/output.ts';
import type { RequestStore } from './requests.ts';
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
  ...{ row: whole, lease_id: z.string().nullable(), region: z.string(), project: account, user: account },
  ...{ name: z.string(), start: time, end: time, state: z.enum(['open', 'ended']), recorded_at: time },
  charges: z.array(z.object({ account: z.string(), exact: whole, from: time, until: time })),
});
const report = z.object({
  message: z.string().optional(),
  dry_run: z.boolean(),
  ...{ set: z.int(), changed: z.int(), unchanged: z.int() },
  mistakes: z.array(
    z.object({ line: z.int().nullable(), field: z.string().nullable(), message: z.string() }),
  ),
  lines: z.array(
    z.object({
      line: z.int(),
      outcome: z.enum(['set', 'changed', 'unchanged']),
      ...{ project_id: z.string(), user_id: z.string().nullable() },
      ...{ valid_from: z.string(), valid_until: z.string(), amount: z.string() },
      before: z.object({ valid_until: z.string(), amount: z.string() }).nullable(),
    }),
  ),
});

interface RemoteBudget extends BudgetUsage {
  readonly etag: string;
}

const limit = 1000;
/** Somebody else may change the budget between reading and writing: it is read again. */
const ATTEMPTS = 3;
const AGAIN = [404, 409, 412];

/** Everything throws `EndpointError`. */
export function remoteBudgets(api: ApiClient): Omit<BudgetStore, keyof RequestStore> {
  const listed = async (filters: { readonly project_id?: string; readonly user_id?: string } = {}) => {
    const found = await allOf(budget, api.items('/v1/budgets', { query: { ...filters, limit } }));
    const items = found.map((one): RemoteBudget => {
      const [amount, taken] = [BigInt(one.exact.amount), BigInt(one.exact.taken)];
      const { id, etag } = one;
      return { ...ownerOf(one), id: BigInt(id), amount, taken, left: amount - taken, etag };
    });
    return { items, unit: unitOf(found), names: namesOf(found) };
  };
  /** Changes the budget of an owner that starts then. */
  const changing = async (
    { project, user, validFrom }: { project: string; user: string | undefined; validFrom: bigint },
    change: (found: RemoteBudget | undefined) => Promise<unknown>,
  ) => {
    for (let attempt = 1; ; attempt += 1) {
      const { items } = await listed({ project_id: project, ...(user !== undefined && { user_id: user }) });
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
        valid_until: dateText(wanted.validUntil),
        reason,
      };
      return changing({ project, user, validFrom }, (found) =>
        found === undefined
          ? api.POST('/v1/budgets', {
              body: {
                ...{ project_id: project, ...(user !== undefined && { user_id: user }) },
                ...{ valid_from: dateText(validFrom), ...body },
              },
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
        ...{ id: BigInt(one.id), at: one.at, budget: BigInt(one.budget_id), operation: one.operation },
        ...{ amount: BigInt(one.exact.amount), who: one.who, reason: one.reason },
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
        // Mistakes of the file are an answer too.
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
  };
}

function chargedLease(one: z.infer<typeof charged>): ChargedLease {
  return {
    lease: {
      ...{ row: BigInt(one.row), leaseId: one.lease_id, region: one.region },
      ...{ projectId: one.project.id, userId: one.user.id, name: one.name },
      ...{ start: one.start, end: one.end, state: one.state, recordedAt: one.recorded_at, endedAt: null },
      ...{ claims: [], unconfirmed: [] },
    },
    charges: one.charges.map(({ account: name, exact, from, until }) => ({
      ...{ account: name, amount: BigInt(exact) },
      ...{ from: from / MICROSECONDS_PER_SECOND, until: until / MICROSECONDS_PER_SECOND },
    })),
  };
}

export function refuseWho(who: string | undefined): void {
  if (who !== undefined) {
    throw new UsageError('--who: a service records who the token belongs to; leave it out with --endpoint');
  }
}

/** The service records whose token it is, and wants to know why. */
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

export function unitOf(found: readonly { readonly unit: string }[]): string {
  return found[0]?.unit ?? 'unit-hours';
}
