/**
 * Compares the ledger with what Blazar has, once. Blazar's list is older than requests that are answered while it is read, so a row that
 * was touched since the rows were read, which is before the list, stays as it is until the next round.
 */
import { breathing } from '../../breath.ts';
import type { Wait } from '../../deadline.ts';
import { errorText, LedgerUnavailableError } from '../../errors.ts';
import { type Instant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { alternativesOf } from '../alternatives.ts';
import { rows, type Undone, type Work } from '../database/database.ts';
import type { LeaseRow } from '../database/schema.ts';
import type { Ledger } from '../ledger.ts';
import { textMistake } from '../texts.ts';
import type { Turn } from '../turn.ts';
import type { KnownSince } from './known-since.ts';
import { openLeasesOf } from './open-leases.ts';
import { left, type Reconciled, settled, unrecorded } from './reconcile-lease.ts';
import { note, type RoundTerms, recordUnseen, releaseAbsent, settle } from './round-lease.ts';
import { pairRows } from './round-pairing.ts';
import { ABSENT, digestOf, type ShownLease } from './shown-lease.ts';

/** The open rows of a region, read before Blazar is asked. */
export interface OpenRows {
  /** By the ledger's clock. */
  readonly readAt: Instant;
  readonly region: string;
  readonly rows: ReadonlyMap<bigint, LeaseRow>;
  /** The last row there was, in whatever state; 0 = there was none. */
  readonly last: bigint;
  /** Of the rows: for how many milliseconds this process has known them as they are. `undefined` = it does not remember. */
  readonly ages: ReadonlyMap<bigint, number> | undefined;
}

export interface RoundOptions extends RoundTerms {
  readonly exemptProjects: readonly string[];
  /** In seconds: how long a lease may be recorded before Blazar shows it. */
  readonly grace: bigint;
  readonly isDryRun: boolean;
  /** Why the list may not be complete, or not of this ledger: then nothing is released. */
  readonly doubts: readonly string[];
  /** Whether leases of this endpoint were found in the ledger before. */
  readonly isKnownEndpoint: boolean;
  /** Whether the round before is so short ago that what neither of them has seen was never there. */
  readonly looksOften: boolean;
  /** The rows that the round before would have released. */
  readonly doubted: ReadonlySet<bigint>;
}

/** What is known when a round is over. */
export interface RoundEnd {
  /** Why nothing, or not everything, was released. */
  readonly doubts: readonly string[];
  /** The rows that the next round may release if it finds the same. */
  readonly doubted: ReadonlySet<bigint>;
  /** Whether a listed lease is one of the ledger's. */
  readonly hasMatched: boolean;
}

/** In seconds: a lease that two rounds so near each other have not seen was never there, whatever the grace is. */
export const OFTEN = 600n;
/** So many releases in one round are usual, whatever their share. */
const FEW = 10;
/** How many rows are marked in one transaction. */
const BATCH = 100;

/** `known`: what earlier rounds of this process have seen. @throws LedgerUnavailableError */
export async function readOpenRows(
  ledger: Ledger,
  region: string,
  wait: Wait,
  known?: KnownSince,
): Promise<OpenRows> {
  const begun = known?.now() ?? 0;
  await ledger.setClock(wait);
  const readAt = ledger.now();
  const query = openLeasesOf(ledger.database.queries, region, readAt).selectAll().orderBy('id');
  const found = new Map<bigint, LeaseRow>();
  const newest = ledger.database.queries.selectFrom('leases').select('id').orderBy('id', 'desc').limit(1);
  let last = 0n;
  await ledger.database.snapshot(async (snapshot) => {
    for await (const row of snapshot.stream(query.compile())) {
      found.set(row.id, row);
    }
    for await (const { id } of snapshot.stream(newest.compile())) {
      last = id;
    }
  }, wait);
  known?.learn(found.values());
  const ages = known && new Map([...found.values()].map((row) => [row.id, known.age(row, begun)]));
  return { readAt, region, rows: found, last, ages };
}

/**
 * Yields what it changes, and what it leaves, as soon as it is done: when the ledger fails half way, what was done before stays.
 * `listed`: all leases that Blazar has, each id once. @throws LedgerUnavailableError
 */
export async function* followOnce(
  ledger: Ledger,
  before: OpenRows,
  listed: readonly ShownLease[],
  options: RoundOptions,
  wait: Wait,
): AsyncGenerator<Reconciled, RoundEnd> {
  const { exemptProjects, isDryRun } = options;
  const ended = await endedRows(ledger, before, listed, wait);
  const all = [...before.rows.values(), ...ended];
  const { pairs, unknown, changing, absent: unpaired } = await pairRows(all, listed);
  const absent = unpaired.filter(({ id }) => before.rows.has(id));
  const breathe = breathing();
  const attempt = async (
    work: (turn: Turn) => Work<Reconciled | undefined | Undone<Reconciled | undefined>>,
    failed: Reconciled,
    project: string,
  ): Promise<Reconciled | undefined> => {
    await breathe();
    try {
      return await ledger.transact('reconcile', (turn) => settled(work(turn), options), wait, { project });
    } catch (thrown) {
      if (thrown instanceof LedgerUnavailableError) {
        throw thrown;
      }
      // One lease that a filter cannot judge must not keep the others from being compared.
      return { ...failed, note: errorText(thrown), isFailure: true };
    }
  };

  for (const { row, shown } of pairs) {
    await breathe();
    if (row.shown !== digestOf(shown) || row.state === 'ended' || row.lease_id === null) {
      const work = (turn: Turn) => settle(ledger, turn, row, shown, options);
      const done = await attempt(work, left(row, null), row.project_id);
      if (done !== undefined) {
        yield done;
      }
    }
  }

  const hasMatched = pairs.length > 0;
  const isLate = latenessOf(before, options.grace);
  const late = absent.filter(isLate);
  const early = absent.filter((row) => !isLate(row));
  const doubts = [...options.doubts, ...doubtsOf(late, listed, { hasMatched, ...options })];
  const isMuch = late.length > FEW && late.length * 2 > before.rows.size;
  const known = new Set(before.rows.keys());
  const doubted = new Set(isMuch && doubts.length === 0 ? late.map(({ id }) => id) : []);
  const unsure = late.filter(({ id }) => doubted.has(id) && !options.doubted.has(id));
  if (unsure.length > 0) {
    doubts.push(
      `${late.length} of ${known.size} leases would be released at once: they are, if the next round finds the same`,
    );
  }
  const revisions = new Map([...before.rows.values()].map(({ id, revision }) => [id, revision]));
  // Leases of another Blazar must not be charged here.
  const isForeign = !hasMatched && [...before.rows.values()].some(({ lease_id }) => lease_id !== null);
  const isOurs = ({ projectId }: ShownLease) => !exemptProjects.includes(projectId);
  const rowless = changing.filter(isOurs);
  for (const shown of unknown.filter(isOurs)) {
    const { projectId } = shown;
    const done = isForeign
      ? undefined
      : projectId === ''
        ? unrecorded(shown, 'Blazar does not say whose it is')
        : await attempt(
            (turn) => recordUnseen(ledger, turn, shown, options, revisions, before.readAt),
            unrecorded(shown, null),
            projectId,
          );
    if (done !== undefined) {
      yield done;
    }
    if (done?.outcome !== 'recorded') {
      rowless.push(shown);
    }
  }

  const held = doubts.length === 0 || unsure.length > 0 ? late.filter(mayBeOneOf(rowless)) : [];
  const isKept = new Set(doubts.length > 0 && unsure.length === 0 ? late : [...unsure, ...held]);
  if (held.length > 0) {
    doubts.push(MAY_BE_LISTED);
  }
  for (const row of late) {
    if (isKept.has(row)) {
      yield left(row, doubts.at(-1) ?? null);
      continue;
    }
    const done = await attempt(
      (turn) => releaseAbsent(ledger, turn, row, options, options.looksOften),
      left(row, null),
      row.project_id,
    );
    if (done !== undefined) {
      yield done;
    }
  }

  const isTrusted = doubts.length === 0;
  for (const row of early) {
    yield left(row, 'Blazar does not have it yet');
  }
  if (isTrusted && !isDryRun) {
    await noteAbsent(
      ledger,
      // One that was there when it was asked for may have been used; so may one that had the time to come and go before anybody looked.
      early.filter((row) => row.shown === null && wasJustAsked(row, before, options)),
      wait,
    );
  }
  return { doubts, doubted, hasMatched };
}

/**
 * Whether a row was asked for so long ago that Blazar will not build it any more. One that Blazar has shown is there or gone, whatever clocks
 * say. For any other, a process that makes rounds again and again trusts no clock that is set: it must have known the row for as long.
 */
function latenessOf({ readAt, ages }: OpenRows, grace: bigint): (row: LeaseRow) => boolean {
  const since = readAt - grace * MICROSECONDS_PER_SECOND;
  return ({ id, touched_at, shown }) =>
    ages === undefined || (shown !== null && shown !== ABSENT)
      ? touched_at <= since
      : (ages.get(id) ?? 0) >= Number(grace) * 1000;
}

/** Whether a row was asked for so short ago that a lease that is not there was never there. */
function wasJustAsked(
  { touched_at }: LeaseRow,
  { readAt }: OpenRows,
  { grace }: Pick<RoundOptions, 'grace'>,
): boolean {
  const longest = (grace > OFTEN ? grace : OFTEN) * MICROSECONDS_PER_SECOND;
  return touched_at <= readAt && touched_at > readAt - longest;
}

const MAY_BE_LISTED = 'Blazar lists leases that are not recorded, and may be some that would be released';

/** Whether a row without an id may be that of a listed lease that has none: it may have been changed since it was asked for. */
function mayBeOneOf(rowless: readonly ShownLease[]): (row: LeaseRow) => boolean {
  return ({ lease_id, project_id, ...row }) =>
    lease_id === null &&
    rowless.some(
      ({ projectId, start, end }) =>
        projectId === project_id && alternativesOf(row).some((one) => one.start < end && start < one.end),
    );
}

/** What speaks against releasing leases, in what the ledger and the list say together. */
function doubtsOf(
  late: readonly LeaseRow[],
  listed: readonly ShownLease[],
  { hasMatched, isKnownEndpoint }: { readonly hasMatched: boolean; readonly isKnownEndpoint: boolean },
): string[] {
  if (late.length === 0) {
    return [];
  }
  if (listed.length === 0 && late.some(({ shown }) => shown !== ABSENT)) {
    return ['Blazar lists no lease at all'];
  }
  if (!hasMatched && (!isKnownEndpoint || late.some(({ shown }) => shown !== ABSENT))) {
    return ['none of the leases that Blazar lists is one of the ledger'];
  }
  return [];
}

/** Rows of listed leases that had ended before Blazar was asked: they are closed, or past their end. */
async function endedRows(
  ledger: Ledger,
  { last, region, rows: open, readAt }: OpenRows,
  listed: readonly ShownLease[],
  wait: Wait,
): Promise<LeaseRow[]> {
  const known = new Set([...open.values()].map(({ lease_id }) => lease_id));
  // One that no database stores was never recorded.
  const ids = listed.flatMap(({ id }) => (known.has(id) || textMistake(id) !== undefined ? [] : [id]));
  const found: LeaseRow[] = [];
  for (let start = 0; start < ids.length; start += BATCH * 5) {
    const query = ledger.database.queries
      .selectFrom('leases')
      .selectAll()
      .where('region', '=', region)
      .where('lease_id', 'in', ids.slice(start, start + BATCH * 5))
      .compile();
    const some = await ledger.read('read', () => rows(query), wait);
    // One that ended since then may have been in the list before it ended: it was open then, or is new.
    const ended = some.filter(({ state, ends_at }) => state === 'ended' || ends_at <= readAt);
    found.push(...ended.filter(({ id }) => !open.has(id) && id <= last));
  }
  return found;
}

/** Marks rows of leases that Blazar has not built so far. */
async function noteAbsent(ledger: Ledger, absent: readonly LeaseRow[], wait: Wait): Promise<void> {
  for (const project of new Set(absent.map(({ project_id }) => project_id))) {
    const ofProject = absent.filter(({ project_id }) => project_id === project);
    for (let start = 0; start < ofProject.length; start += BATCH) {
      const marks = ofProject.slice(start, start + BATCH).map((row) => ({ row, shown: ABSENT }));
      await ledger.transact('reconcile', (turn) => note(ledger, turn, project, marks), wait, { project });
    }
  }
}
