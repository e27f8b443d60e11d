/**
 * The ledger compared with the leases that Blazar has: what is not there is released, what was never seen is recorded, dates
 * that differ are corrected. Each lease is a transaction of its own, and one that has changed meanwhile is left as it is.
 */

import type { Wait } from '../deadline.ts';
import { errorText, LedgerUnavailableError } from '../errors.ts';
import { formatInstant, type Instant, MICROSECONDS_PER_SECOND } from '../lease/dates.ts';
import type { Reservation } from '../lease/lease.ts';
import { type Alternative, alternativesOf, chargedBy } from './alternatives.ts';
import { rows, Undone, type Work } from './database.ts';
import type { LeaseIdentity } from './identity.ts';
import type { ListedLease } from './lease-pairing.ts';
import { fits, pairLeases } from './lease-pairing.ts';
import type { Ledger } from './ledger.ts';
import { movedClaims } from './moved-claims.ts';
import type { Author } from './posting.ts';
import { type Claimant, foresee, type LedgerRequest } from './prospect.ts';
import type { LeaseRow } from './schema.ts';
import { revisionStep } from './statements.ts';
import { keptName, textMistake } from './texts.ts';
import { record, release } from './transactions.ts';
import type { Turn } from './turn.ts';

export interface ReconcileOptions {
  /** The region whose leases the list has: those of others stay as they are. */
  readonly region: string;
  /** The projects whose leases the list has; `undefined` = all. */
  readonly projectIds: ReadonlySet<string> | undefined;
  /** What was recorded or ended within so many seconds may be newer than the list, and stays as it is. */
  readonly olderThan: bigint;
  /** Say what would be done, and write nothing. */
  readonly isDryRun: boolean;
  /** The filters that say what a lease takes. */
  readonly claimants: readonly Claimant[];
  /** Whose leases are not recorded. */
  readonly exemptProjects: readonly string[];
  readonly who: string;
  readonly reason: string | null;
}

/** What became of a lease on which list and ledger did not agree. */
export interface Reconciled {
  /** `identified`: its id is known from now on. `left`: nothing was done, and the note says why. */
  readonly outcome: 'released' | 'recorded' | 'corrected' | 'identified' | 'left';
  /** `null` = the ledger has none. */
  readonly row: bigint | null;
  readonly leaseId: string | null;
  readonly projectId: string | null;
  readonly userId: string | null;
  readonly name: string;
  readonly start: Instant;
  readonly end: Instant;
  readonly note: string | null;
}

/** The regions of which the ledger has leases. @throws LedgerUnavailableError */
export async function knownRegions(ledger: Ledger, wait: Wait): Promise<string[]> {
  const query = ledger.database.queries.selectFrom('leases').select('region').distinct().orderBy('region');
  return (await ledger.read('read', () => rows(query.compile()), wait)).map(({ region }) => region);
}

/**
 * One by one, as they are done: what had been done by then stays when the ledger can't be written any more. `listed`: leases
 * that are there, of any project; no id twice. @throws LedgerUnavailableError
 */
export async function* reconcile(
  ledger: Ledger,
  listed: readonly ListedLease[],
  options: ReconcileOptions,
  wait: Wait,
): AsyncGenerator<Reconciled> {
  const { projectIds, claimants, exemptProjects } = options;
  const mine: ListedLease[] = [];
  for (const lease of listed) {
    if (lease.projectId === undefined || (projectIds?.has(lease.projectId) ?? true)) {
      const mistake = mistakeOf(lease);
      if (mistake === undefined) {
        mine.push({ ...lease, name: keptName(lease.name) });
      } else {
        yield unrecorded(lease, `can't be recorded: ${mistake}`);
      }
    }
  }
  const { pairs, unknown, unclear, absent } = pairLeases(
    mine,
    await rowsInQuestion(ledger, mine, options, wait),
  );
  const attempt = async (work: (turn: Turn) => Work<Reconciled | Undone<Reconciled>>, failed: Reconciled) => {
    try {
      return await ledger.transact('reconcile', (turn) => settled(work(turn), options), wait);
    } catch (thrown) {
      if (thrown instanceof LedgerUnavailableError) {
        throw thrown;
      }
      // What a filter could not tell of this lease is no reason to leave the others.
      return { ...failed, note: errorText(thrown) };
    }
  };

  for (const row of absent) {
    const since = ledger.now() - options.olderThan * MICROSECONDS_PER_SECOND;
    yield row.recorded_at > since
      ? left(row, 'not in the list, which may be older than the lease')
      : await attempt((turn) => released(ledger, turn, row, options), left(row, null));
  }
  for (const { row, listed: lease } of pairs) {
    if (row.lease_id === null || row.state === 'ended' || differs(row, lease, claimants)) {
      yield await attempt((turn) => corrected(ledger, turn, row, lease, options), left(row, null));
    }
  }
  for (const lease of unclear) {
    yield unrecorded(
      lease,
      'it may be several leases that begin with it; the list does not say enough to tell which',
    );
  }
  for (const lease of unknown) {
    const { projectId, userId, reservations } = lease;
    if (projectId !== undefined && exemptProjects.includes(projectId)) {
      continue;
    }
    if (projectId === undefined || userId === undefined) {
      yield unrecorded(lease, "can't be recorded: the list does not say whose it is");
    } else if (reservations === undefined) {
      yield unrecorded(lease, "can't be recorded: the list does not say what it reserves");
    } else if (claimants.length === 0) {
      yield unrecorded(lease, 'not recorded: no enabled filter keeps leases in the ledger');
    } else {
      const whole = { ...lease, projectId, userId, reservations };
      yield await attempt((turn) => recorded(ledger, turn, whole, options), unrecorded(lease, null));
    }
  }
}

/** Blazar gives ids itself, and takes the others from Keystone: one like that is of no lease that the ledger has. */
function mistakeOf({ id, projectId = '', userId = '', reservations = [] }: ListedLease): string | undefined {
  const texts = { id, project_id: projectId, user_id: userId };
  const mistakes = Object.entries(texts).map(([name, text]) => [name, textMistake(text)] as const);
  const [field, mistake] = mistakes.find(([, found]) => found !== undefined) ?? [];
  if (mistake !== undefined) {
    return `${field}: ${mistake}`;
  }
  return reservations
    .map(({ resource_type: type }) => (typeof type === 'string' ? textMistake(type) : undefined))
    .find((found) => found !== undefined);
}

/** Open leases of the projects, and all that Blazar lists, whatever has become of them: of one moment. */
function rowsInQuestion(
  ledger: Ledger,
  listed: readonly ListedLease[],
  { region, projectIds }: ReconcileOptions,
  wait: Wait,
): Promise<LeaseRow[]> {
  const now = ledger.now();
  let all = ledger.database.queries.selectFrom('leases').selectAll().where('region', '=', region);
  if (projectIds !== undefined) {
    all = all.where('project_id', 'in', [...projectIds]);
  }
  const queries = [all.where('state', '=', 'open').where('ends_at', '>', now).orderBy('id').compile()];
  for (let start = 0; start < listed.length; start += BATCH) {
    const ids = listed.slice(start, start + BATCH).map(({ id }) => id);
    queries.push(all.where('lease_id', 'in', ids).compile());
  }
  return ledger.database.snapshot(async (snapshot) => {
    const found = new Map<bigint, LeaseRow>();
    for (const query of queries) {
      for await (const row of snapshot.stream(query)) {
        found.set(row.id, row);
      }
    }
    return [...found.values()];
  }, wait);
}

/** A query can't have any number of parameters. */
const BATCH = 500;

/** Of a dry run nothing stays. */
function* settled(
  work: Work<Reconciled | Undone<Reconciled>>,
  { isDryRun }: ReconcileOptions,
): Work<Reconciled | Undone<Reconciled>> {
  const result = yield* work;
  return isDryRun && !(result instanceof Undone) ? new Undone(result) : result;
}

function* released(
  ledger: Ledger,
  turn: Turn,
  before: LeaseRow,
  options: ReconcileOptions,
): Work<Reconciled | Undone<Reconciled>> {
  const moment = yield* turn.lock(before.project_id);
  const row = yield* sameRow(ledger, before);
  if (row === undefined) {
    return new Undone(left(before, CHANGED));
  }
  yield* release(ledger.statements, row, { moment, author: authorOf(options), leaseId: null });
  return { ...left(row, null), outcome: 'released' };
}

function* corrected(
  ledger: Ledger,
  turn: Turn,
  before: LeaseRow,
  lease: ListedLease,
  options: ReconcileOptions,
): Work<Reconciled | Undone<Reconciled>> {
  const { statements } = ledger;
  const { now } = yield* turn.lock(before.project_id);
  const found = yield* sameRow(ledger, before);
  if (found === undefined) {
    return new Undone(left(before, CHANGED));
  }
  const { ended_at: endedAt } = found;
  const isNews = endedAt !== null && endedAt > now - options.olderThan * MICROSECONDS_PER_SECOND;
  if (found.state === 'ended' && isNews) {
    return new Undone(left(found, `it ended at ${formatInstant(endedAt)}; the list may be older`));
  }
  const row = { ...found, lease_id: lease.id };
  if (found.lease_id === null) {
    yield* rows(statements.setLease({ ...row, step: revisionStep() }));
  }
  const shown = { ...left(row, null), start: lease.start, end: lease.end };
  if (found.state === 'open' && !differs(found, lease, options.claimants)) {
    return { ...shown, outcome: 'identified' };
  }
  const { reservations } = lease;
  const isTold = reservations !== undefined && options.claimants.length > 0;
  const alternatives = alternativesOf(row);
  const known = dearestOf(alternatives, lease);
  if (!isTold && known === undefined) {
    return new Undone(
      left(found, 'an update was asked for, and the list does not say what the lease reserves'),
    );
  }
  const owner = ownerOf(row);
  const request = requestOf(
    { ...owner, userId: lease.userId ?? owner.userId },
    {
      lease: { ...lease, reservations: reservations ?? [] },
      current: { start: alternatives.map(({ start }) => start).reduce(smaller), end: row.ends_at },
      // Where no filter can tell what the lease takes, it takes what it took.
      claimants: isTold || known === undefined ? options.claimants : [movedClaims(known)],
    },
  );
  const demand = reservations === undefined ? (known?.demand ?? row.demand) : undefined;
  yield* record(statements, { ...request, demand }, turn, authorOf(options), true);
  const was = `it was ${formatInstant(row.starts_at)} to ${formatInstant(row.ends_at)}`;
  const note = hasOtherDates(found, lease)
    ? was
    : found.state === 'ended'
      ? 'it had ended'
      : found.alternatives === null
        ? 'it reserves something else'
        : 'it was not known which of its changes had been made';
  return { ...shown, outcome: 'corrected', note };
}

/** Of what a lease may be by its dates: what takes the most of everything, if there is one. */
function dearestOf(
  alternatives: readonly Alternative[],
  { start, end }: Pick<ListedLease, 'start' | 'end'>,
): Alternative | undefined {
  const fitting = alternatives.filter((one) => one.start === start && one.end === end);
  const possible = fitting.length > 0 ? fitting : alternatives;
  const total = chargedBy(possible);
  return possible.find((one) => {
    const own = chargedBy([one]);
    return [...total].every(([account, amount]) => (own.get(account) ?? 0n) === amount);
  });
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

type WholeLease = ListedLease & {
  readonly projectId: string;
  readonly userId: string;
  readonly reservations: readonly Reservation[];
};

/** From now on, as a lease that an update makes known: what has run is not charged. */
function* recorded(
  ledger: Ledger,
  turn: Turn,
  lease: WholeLease,
  options: ReconcileOptions,
): Work<Reconciled | Undone<Reconciled>> {
  const { statements } = ledger;
  const { id, name, start, end, projectId: project_id, userId } = lease;
  const { now } = yield* turn.lock(project_id);
  const identity = { leaseId: id, region: options.region, projectId: project_id, userId };
  const found = yield* rows(statements.leaseById({ region: options.region, project_id, lease_id: id }));
  if (found.length > 0) {
    return new Undone(unrecorded(lease, CHANGED));
  }
  const request = requestOf(identity, { lease, current: { start, end }, claimants: options.claimants });
  const hasBegun = start < now;
  const rest = { ...request.proposal, start: hasBegun ? now : start };
  const { reckoning } = yield* foresee(statements, { ...request, proposal: rest, current: undefined }, now);
  const recording = yield* resultOf(record(statements, request, turn, authorOf(options), true));
  const row = options.isDryRun ? null : recording.lease;
  const note = reckoning.refusal?.message ?? null;
  return { outcome: 'recorded', row, leaseId: id, projectId: project_id, userId, name, start, end, note };
}

function* resultOf<Result>(work: Work<Result | Undone<Result>>): Work<Result> {
  const result = yield* work;
  return result instanceof Undone ? result.result : result;
}

/** The row; `undefined` where it is not what it was. */
function* sameRow({ statements }: Ledger, before: LeaseRow): Work<LeaseRow | undefined> {
  const [row] = yield* rows(statements.leaseByRow({ id: before.id }));
  const isSame =
    row !== undefined &&
    row.lease_id === before.lease_id &&
    row.state === before.state &&
    row.starts_at === before.starts_at &&
    row.ends_at === before.ends_at &&
    row.claims === before.claims &&
    row.alternatives === before.alternatives;
  return isSame ? row : undefined;
}

interface Wanted {
  readonly lease: Pick<WholeLease, 'name' | 'start' | 'end' | 'reservations'>;
  readonly current: { readonly start: Instant; readonly end: Instant };
  readonly claimants: readonly Claimant[];
}

function requestOf(identity: LeaseIdentity, { lease, current, claimants }: Wanted): LedgerRequest {
  const { name, start, end, reservations } = lease;
  const { projectId: project_id, userId: user_id, region: region_name } = identity;
  const context = { project_id, user_id, region_name };
  const proposal = { context, start, end, reservations, allocationsAreExact: true };
  return {
    identity,
    name,
    proposal,
    current: { ...proposal, ...current },
    halfway: undefined,
    isCertain: true,
    adopts: false,
    repetition: undefined,
    claimants: claimants.map(telling),
  };
}

/** A lease is not recorded as if it took nothing because a filter can't tell what it takes. */
function telling(claimant: Claimant): Claimant {
  return {
    ...claimant,
    claims(proposal, standing) {
      const claims = claimant.claims(proposal, standing);
      if ('allowed' in claims) {
        throw new Error(claims.message);
      }
      return claims;
    },
  };
}

function ownerOf(row: LeaseRow): LeaseIdentity {
  const { lease_id: leaseId, region, project_id: projectId, user_id: userId } = row;
  return { leaseId, region, projectId, userId };
}

/** Whether the ledger takes the lease for something else, or for something else besides. */
function differs(row: LeaseRow, lease: ListedLease, claimants: readonly Claimant[]): boolean {
  const hasOtherCounts = claimants.length > 0 && !fits(row, lease);
  return row.alternatives !== null || hasOtherDates(row, lease) || hasOtherCounts;
}

function hasOtherDates(row: LeaseRow, { start, end }: ListedLease): boolean {
  return row.starts_at !== start || row.ends_at !== end;
}

function authorOf({ who, reason }: ReconcileOptions): Author {
  return { operation: 'reconcile', who, requestId: null, reason };
}

const CHANGED = 'it has changed meanwhile';

function left(row: LeaseRow, note: string | null): Reconciled {
  const { leaseId, projectId, userId } = ownerOf(row);
  const { id, name, starts_at: start, ends_at: end } = row;
  return { outcome: 'left', row: id, leaseId, projectId, userId, name, start, end, note };
}

function unrecorded(lease: ListedLease, note: string | null): Reconciled {
  const { id: leaseId, projectId = null, userId = null, name, start, end } = lease;
  return { outcome: 'left', row: null, leaseId, projectId, userId, name, start, end, note };
}
