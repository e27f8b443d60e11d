/** Reads remaining credits of projects from coral-credits. Imported on use only: zod loads slowly. */
import { z } from 'zod';
import type { BoundedFetch } from '../../client/bounded-fetch.ts';
import { type Amount, larger, smaller } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { exportedBudget } from '../../ledger/budgets/terms.ts';
import { time } from '../common/answers.ts';
import { UsageError, warn } from '../common/output.ts';
import { Progress } from '../common/progress.ts';

/** The limit of budgets in a file. */
const MAX_PROJECTS = 10_000;
/** Limit per account. */
const MAX_ALLOCATIONS = 1000;

// Rows of the API as written by coral-credits 8ee1d4c. The API is not paginated.

const hours = z.int();
/** The number at the end of a row's URL. The URL is not called: its host may be internal to coral-credits. */
const link = z
  .string()
  .regex(/\/\d{1,15}\/?$/)
  .transform((text) => Number(/(\d+)\/?$/.exec(text)?.[1]));
const period = { start: time, end: time };
const resources = z.array(
  z.object({ resource_class: z.object({ name: z.string() }), resource_hours: hours }),
);
const providers = z.array(z.object({ id: z.int(), name: z.string() }));
/** Keystone and Blazar write ids without the dashes of coral-credits. */
const projectId = z.guid().transform((id) => id.replaceAll('-', ''));
const projects = z
  .array(z.object({ account: link, provider: link, project_id: projectId }))
  .max(MAX_PROJECTS);
const account = z.object({
  name: z.string(),
  allocations: z
    .array(z.object({ id: z.int(), name: z.string(), ...period, resources }))
    .max(MAX_ALLOCATIONS),
  consumers: z.array(
    z.object({ resource_provider_account: z.object({ provider: link }), ...period, resources }),
  ),
});

type Allocation = z.infer<typeof account>['allocations'][number];
type Period = Pick<Allocation, 'start' | 'end'>;

type Read = <Schema extends z.ZodType>(path: string, schema: Schema) => Promise<z.infer<Schema>>;

/** Reads of the API of coral-credits. They throw `EndpointError`. */
export function coralCredits({ fetch }: BoundedFetch, url: URL, token: string): Read {
  return async (path, schema) => {
    const { EndpointError } = await import('../../client/bounded-fetch.ts');
    const address = `${url.origin}${url.pathname.replace(/\/+$/, '')}${path}`;
    const headers = { Authorization: `Bearer ${token}`, Accept: 'application/json' };
    const answer = await fetch(new Request(address, { headers }));
    const { status } = answer;
    if (status === 401 || status === 403) {
      throw new EndpointError('refused', `${address}: coral-credits does not accept the token (${status})`);
    }
    const parsed = status === 200 ? schema.safeParse(await answer.json().catch(() => undefined)) : undefined;
    if (parsed?.success === true) {
      return parsed.data;
    }
    const [issue] = parsed?.error?.issues ?? [];
    const place = issue === undefined ? '' : ` (${issue.path.map(String).join('.')}: ${issue.message})`;
    throw new EndpointError(
      'failed',
      `${address}: it answered ${status}, but not as coral-credits does${place}; is this its address?`,
    );
  };
}

type CoralBudget = Parameters<typeof exportedBudget>[0];

/** One budget for each project and allocation that has not ended. `now`: in microseconds. */
export async function budgetsOf(
  read: Read,
  flags: { readonly resourceClass: string; readonly provider?: string },
  now: bigint,
): Promise<CoralBudget[]> {
  const provider = providerOf(await read('/resource_provider', providers), flags.provider);
  const all = await read('/resource_provider_account', projects);
  const mine = all.filter((one) => one.provider === provider.id);
  const budgets: CoralBudget[] = [];
  const progress = new Progress('projects', mine.length);
  const warnings: string[] = [];
  try {
    for (const [index, { account: id, project_id }] of mine.entries()) {
      // The list at /consumer is not used: coral-credits caches it until restart.
      const { name, allocations, consumers } = await read(`/account/${id}`, account);
      const credits = allocations
        .filter(({ end }) => end > now)
        .flatMap((one) => hoursOf(one, flags.resourceClass).map((left) => ({ ...one, left })));
      warnings.push(...doubtsIn(name, credits));
      if (all.some((one) => one.account === id && one.provider !== provider.id)) {
        warnings.push(`account ${name} also pays for leases in other clouds: only ${provider.name} is read`);
      }
      const ours = consumers.filter((one) => one.resource_provider_account.provider === provider.id);
      budgets.push(
        ...credits.map((one) => {
          const shares = ours.flatMap((consumer) =>
            hoursOf(consumer, flags.resourceClass).map((spent) => shareOf(one, consumer, spent, now)),
          );
          return budgetOf(project_id, one, shares);
        }),
      );
      progress.show(index + 1);
    }
  } finally {
    progress.end();
  }
  for (const warning of warnings) {
    warn(warning);
  }
  if (budgets.length === 0) {
    throw new UsageError(
      `no project of ${provider.name} has credits of the class ${flags.resourceClass} in an allocation that has not ended`,
    );
  }
  return budgets.sort(
    (a, b) => a.projectId.localeCompare(b.projectId) || (a.validFrom < b.validFrom ? -1 : 1),
  );
}

function providerOf(
  found: z.infer<typeof providers>,
  name: string | undefined,
): z.infer<typeof providers>[number] {
  const named = name === undefined ? found : found.filter((one) => one.name === name);
  const [only, second] = named;
  if (only === undefined || second !== undefined) {
    const names = found.map((one) => JSON.stringify(one.name)).join(', ');
    throw new UsageError(`--provider: expected one of ${names || 'those in coral-credits, which has none'}`);
  }
  return only;
}

/** The sum as one item, or empty. */
function hoursOf(row: Pick<Allocation, 'resources'>, resourceClass: string): bigint[] {
  return row.resources
    .filter(({ resource_class }) => resource_class.name === resourceClass)
    .map(({ resource_hours }) => BigInt(resource_hours));
}

/** One resource for an hour. */
const UNIT_HOUR = 3600n * 1_000_000n;
/** Budgets have up to six decimals. */
const MILLIONTH = 3600n;

/** The charge of reconciliation to the budget: the part of the lease after `now`, within the allocation. */
function shareOf(allocation: Period, lease: Period, spent: bigint, now: bigint): Amount {
  const { start, end } = inSeconds(allocation);
  const from = larger(now, larger(start, lease.start));
  const until = smaller(end, lease.end);
  return until <= from ? 0n : (spent * UNIT_HOUR * (until - from)) / (lease.end - lease.start);
}

function budgetOf(
  projectId: string,
  { id, left: hoursLeft, ...allocation }: Allocation & { readonly left: bigint },
  shares: readonly Amount[],
): CoralBudget {
  const { start, end } = inSeconds(allocation);
  const left = hoursLeft * UNIT_HOUR;
  const taken = shares.reduce((sum, share) => sum + share, 0n);
  const whole = left + taken;
  const amount = whole < 0n ? 0n : ((whole + MILLIONTH - 1n) / MILLIONTH) * MILLIONTH;
  return {
    id: BigInt(id),
    projectId,
    userId: null,
    amount,
    taken,
    left,
    validFrom: start / MICROSECONDS_PER_SECOND,
    validUntil: end / MICROSECONDS_PER_SECOND,
  };
}

/** Both rounded down, so that consecutive allocations stay consecutive. */
function inSeconds({ start, end }: Period): Period {
  const second = (instant: bigint) => instant - (instant % MICROSECONDS_PER_SECOND);
  return { start: second(start), end: second(end) };
}

/** A warning about the first overlap, if any. */
function doubtsIn(name: string, credits: readonly Allocation[]): string[] {
  for (const one of credits) {
    const other = credits.find(({ id, start, end }) => id > one.id && start < one.end && one.start < end);
    if (other !== undefined) {
      const both = `${JSON.stringify(one.name)} and ${JSON.stringify(other.name)}`;
      return [
        `account ${name}: the allocations ${both} overlap, and coral-credits charges the second one; budgets cannot overlap: change a line before you import the file`,
      ];
    }
  }
  return [];
}
