/** Reads all leases of Blazar once, then their allocations. */
import { errorText } from '../../base/errors.ts';
import type { HttpAnswer } from '../../http/contract.ts';
import { type Instant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { type Allocation, isInUse, isTerminated, type Reservation } from '../../lease/lease.ts';
import { keptName } from '../../ledger/identity.ts';
import type { OverdueLease, ShownLease } from '../../ledger/reconciliation/leases.ts';
import { AHEAD, ENDING } from '../../ledger/reconciliation/plan.ts';
import {
  type Allocations,
  type AnsweredLease,
  BlazarError,
  type ListedReservation,
  readAllocations,
  readHosts,
  readLeases,
} from '../../openstack/blazar-answers.ts';
import type { Keystone } from '../../openstack/contract.ts';

interface Observation {
  /** The URL of the API, with its version. */
  readonly endpoint: string;
  /** Existing leases: neither terminated nor past their end. */
  readonly leases: readonly ShownLease[];
  readonly overdue: readonly OverdueLease[];
  /** Number of leases in the response, in any state. */
  readonly listed: number;
  /** Reasons why leases may be missing. */
  readonly doubts: readonly string[];
}

interface Observing {
  readonly keystone: Keystone;
  /** The URL of the API, with or without its version. */
  readonly endpoint: string;
  now(): Instant;
  /**
   * When the open leases of the ledger were read. A lease that was open then is reported, even if the clock
   * was set since. `undefined` = they were not read.
   */
  readonly openAt: Instant | undefined;
  readonly signal: AbortSignal | undefined;
}

/** Tolerated difference of Blazar's clock, in microseconds: its header has whole seconds. */
const CLOCKS_DIFFER = 5n * MICROSECONDS_PER_SECOND;
/** No lease starts earlier than its date by more. */
const EARLY = 60n * MICROSECONDS_PER_SECOND;
/** Statuses of existing leases that are not changing. Source: blazar/status.py. */
const STABLE = new Set(['PENDING', 'ACTIVE', 'ERROR']);

/**
 * Reads leases first, then allocations: Blazar marks a lease as changing before it calls us, so a lease that
 * is stable in the list has its allocations by then, unless we are called since.
 *
 * @throws BlazarError, and what `Keystone` throws
 */
export async function observe(observing: Observing): Promise<Observation> {
  const { keystone, now, signal } = observing;
  const base = observing.endpoint.replace(/\/+$/, '');
  const began = now();
  const { endpoint, answer } = await leasesAt(base, observing);
  const answered = now();
  const doubts: string[] = [];
  const ahead = clockOf(answer, began, answered);
  if (ahead !== undefined && (ahead > CLOCKS_DIFFER || ahead < -CLOCKS_DIFFER)) {
    doubts.push(`the clock of Blazar differs from ours by ${ahead / MICROSECONDS_PER_SECOND} s`);
  }
  const found: AnsweredLease[] = [];
  const overdue: OverdueLease[] = [];
  const ids = new Set<string>();
  const projects = new Set<string>();
  await readLeases(answer.body, (lease) => {
    ids.add(lease.id);
    projects.add(lease.project_id);
    if (!isTerminated(lease) && lease.ends_at > (observing.openAt ?? answered)) {
      found.push(lease);
    } else if (lease.reservations.some(isInUse) && lease.ends_at < answered - ENDING) {
      overdue.push(overdueAt(lease, answered, ahead ?? 0n));
    }
  });
  const allocations = await allocationsAt(endpoint, observing);
  const hosts = allocations.hosts.size === 0 ? new Map() : await hostsAt(endpoint, observing);
  if ([...allocations.leases].some((id) => !ids.has(id))) {
    doubts.push('Blazar has allocations of leases that it does not list');
  }
  if (projects.size < 2 && !(await isAdmin(keystone, signal))) {
    doubts.push('our account may see only the leases of its own project: it does not have the role admin');
  }
  return {
    endpoint,
    leases: found.map((lease) => shownAs(lease, allocations, hosts, { ahead: ahead ?? 0n, answered })),
    overdue,
    listed: ids.size,
    doubts,
  };
}

function overdueAt(lease: AnsweredLease, now: Instant, ahead: bigint): OverdueLease {
  const { id, name, start_date: start, ends_at: due, created_at, reservations } = lease;
  return {
    id,
    name: nameOf(name),
    start,
    end: now - (now % MICROSECONDS_PER_SECOND) + AHEAD,
    due,
    projectId: lease.project_id,
    userId: lease.user_id,
    reservations,
    createdAt: createdBy(created_at, ahead),
  };
}

function shownAs(
  lease: AnsweredLease,
  allocations: Allocations,
  hosts: ReadonlyMap<string, Allocation>,
  { ahead, answered }: { readonly ahead: bigint; readonly answered: Instant },
): ShownLease {
  const { id, name, start_date, ends_at, project_id, user_id, status, created_at, degraded, reservations } =
    lease;
  const given = reservations.map((one) => givenBy(one, allocations, hosts));
  const isEmpty = given.some(({ isComplete }) => !isComplete);
  return {
    id,
    name: nameOf(name),
    start: start_date,
    end: ends_at,
    inUseAt: start_date > answered + EARLY && reservations.some(isInUse) ? answered : undefined,
    projectId: project_id,
    userId: user_id,
    createdAt: createdBy(created_at, ahead),
    reservations,
    given: given.map(({ reservation }) => reservation),
    hasChangedResources:
      isEmpty ||
      degraded === true ||
      reservations.some((one) => one.missing_resources === true || one.resources_changed === true),
    isCreating: status === 'CREATING',
    // If no lease has hosts, the response about hosts may be incomplete. After its end date, a lease is shown without hosts, though it has them.
    isChanging:
      (lease.end_date <= answered && ends_at > lease.end_date) ||
      (typeof status === 'string' && !STABLE.has(status)) ||
      (isEmpty && allocations.leases.size === 0),
    isEmpty,
  };
}

function nameOf(name: unknown): string {
  return keptName(typeof name === 'string' ? name : '');
}

/** By our clock. */
function createdBy(theirs: Instant | null | undefined, ahead: bigint): Instant | undefined {
  return theirs === undefined || theirs === null ? undefined : theirs - ahead;
}

/** The endpoint may be configured with or without its version. */
async function leasesAt(
  base: string,
  observing: Observing,
): Promise<{ endpoint: string; answer: HttpAnswer }> {
  const candidates = /\/v\d+(?:\.\d+)?$/.test(base) ? [base] : [`${base}/v1`, base];
  let last: HttpAnswer | undefined;
  for (const endpoint of candidates) {
    const answer = await get(`${endpoint}/leases`, observing, ['date']);
    if (answer.status === 200) {
      return { endpoint, answer };
    }
    last = answer;
    if (answer.status !== 404 && answer.status !== 300) {
      break;
    }
  }
  throw unexpected(`GET ${candidates.map((one) => `${one}/leases`).join(' or ')}`, last?.status ?? 0);
}

/** The body of a response; `undefined` = there is no such path. */
async function bodyAt(url: string, observing: Observing): Promise<string | undefined> {
  const { status, body } = await get(url, observing);
  if (status !== 200 && status !== 404) {
    throw unexpected(`GET ${url}`, status);
  }
  return status === 404 ? undefined : body;
}

async function allocationsAt(endpoint: string, observing: Observing): Promise<Allocations> {
  const body = await bodyAt(`${endpoint}/os-hosts/allocations`, observing);
  // Without it, a Blazar without the host plugin.
  return body === undefined ? { hosts: new Map(), leases: new Set() } : readAllocations(body);
}

async function hostsAt(endpoint: string, observing: Observing): Promise<Map<string, Allocation>> {
  const url = `${endpoint}/os-hosts`;
  const body = await bodyAt(url, observing);
  if (body === undefined) {
    throw unexpected(`GET ${url}`, 404);
  }
  return readHosts(body);
}

function get(
  url: string,
  { keystone, signal }: Observing,
  answerHeaders: string[] = [],
): Promise<HttpAnswer> {
  return keystone.get(url, { signal, answerHeaders, headers: { accept: 'application/json' } });
}

function unexpected(call: string, status: number): BlazarError {
  const role = ': our account in [keystone] needs the role that Blazar asks of administrators';
  return new BlazarError(`${call}: Blazar answered ${status}${[401, 403].includes(status) ? role : ''}`);
}

/** How far Blazar's clock is ahead of ours, at least; `undefined` = no date in the response. */
function clockOf({ headers }: HttpAnswer, began: Instant, answered: Instant): bigint | undefined {
  const milliseconds = Date.parse(headers?.date ?? '');
  if (Number.isNaN(milliseconds)) {
    return undefined;
  }
  const theirs = BigInt(milliseconds) * 1000n;
  // The header has whole seconds: it may have been up to a second later.
  return theirs > answered
    ? theirs - answered
    : theirs + MICROSECONDS_PER_SECOND < began
      ? theirs - began
      : 0n;
}

async function isAdmin(keystone: Keystone, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    const own = await keystone.validate(await keystone.token({ signal }), { signal });
    return own?.roles.some((role) => role.toLowerCase() === 'admin') ?? false;
  } catch (thrown) {
    throw new BlazarError(`the roles of our account are unknown: ${errorText(thrown)}`, { cause: thrown });
  }
}

/** Each instance has one allocation. Source: blazar/plugins/instances/instance_plugin.py. */
const INSTANCES = new Set(['virtual:instance', 'flavor:instance']);

/**
 * The reservation with its actual counts and allocations; `isComplete`: none is missing. The API shows no
 * allocations of other types, such as floating IPs: they count as listed.
 */
function givenBy(
  reservation: ListedReservation,
  { hosts: allocated }: Allocations,
  hosts: ReadonlyMap<string, Allocation>,
): { readonly reservation: Reservation; readonly isComplete: boolean } {
  const { id, resource_type: type, status, missing_resources: isMissing } = reservation;
  const own = allocated.get(id) ?? [];
  const allocations = own.map((host) => hosts.get(host) ?? { id: host });
  if (type === 'physical:host') {
    const count = own.length;
    const isEmpty = count === 0 && isMissing !== true && (status === 'pending' || status === 'active');
    return { reservation: { ...reservation, min: count, max: count, allocations }, isComplete: !isEmpty };
  }
  return INSTANCES.has(type) && own.length > 0
    ? { reservation: { ...reservation, amount: own.length, allocations }, isComplete: true }
    : { reservation, isComplete: true };
}
