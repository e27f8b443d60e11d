/** Compares the ledger with the leases of Blazar: makes a plan and executes it, one transaction per lease. */

import type { Wait } from '../../base/deadline.ts';
import { errorText, LedgerUnavailableError } from '../../base/errors.ts';
import { timedYield } from '../../base/yield-to-event-loop.ts';
import { addTo } from '../add-to.ts';
import { textMistake } from '../identity.ts';
import type { Ledger } from '../ledger.ts';
import { rows, Undone, type Work } from '../storage/database.ts';
import { openLeasesOf } from '../storage/query-parts.ts';
import type { LeaseRow } from '../storage/schema.ts';
import type { Transaction } from '../transactions/transaction.ts';
import {
  left,
  type Reconciled,
  type Result,
  recordLease,
  releaseLease,
  type Seen,
  type Terms,
  unrecorded,
} from './change-lease.ts';
import { correctLease } from './correct-lease.ts';
import { ABSENT, type ListedLease, type ShownLease } from './leases.ts';
import {
  type ListTerms,
  mayBeOneOf,
  type ObservationTerms,
  type OpenRows,
  type Plan,
  planForList,
  planForObservation,
  type Step,
} from './plan.ts';

/** `known`: row ages from earlier comparisons of this process. @throws LedgerUnavailableError */
export async function readOpenRows(
  ledger: Ledger,
  region: string,
  wait: Wait,
  known?: RowAges,
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

/** Every lease would be released, because the list has no lease of the ledger: it may be the list of another cloud or region. */
export class UnrelatedListError extends Error {
  /** How many leases would be released. */
  readonly count: number;

  constructor(count: number) {
    super('none of the listed leases is in the ledger');
    this.count = count;
  }
}

/**
 * With a list in a file: the existing leases, each id once. Yields each lease as soon as it is done: if the
 * ledger fails halfway, completed changes stay. `seen` gets the number of completed steps and their total.
 * @throws LedgerUnavailableError, UnrelatedListError
 */
export async function* reconcileList(
  ledger: Ledger,
  listed: readonly ListedLease[],
  terms: ListTerms,
  wait: Wait,
  seen?: (steps: number, all: number) => Promise<void> | undefined,
): AsyncGenerator<Reconciled> {
  const before = await readOpenRows(ledger, terms.region, wait);
  const read = [...before.rows.values(), ...(await endedRows(ledger, before, listed, wait))];
  const own = read.filter(({ project_id }) => terms.projectIds?.has(project_id) ?? true);
  const plan = await planForList(own, listed, terms, before.readAt);
  const { ids } = terms;
  const released = plan.steps.filter(({ kind }) => kind === 'release').length;
  const isRelated = plan.hasMatched || read.some(({ lease_id }) => lease_id !== null && ids?.has(lease_id));
  if (ids !== undefined && released > 0 && !isRelated) {
    throw new UnrelatedListError(released);
  }
  yield* execute(ledger, plan, before, terms, wait, seen);
}

interface ReconciliationEnd extends Pick<Plan, 'doubts' | 'doubted' | 'hasMatched' | 'hasAll'> {}

/**
 * With all leases of Blazar, each id once. Blazar's list is older than requests that are answered while it is
 * read. So a row that changed since `before` was read, which is before the list, is left until the next time.
 * Yields like `reconcileList`.
 * @throws LedgerUnavailableError
 */
export async function* reconcileObservation(
  ledger: Ledger,
  before: OpenRows,
  listed: readonly ShownLease[],
  terms: ObservationTerms,
  wait: Wait,
): AsyncGenerator<Reconciled, ReconciliationEnd> {
  const ended = await endedRows(ledger, before, [...listed, ...terms.overdue], wait);
  const plan = await planForObservation(before, ended, listed, terms);
  const doubts = yield* execute(ledger, plan, before, terms, wait);
  return { ...plan, doubts };
}

const MAY_BE_LISTED = 'Blazar lists leases that are not recorded, and may be some that would be released';

/** Returns why nothing, or not everything, was released. */
async function* execute(
  ledger: Ledger,
  plan: Plan,
  { readAt, rows: open }: OpenRows,
  terms: Terms,
  wait: Wait,
  progress: (steps: number, all: number) => Promise<void> | undefined = () => undefined,
): AsyncGenerator<Reconciled, string[]> {
  const seen = { readAt, revisions: new Map([...open.values()].map(({ id, revision }) => [id, revision])) };
  const unrecordedLeases = [...plan.unrecorded];
  const doubts = new Set(plan.doubts);
  const yieldIfDue = timedYield();
  for (const [index, step] of plan.steps.entries()) {
    await progress(index + 1, plan.steps.length);
    await yieldIfDue();
    const isHeld = step.kind === 'release' && mayBeOneOf(unrecordedLeases, step.row);
    if (isHeld) {
      doubts.add(MAY_BE_LISTED);
    }
    const done = isHeld ? left(step.row, MAY_BE_LISTED) : await attempt(ledger, step, seen, terms, wait);
    if (step.kind === 'record' && done?.outcome !== 'recorded') {
      unrecordedLeases.push(step.lease);
    }
    if (done !== undefined) {
      yield done;
    }
  }
  if (doubts.size === 0 && !terms.isDryRun) {
    await markNotBuilt(ledger, plan.notBuilt, wait);
  }
  return [...doubts];
}

async function attempt(ledger: Ledger, step: Step, seen: Seen, terms: Terms, wait: Wait): Promise<Result> {
  if (step.kind === 'leave') {
    return step.left;
  }
  const project = step.kind === 'record' ? step.lease.projectId : step.row.project_id;
  try {
    return await ledger.transact(
      'reconcile',
      (transaction) => settled(ledger, transaction, step, seen, terms),
      wait,
      { project },
    );
  } catch (thrown) {
    if (thrown instanceof LedgerUnavailableError) {
      throw thrown;
    }
    // A lease that a filter cannot judge must not prevent comparing the others.
    const failed = step.kind === 'record' ? unrecorded(step.lease, null) : left(step.row, null);
    return { ...failed, note: errorText(thrown), isFailure: true };
  }
}

/** A dry run is rolled back. */
function* settled(
  ledger: Ledger,
  transaction: Transaction,
  step: Exclude<Step, { kind: 'leave' }>,
  seen: Seen,
  terms: Terms,
): Work<Result | Undone<Result>> {
  const result =
    step.kind === 'release'
      ? yield* releaseLease(ledger, transaction, step.row, step, terms)
      : step.kind === 'correct'
        ? yield* correctLease(ledger, transaction, step.row, step.lease, terms)
        : yield* recordLease(ledger, transaction, step.lease, seen, terms);
  return terms.isDryRun && !(result instanceof Undone) ? new Undone(result) : result;
}

/** Rows of listed leases that had ended or expired before the open rows were read. */
async function endedRows(
  ledger: Ledger,
  { last, region, rows: open, readAt }: OpenRows,
  listed: readonly ListedLease[],
  wait: Wait,
): Promise<LeaseRow[]> {
  const known = new Set([...open.values()].map(({ project_id, lease_id }) => `${project_id}\0${lease_id}`));
  // Ids that no database stores were never recorded. An open row of another project does not exclude rows of
  // this project.
  const ids = listed.flatMap(({ id, projectId }) =>
    known.has(`${projectId}\0${id}`) || textMistake(id) !== undefined ? [] : [id],
  );
  const found = await rowsWithIds(ledger, region, ids, wait);
  // One that ended since then may have been in the list before it ended: it was open then, or is new.
  const ended = found.filter(({ state, ends_at }) => state === 'ended' || ends_at <= readAt);
  return ended.filter(({ id }) => !open.has(id) && id <= last);
}

/** Databases limit the number of parameters of a query. */
const BATCH = 500;

/** The rows with these ids of leases; of one id, the one that was touched last is the last. @throws LedgerUnavailableError */
export async function rowsWithIds(
  ledger: Ledger,
  region: string,
  ids: readonly string[],
  wait: Wait,
): Promise<LeaseRow[]> {
  const found: LeaseRow[] = [];
  for (let start = 0; start < ids.length; start += BATCH) {
    const query = ledger.database.queries
      .selectFrom('leases')
      .selectAll()
      .where('region', '=', region)
      .where('lease_id', 'in', ids.slice(start, start + BATCH))
      .orderBy('touched_at');
    found.push(...(await ledger.read('read', () => rows(query.compile()), wait)));
  }
  return found;
}

/** Rows marked in one transaction. */
const MARKED = 100;

/** Marks leases that were missing from a complete observation; changes no charge. */
async function markNotBuilt(ledger: Ledger, absent: readonly LeaseRow[], wait: Wait): Promise<void> {
  const byProject = new Map<string, LeaseRow[]>();
  for (const row of absent) {
    addTo(byProject, row.project_id, row);
  }
  for (const [project, ofProject] of byProject) {
    for (let start = 0; start < ofProject.length; start += MARKED) {
      const some = ofProject.slice(start, start + MARKED);
      await ledger.transact(
        'reconcile',
        function* (transaction) {
          yield* transaction.lock(project);
          for (const { id, revision } of some) {
            const query = ledger.database.queries
              .updateTable('leases')
              .set({ shown: ABSENT })
              .where('id', '=', id)
              .where('revision', '=', revision)
              .where('state', '=', 'open');
            yield* rows(query.compile());
          }
        },
        wait,
        { project },
      );
    }
  }
}

type Known = Pick<LeaseRow, 'id' | 'revision'>;

/**
 * How long this process has known the rows of the ledger, by a monotonic clock. The clocks of replicas, their
 * database and Blazar may be wrong, or be set while a lease is being built. A row that this process has seen
 * before has existed at least since then.
 */
export class RowAges {
  readonly #milliseconds: () => number;
  #rows = new Map<bigint, { readonly revision: bigint; readonly at: number }>();

  /** `milliseconds`: a monotonic clock. */
  constructor(milliseconds: () => number = () => performance.now()) {
    this.#milliseconds = milliseconds;
  }

  now(): number {
    return this.#milliseconds();
  }

  /** To be called with all open rows: other rows are dropped. */
  learn(rows: Iterable<Known>): void {
    const at = this.now();
    const next = new Map<bigint, { readonly revision: bigint; readonly at: number }>();
    for (const { id, revision } of rows) {
      const before = this.#rows.get(id);
      next.set(id, before?.revision === revision ? before : { revision, at });
    }
    this.#rows = next;
  }

  /** Minimum number of milliseconds before `now` that a row has been unchanged. 0 = it may be new. */
  age({ id, revision }: Known, now: number): number {
    const known = this.#rows.get(id);
    return known?.revision === revision ? Math.max(0, now - known.at) : 0;
  }
}
