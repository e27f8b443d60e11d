/**
 * Compares the ledger with what Blazar has, once. Blazar's list is older than requests that are answered while it is read, so a row that
 * was touched since the rows were read, which is before the list, stays as it is until the next round.
 */
import { breathing } from '../breath.ts';
import type { Wait } from '../deadline.ts';
import { errorText, LedgerUnavailableError } from '../errors.ts';
import { type Instant, MICROSECONDS_PER_SECOND } from '../lease/dates.ts';
import { rows, type Undone, type Work } from './database.ts';
import type { Ledger } from './ledger.ts';
import { openLeasesOf } from './open-leases.ts';
import { left, type Reconciled, settled, unrecorded } from './reconcile-lease.ts';
import { note, type RoundTerms, recordUnseen, releaseAbsent, settle } from './round-lease.ts';
import { pairRows } from './round-pairing.ts';
import type { LeaseRow } from './schema.ts';
import { ABSENT, digestOf, type ShownLease } from './shown-lease.ts';
import { textMistake } from './texts.ts';
import type { Turn } from './turn.ts';

/** The open rows of a region, read before Blazar is asked. */
export interface OpenRows {
  /** By our clock. */
  readonly readAt: Instant;
  readonly region: string;
  readonly rows: ReadonlyMap<bigint, LeaseRow>;
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

/** So many releases in one round are usual, whatever their share. */
const FEW = 10;
/** How many rows are marked in one transaction. */
const BATCH = 100;

/** @throws LedgerUnavailableError */
export async function readOpenRows(ledger: Ledger, region: string, wait: Wait): Promise<OpenRows> {
  const readAt = ledger.now();
  const query = openLeasesOf(ledger.database.queries, region, readAt).selectAll().orderBy('id');
  const breathe = breathing();
  const found = new Map<bigint, LeaseRow>();
  await ledger.database.snapshot(async (snapshot) => {
    for await (const row of snapshot.stream(query.compile())) {
      found.set(row.id, row);
      await breathe();
    }
  }, wait);
  return { readAt, region, rows: found };
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
  const grace = options.grace * MICROSECONDS_PER_SECOND;
  const ended = await endedRows(ledger, before, listed, wait);
  const all = [...before.rows.values(), ...ended];
  const { pairs, unknown, absent } = await pairRows(all, listed, grace);
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
  const since = before.readAt - grace;
  const late = absent.filter((row) => row.touched_at <= since);
  const early = absent.filter((row) => row.touched_at > since);
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
  const isKept = new Set(doubts.length > 0 && unsure.length === 0 ? late : unsure);
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
      // One that was there when it was asked for may have been used.
      early.filter(({ shown }) => shown === null),
      wait,
    );
  }
  const revisions = new Map([...before.rows.values()].map(({ id, revision }) => [id, revision]));
  // Leases of another Blazar must not be charged here.
  const isForeign = !hasMatched && [...before.rows.values()].some(({ lease_id }) => lease_id !== null);
  for (const shown of isForeign ? [] : unknown) {
    if (exemptProjects.includes(shown.projectId)) {
      continue;
    }
    if (shown.projectId === '') {
      yield unrecorded(shown, 'Blazar does not say whose it is');
      continue;
    }
    const done = await attempt(
      (turn) => recordUnseen(ledger, turn, shown, options, revisions),
      unrecorded(shown, null),
      shown.projectId,
    );
    if (done !== undefined) {
      yield done;
    }
  }
  return { doubts, doubted, hasMatched };
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

/** Rows of listed leases that had ended before Blazar was asked. */
async function endedRows(
  ledger: Ledger,
  { readAt, region, rows: open }: OpenRows,
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
      .where('state', '=', 'ended')
      .where('lease_id', 'in', ids.slice(start, start + BATCH * 5))
      .compile();
    const some = await ledger.read('read', () => rows(query), wait);
    // One that ended since then may have been in the list before it ended.
    found.push(...some.filter(({ id, ended_at }) => !open.has(id) && (ended_at ?? readAt) < readAt));
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
