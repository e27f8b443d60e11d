/**
 * The steps that make the ledger match Blazar: computed from the rows and Blazar's leases, without a
 * database. There are two plans for two sources: a list in a file, which may be old and incomplete, and an
 * observation by the service.
 */
import { larger, smaller } from '../../filter/claim.ts';
import { formatInstant, type Instant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { isInUse, MAKING } from '../../lease/lease.ts';
import { alternativesOf } from '../accounting/alternatives.ts';
import { demandOf } from '../accounting/demand.ts';
import { keptName, textMistake } from '../identity.ts';
import type { LeaseRow } from '../storage/schema.ts';
import { isObserved, left, type Reconciled, type Terms, unrecorded } from './change-lease.ts';
import { differs } from './correct-lease.ts';
import {
  ABSENT,
  ASKED,
  digestOf,
  type ListedLease,
  type OverdueLease,
  type ShownLease,
  type WholeLease,
} from './leases.ts';
import { pairListed, pairOverdue, pairShown } from './pairing.ts';

export type Step =
  | {
      readonly kind: 'release';
      readonly row: LeaseRow;
      readonly isUnused: boolean;
      readonly note: string | null;
    }
  | { readonly kind: 'correct'; readonly row: LeaseRow; readonly lease: ListedLease }
  | { readonly kind: 'record'; readonly lease: WholeLease }
  | { readonly kind: 'leave'; readonly left: Reconciled };

export interface Plan {
  /** In this order. */
  readonly steps: readonly Step[];
  /** Leases that no step records. A row without an id that may be one of them is not released. */
  readonly unrecorded: readonly WholeLease[];
  /** Rows of leases that Blazar has not built so far: to be marked if there are no doubts. */
  readonly notBuilt: readonly LeaseRow[];
  /** Why nothing, or not everything, is released. */
  readonly doubts: readonly string[];
  /** The rows that the next observation may release if it confirms them. */
  readonly doubted: ReadonlySet<bigint>;
  /** Whether any listed lease matches the ledger. */
  readonly hasMatched: boolean;
  /** Whether all open rows match a listed lease. */
  readonly hasAll: boolean;
}

export interface ListTerms extends Terms {
  /** The projects of the list; `undefined` = all. */
  readonly projectIds: ReadonlySet<string> | undefined;
  /** In seconds. Leases recorded or ended more recently may be newer than the list, and are left. */
  readonly olderThan: bigint;
  /** Projects whose leases are not recorded. */
  readonly exemptProjects: readonly string[];
  /** The ids of all leases of the list, in whatever state: one must be in the ledger. `undefined` = it may be the list of another cloud. */
  readonly ids: ReadonlySet<string> | undefined;
}

/** For a list in a file. `rows`: open rows of the projects, and all rows of listed leases. */
export async function planForList(
  rows: readonly LeaseRow[],
  listed: readonly ListedLease[],
  terms: ListTerms,
  now: Instant,
): Promise<Plan> {
  const { projectIds, claimants } = terms;
  const since = now - terms.olderThan * MICROSECONDS_PER_SECOND;
  const steps: Step[] = [];
  const leave = (one: Reconciled) => steps.push({ kind: 'leave', left: one });
  const own: ListedLease[] = [];
  for (const lease of listed) {
    if (lease.projectId === undefined || (projectIds?.has(lease.projectId) ?? true)) {
      const mistake = mistakeOf(lease);
      if (mistake === undefined) {
        own.push({ ...lease, name: keptName(lease.name) });
      } else {
        leave(unrecorded(lease, `can't be recorded: ${mistake}`));
      }
    }
  }
  const { pairs, unknown, unclear, absent } = await pairListed(own, rows);
  // Releases come first, so that recorded leases exceed no limit because of leases that are gone.
  for (const row of absent) {
    if (row.recorded_at > since) {
      leave(left(row, 'not in the list, which may be older than the lease'));
    } else {
      steps.push({ kind: 'release', row, isUnused: false, note: null });
    }
  }
  for (const { row, lease: shown } of pairs) {
    const isEarly = row.starts_at < shown.start && shown.reservations?.some(isInUse) === true;
    const lease = isEarly ? { ...shown, start: row.starts_at } : shown;
    if (lease.end <= now) {
      // Blazar had not ended it when it was listed.
      continue;
    }
    if (row.state === 'ended' && row.ended_at !== null && row.ended_at > since) {
      leave(left(row, `it ended at ${formatInstant(row.ended_at)}; the list may be older`));
    } else if (row.lease_id === null || row.state === 'ended' || differs(row, lease, claimants)) {
      steps.push({ kind: 'correct', row, lease });
    }
  }
  for (const lease of unclear) {
    leave(
      unrecorded(
        lease,
        'it may be several leases that begin with it; the list does not say enough to tell which',
      ),
    );
  }
  for (const lease of unknown) {
    const { projectId, userId, reservations } = lease;
    if (lease.end <= now || (projectId !== undefined && terms.exemptProjects.includes(projectId))) {
      continue;
    }
    if (projectId === undefined || userId === undefined) {
      leave(unrecorded(lease, "can't be recorded: the list does not say whose it is"));
    } else if (reservations === undefined) {
      leave(unrecorded(lease, "can't be recorded: the list does not say what it reserves"));
    } else if (claimants.length === 0) {
      leave(unrecorded(lease, 'not recorded: no enabled filter keeps leases in the ledger'));
    } else {
      steps.push({ kind: 'record', lease: { ...lease, projectId, userId, reservations } });
    }
  }
  const found = { hasMatched: pairs.length > 0, hasAll: absent.length === 0 };
  return { steps, unrecorded: [], notBuilt: [], doubts: [], doubted: new Set(), ...found };
}

/** Why the ledger cannot store the ids of a lease. Neither Blazar nor Keystone creates such ids. */
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

/** The open rows of a region, read before the request to Blazar. */
export interface OpenRows {
  /** By the ledger's clock. */
  readonly readAt: Instant;
  readonly region: string;
  readonly rows: ReadonlyMap<bigint, LeaseRow>;
  /** The highest row id, in any state; 0 = no rows. */
  readonly last: bigint;
  /** Row → milliseconds for which this process has known it unchanged. `undefined` = not tracked. */
  readonly ages: ReadonlyMap<bigint, number> | undefined;
}

export interface ObservationTerms extends Terms {
  readonly exemptProjects: readonly string[];
  /** In seconds: maximum time between recording a lease and its appearance in Blazar. */
  readonly grace: bigint;
  /** Why the observation may be incomplete, or belong to another ledger: nothing is released then. */
  readonly doubts: readonly string[];
  /** Whether leases of this endpoint were found in the ledger before. */
  readonly isKnownEndpoint: boolean;
  /** Other endpoints where leases of this region were found: perhaps another Blazar, which has what is missing here. */
  readonly otherEndpoints: readonly string[];
  /** Whether the previous observation is so recent that a lease missing from both has never existed. */
  readonly looksOften: boolean;
  /** The rows that the previous observation would have released. */
  readonly doubted: ReadonlySet<bigint>;
  /** Leases in use that should have ended at least `ENDING` ago. */
  readonly overdue: readonly OverdueLease[];
}

/**
 * In seconds: a lease missing from two observations within this time has never existed, whatever the grace.
 */
export const OFTEN = 600n;
/** This many releases at once are normal, whatever their share. */
const FEW = 10;

/** How late Blazar may end a lease, in microseconds. */
export const ENDING = 300n * MICROSECONDS_PER_SECOND;
/**
 * How far in advance a lease is charged that Blazar does not end, in microseconds. It is charged again when half of
 * that is left, for fewer entries.
 */
export const AHEAD = 1800n * MICROSECONDS_PER_SECOND;

/** For all leases of Blazar. `ended`: rows of listed leases that had ended before the request to Blazar. */
export async function planForObservation(
  before: OpenRows,
  ended: readonly LeaseRow[],
  listed: readonly ShownLease[],
  terms: ObservationTerms,
): Promise<Plan> {
  const open = [...before.rows.values()];
  const pairing = await pairShown(listed, [...open, ...ended]);
  const overdue = await pairOverdue(terms.overdue, [...open, ...ended]);
  const isLate = latenessOf(before, terms.grace);
  const stable = pairing.pairs.filter(({ lease }) => !lease.isChanging);
  // Blazar does not record that a lease has lost its hosts if another lease is deleted while it looks for
  // others.
  const isUnclear = ({ row, lease }: (typeof stable)[number]) =>
    lease.isEmpty && (!isLate(row) || terms.doubts.length > 0);
  const pairs = stable.filter((one) => !isUnclear(one));
  const hasMatched = pairs.length + overdue.pairs.length > 0;
  const steps: Step[] = [];
  for (const { row } of stable.filter(isUnclear)) {
    steps.push({ kind: 'leave', left: left(row, 'Blazar shows no hosts of it') });
  }
  for (const { row, lease } of pairs) {
    if (isBeingMade(row, lease, before, terms)) {
      steps.push({ kind: 'leave', left: left(row, 'Blazar may be making a change of it') });
    } else if (row.shown !== digestOf(lease) || row.state === 'ended' || row.lease_id === null) {
      steps.push({ kind: 'correct', row, lease });
    }
  }

  // If a clock is wrong, they may not be late.
  for (const { row, lease } of terms.doubts.length > 0 ? [] : overdue.pairs) {
    const { state, alternatives, starts_at, ends_at } = row;
    const isKnown = state === 'open' && alternatives === null && starts_at <= lease.start;
    if (!isKnown || ends_at <= lease.end - AHEAD / 2n) {
      steps.push({ kind: 'correct', row, lease });
    }
  }

  // Leases of another Blazar must not be charged here.
  const isForeign = !hasMatched && open.some(({ lease_id }) => lease_id !== null);
  const unrecordedLeases: WholeLease[] = [];
  for (const lease of [...pairing.unknown, ...(terms.doubts.length > 0 ? [] : overdue.unknown)]) {
    const isOurs = !terms.exemptProjects.includes(lease.projectId);
    const isChanging = isObserved(lease) && (lease.isChanging || lease.isEmpty);
    if (isOurs && !isChanging && !isForeign && lease.projectId !== '') {
      steps.push({ kind: 'record', lease });
    } else if (isOurs) {
      unrecordedLeases.push(lease);
      if (!isChanging && !isForeign) {
        steps.push({ kind: 'leave', left: unrecorded(lease, 'Blazar does not say whose it is') });
      }
    }
  }

  const isOverdue = new Set(overdue.pairs.map(({ row }) => row.id));
  const absent = pairing.absent.filter(({ id }) => before.rows.has(id) && !isOverdue.has(id));
  const late = absent.filter(isLate);
  const early = absent.filter((row) => !isLate(row));
  const doubts = [...terms.doubts, ...doubtsOf(late, listed, hasMatched, terms)];
  const isCertain = doubts.length === 0;
  const isMuch = late.length > FEW && late.length * 2 > open.length;
  const doubted = new Set(isMuch && isCertain ? late.map(({ id }) => id) : []);
  const isUnsure = ({ id }: LeaseRow) => doubted.has(id) && !terms.doubted.has(id);
  if (late.some(isUnsure)) {
    doubts.push(
      `${late.length} of ${open.length} leases would be released at once: they are, if the next reconciliation finds the same`,
    );
  }
  for (const row of late) {
    // A lease that was missing before, too, has used nothing.
    const isUnused = terms.looksOften && row.shown === ABSENT;
    const note = isUnused ? 'Blazar has not built it' : 'Blazar does not have it any more';
    steps.push(
      isCertain && !isUnsure(row)
        ? { kind: 'release', row, isUnused, note }
        : { kind: 'leave', left: left(row, doubts.at(-1) ?? null) },
    );
  }
  for (const row of early) {
    steps.push({ kind: 'leave', left: left(row, 'Blazar does not have it yet') });
  }
  // Excludes leases that existed at their last request, and leases that could come and go between
  // observations: both may have been used.
  const longest = larger(terms.grace, OFTEN);
  const notBuilt = early.filter((row) => row.shown === null && wasAskedWithin(longest, row, before));
  return {
    steps,
    unrecorded: unrecordedLeases,
    notBuilt,
    doubts,
    doubted,
    hasMatched,
    hasAll: absent.length === 0,
  };
}

/**
 * Whether the last request for a row is so old that Blazar will not build the lease any more. A lease that
 * Blazar has shown exists or is gone, whatever the clocks say. For any other, a process that observes
 * repeatedly trusts no clock that can be set: it must have known the row for the whole time.
 */
function latenessOf({ readAt, ages }: OpenRows, grace: bigint): (row: LeaseRow) => boolean {
  const since = readAt - grace * MICROSECONDS_PER_SECOND;
  return ({ id, touched_at, shown }) =>
    ages === undefined || (shown !== null && shown !== ABSENT)
      ? touched_at <= since
      : (ages.get(id) ?? 0) >= Number(grace) * 1000;
}

/**
 * Whether Blazar may be making the change that was asked for last. Its status does not tell: another change that fails
 * meanwhile resets it.
 */
function isBeingMade(
  row: LeaseRow,
  { start, end, reservations }: ShownLease,
  before: OpenRows,
  { grace }: ObservationTerms,
): boolean {
  const [asked] = alternativesOf(row);
  const isMade = asked?.start === start && asked.end === end && asked.demand === demandOf(reservations);
  const longest = smaller(grace, MAKING / MICROSECONDS_PER_SECOND);
  return row.shown === ASKED && !isMade && wasAskedWithin(longest, row, before);
}

/** Whether the last request for a row was so many seconds ago, or fewer. */
function wasAskedWithin(seconds: bigint, { touched_at }: LeaseRow, { readAt }: OpenRows): boolean {
  return touched_at <= readAt && touched_at > readAt - seconds * MICROSECONDS_PER_SECOND;
}

/** Reasons not to release leases, from comparing the ledger with the list. */
function doubtsOf(
  late: readonly LeaseRow[],
  listed: readonly ShownLease[],
  hasMatched: boolean,
  { isKnownEndpoint, otherEndpoints, region }: ObservationTerms,
): string[] {
  if (late.length === 0) {
    return [];
  }
  if (listed.length === 0 && !hasMatched && late.some(({ shown }) => shown !== ABSENT)) {
    return ['Blazar lists no lease at all'];
  }
  if (!hasMatched && (!isKnownEndpoint || late.some(({ shown }) => shown !== ABSENT))) {
    return ['none of the leases that Blazar lists is one of the ledger'];
  }
  if (otherEndpoints.length > 0) {
    const where = `leases of the region ${JSON.stringify(region)} were also found at ${otherEndpoints.join(', ')}`;
    return [
      `${where}: if that is another Blazar, give each an os_region_name, or a ledger of its own; if it is the same, configure the same [blazar] endpoint everywhere`,
    ];
  }
  return [];
}

/** Whether a row without an id may be one of these unrecorded leases, changed since its request. */
export function mayBeOneOf(leases: readonly WholeLease[], row: LeaseRow): boolean {
  if (row.lease_id !== null || leases.length === 0) {
    return false;
  }
  const alternatives = alternativesOf(row);
  return leases.some(
    ({ projectId, start, end }) =>
      projectId === row.project_id && alternatives.some((one) => one.start < end && start < one.end),
  );
}
