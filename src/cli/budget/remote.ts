/** `budget … --endpoint`: the same at a service, over its API. */
import { z } from 'zod';
import type { ApiClient } from '../../client/client.ts';
import { EndpointError } from '../../client/endpoint-error.ts';
import { MICROSECONDS_PER_SECOND, toInstant } from '../../lease/dates.ts';
import type { BudgetChange, BudgetStanding } from '../../ledger/budgets/budgets.ts';
import type { ImportReport } from '../../ledger/budgets/plan.ts';
import type { LeaseReport } from '../../ledger/reports/reports.ts';
import type { CommandNames } from '../command-names.ts';
import type { BudgetFile } from './files.ts';

type Api = ApiClient['api'];

const account = z.object({ id: z.string(), name: z.string().nullable(), domain: z.string().nullable() });
const whole = z.string().regex(/^-?\d{1,19}$/);
const time = z.string().transform((text, context) => {
  const instant = toInstant(text);
  if (instant === undefined) {
    context.addIssue({ code: 'custom', message: 'expected a time' });
    return z.NEVER;
  }
  return instant;
});
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

type Account = z.infer<typeof account>;

export interface RemoteBudget extends BudgetStanding {
  readonly etag: string;
}

/** What was read, with the unit of budgets and the names that the service told. */
export interface Listed<Item> {
  readonly items: readonly Item[];
  readonly unit: string;
  readonly names: CommandNames;
}

/** How many pages are read at most: a service that never ends must not keep the command for ever. */
const MAX_PAGES = 10_000;
const PAGE = 1000;

/** @throws EndpointError */
export async function remoteBudgets(
  api: Api,
  filters: { readonly project_id?: string; readonly user_id?: string } = {},
): Promise<Listed<RemoteBudget>> {
  const found = await allOf(budget, (page) =>
    api.GET('/v1/budgets', { params: { query: { ...filters, ...page } } }),
  );
  return listed(found, (one) => ({
    ...ownerOf(one),
    id: BigInt(one.id),
    amount: BigInt(one.exact.amount),
    taken: BigInt(one.exact.taken),
    left: BigInt(one.exact.amount) - BigInt(one.exact.taken),
    etag: one.etag,
  }));
}

/** Oldest first. @throws EndpointError */
export async function remoteChanges(api: Api, project: string | undefined): Promise<Listed<BudgetChange>> {
  const filters = { order: 'oldest' as const, ...(project !== undefined && { project_id: project }) };
  const found = await allOf(change, (page) =>
    api.GET('/v1/budgets/changes', { params: { query: { ...filters, ...page } } }),
  );
  return listed(found, (one) => ({
    ...ownerOf(one),
    ...{ id: BigInt(one.id), at: one.at, budget: BigInt(one.budget_id), operation: one.operation },
    ...{ amount: BigInt(one.exact.amount), who: one.who, reason: one.reason },
  }));
}

/** A lease with what it takes from budgets. */
export interface RemoteLease {
  readonly lease: LeaseReport;
  readonly charges: readonly {
    readonly account: string;
    readonly amount: bigint;
    readonly from: bigint;
    readonly until: bigint;
  }[];
}

/** @throws EndpointError */
export async function remoteCharges(
  api: Api,
  project: string,
): Promise<{ readonly items: readonly RemoteLease[]; readonly accounts: readonly Owner[] }> {
  const found = await allOf(charged, (page) =>
    api.GET('/v1/budgets/charges', { params: { query: { project_id: project, ...page } } }),
  );
  return {
    accounts: found,
    items: found.map((one) => ({
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
    })),
  };
}

/** @throws EndpointError */
export async function remoteImport(
  api: Api,
  { text, isJson }: BudgetFile,
  { isDryRun, reason }: { readonly isDryRun: boolean; readonly reason: string | undefined },
): Promise<ImportReport> {
  try {
    const { data } = await api.POST('/v1/budgets/import', {
      params: {
        query: { dry_run: isDryRun ? 'true' : 'false', ...(reason !== undefined && { reason }) },
      },
      headers: { 'Content-Type': isJson ? 'application/json' : 'text/csv' },
      body: text as never,
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
}

/** The text of the file. @throws EndpointError */
export async function remoteExport(
  api: Api,
  format: 'csv' | 'json',
  project: string | undefined,
): Promise<string> {
  const query = { format, ...(project !== undefined && { project_id: project }) };
  const { data } = await api.GET('/v1/budgets/export', { params: { query }, parseAs: 'text' });
  return understood(z.string(), data);
}

export interface RemoteKey {
  readonly projectId: string;
  readonly userId: string | undefined;
  /** In seconds of the epoch. */
  readonly validFrom: bigint;
}

/** The budget of an owner that starts then. @throws EndpointError */
export async function remoteBudget(
  api: Api,
  { projectId, userId, validFrom }: RemoteKey,
): Promise<{ readonly found: RemoteBudget | undefined; readonly all: Listed<RemoteBudget> }> {
  const filters = { project_id: projectId, ...(userId !== undefined && { user_id: userId }) };
  const all = await remoteBudgets(api, filters);
  const found = all.items.find(
    (one) => one.validFrom === validFrom && (one.userId === null) === (userId === undefined),
  );
  return { found, all };
}

type Owner = { readonly project: Account; readonly user: Account | null };

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

function listed<Row extends Owner & { readonly unit: string }, Item>(
  found: readonly Row[],
  item: (row: Row) => Item,
): Listed<Item> {
  return { items: found.map(item), unit: found[0]?.unit ?? 'unit-hours', names: namesOf(found) };
}

/** As the service told them. */
export function namesOf(found: readonly Owner[]): CommandNames {
  const projects = new Map(found.map(({ project }) => [project.id, project]));
  const users = new Map(found.flatMap(({ user }) => (user === null ? [] : [[user.id, user] as const])));
  const text = (known: ReadonlyMap<string, Account>) => (id: string) => {
    const { name = null, domain = null } = known.get(id) ?? {};
    return name === null ? id : `${domain === null ? name : `${name}@${domain}`} (${id})`;
  };
  const areNamed = [...projects.values(), ...users.values()].some(({ name }) => name !== null);
  return {
    project: text(projects),
    user: text(users),
    fields: (projectId, userId) => {
      const project = projects.get(projectId);
      const user = userId === null ? undefined : users.get(userId);
      return areNamed
        ? {
            project_name: project?.name ?? null,
            project_domain: project?.domain ?? null,
            user_name: user?.name ?? null,
            user_domain: user?.domain ?? null,
          }
        : {};
    },
  };
}

async function allOf<Schema extends z.ZodType>(
  item: Schema,
  read: (page: { readonly limit: never; readonly after?: string }) => Promise<{ data?: unknown }>,
): Promise<z.infer<Schema>[]> {
  const page = z.object({ items: z.array(item), next: z.string().nullable() });
  const items: z.infer<Schema>[] = [];
  let after: string | undefined;
  for (let count = 0; count < MAX_PAGES; count += 1) {
    const { data } = await read({ limit: PAGE as never, ...(after !== undefined && { after }) });
    const found = understood(page, data);
    items.push(...found.items);
    if (found.next === null) {
      return items;
    }
    after = found.next;
  }
  throw new EndpointError('failed', 'the list of the service has no end');
}

function understood<Value>(schema: z.ZodType<Value>, data: unknown): Value {
  const result = schema.safeParse(data);
  if (!result.success) {
    throw new EndpointError(
      'failed',
      'the service answered something else than expected; is it another version of blazar-enforcement?',
    );
  }
  return result.data;
}
