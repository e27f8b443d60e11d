/** The history of a lease: its decisions and ledger entries in one list, newest first, in pages. */
import { inTime, type Wait } from '../../base/deadline.ts';
import type { RequestedLease } from '../../decisions/lease-record.ts';
import type { DecisionRecord } from '../../decisions/record.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { type EntryView, listEntries } from '../../ledger/reports/entries.ts';
import type { LeaseRowView } from '../../ledger/reports/leases.ts';
import { leasesWithKey, leaseWithCharges } from '../../ledger/reports/one-lease.ts';
import { cursorOf, keyOf, numberIn, type PageOf, type PageQuery } from '../../ledger/reports/pages.ts';
import { isBudgetAccount, type ListedRow } from '../../ledger/reports/reports.ts';
import { type Caller, may } from '../users/caller.ts';

interface FoundLease {
  readonly lease: LeaseRowView;
  /** The request that created it; `null` = unknown. */
  readonly createdBy: string | null;
}

/**
 * The lease in the ledger, if there is one, by Blazar's id or by its row, `#17`, as `ledger show` accepts it. `several`: leases
 * with the same id, in several regions or projects. `projects`: only these; `undefined` = all.
 *
 * @throws LedgerUnavailableError
 */
export async function foundLease(
  ledger: Ledger | undefined,
  key: string,
  projects: readonly string[] | undefined,
  wait: Wait,
): Promise<{ readonly one?: FoundLease | undefined; readonly several?: readonly ListedRow[] }> {
  if (ledger === undefined) {
    return {};
  }
  const row = /^#(\d{1,18})$/.exec(key)?.[1];
  const found = await inTime(
    leasesWithKey(ledger, row === undefined ? key : BigInt(row), projects, wait),
    wait,
  );
  const [first] = found;
  if (first === undefined) {
    return {};
  }
  if (found.length > 1) {
    return { several: found };
  }
  return { one: await inTime(leaseWithCharges(ledger, first, wait), wait) };
}

/** A decision in the store, or of this process. */
export interface FoundDecision {
  /** As in `StoredDecision`; missing for decisions of this process. */
  readonly id?: bigint;
  readonly record: DecisionRecord;
  readonly asked: RequestedLease | undefined;
  /** `undefined` = this process. */
  readonly replica: string | undefined;
}

/** Searches decisions that the caller may see, newest first: by lease, or by the request that created it. */
type SearchDecisions = (
  wanted: { readonly leaseId: string } | { readonly requestId: string },
  page: PageQuery,
) => Promise<PageOf<FoundDecision>>;

export interface Step {
  /** Microseconds of the epoch. */
  readonly at: bigint;
  readonly decision?: FoundDecision;
  readonly entry?: EntryView;
}

interface Wanted extends PageQuery {
  readonly caller: Caller;
  /** As for `foundLease`. */
  readonly key: string;
  /** `undefined` = not in the ledger. */
  readonly found: FoundLease | undefined;
  readonly ledger: Ledger | undefined;
  /** `undefined` = decisions are not stored. */
  readonly search: SearchDecisions | undefined;
}

/** The end of the earlier pages: their last decision and last entry. */
interface Position {
  readonly at: bigint;
  readonly id: bigint;
  readonly entry: bigint;
}

/** What was read from one source, in its order. `edge`: the end of the part that was read. */
interface Read {
  readonly steps: { readonly step: Step; readonly reached: Partial<Position> }[];
  readonly edge: { readonly at: bigint; readonly reached: Partial<Position> } | undefined;
}

/** The start of the list: the largest number of 64 bits. */
const START = 2n ** 63n - 1n;

/**
 * A page may have fewer steps than its limit, even none: only `next` shows whether there are more. Members
 * see only entries of budgets, without author and reason, and no entries elsewhere.
 *
 * @throws LedgerUnavailableError, CursorError
 */
export async function leaseHistory(wanted: Wanted, wait: Wait): Promise<PageOf<Step>> {
  const [at = START, id = START, entry = START] =
    wanted.after === undefined ? [] : keyOf(wanted.after, ['number', 'number', 'number']).map(BigInt);
  let position: Position = { at, id, entry };
  const left = [await readDecisions(wanted, position), await readEntries(wanted, position, wait)];
  const items: Step[] = [];
  while (items.length < wanted.limit) {
    const headOf = ({ steps, edge }: Read) => steps[0]?.step.at ?? edge?.at ?? -START;
    const next = left.reduce((best, one) => (headOf(one) > headOf(best) ? one : best)).steps.shift();
    if (next === undefined) {
      break;
    }
    items.push(next.step);
    position = { ...position, ...next.reached };
  }
  for (const { steps, edge } of left) {
    // Parts without a match are not read again.
    position = steps.length === 0 && edge !== undefined ? { ...position, ...edge.reached } : position;
  }
  const isLast = left.every(({ steps, edge }) => steps.length === 0 && edge === undefined);
  return {
    items: may(wanted.caller, 'see-ledger') ? items : items.flatMap(shownToMember),
    next: isLast ? undefined : cursorOf([position.at, position.id, position.entry]),
  };
}

function shownToMember(step: Step): Step[] {
  const { entry } = step;
  if (entry === undefined) {
    return [step];
  }
  return isBudgetAccount(entry.account) ? [{ ...step, entry: { ...entry, who: '', reason: null } }] : [];
}

async function readDecisions({ search, key, found, limit }: Wanted, { at, id }: Position): Promise<Read> {
  const leaseId = found === undefined ? key : found.lease.leaseId;
  const after = at === START ? undefined : cursorOf([at, id]);
  const page = { limit, after };
  const pages =
    search === undefined
      ? []
      : [
          ...(leaseId === null ? [] : [await search({ leaseId }, page)]),
          ...(found?.createdBy == null
            ? []
            : [ofCreation(await search({ requestId: found.createdBy }, page), found)]),
        ];
  const isAfter = (one: { at: bigint; id: bigint }, other: { at: bigint; id: bigint }) =>
    one.at < other.at || (one.at === other.at && one.id < other.id);
  const edges = pages.flatMap(({ next }) => {
    const [edgeAt, edgeId] = next === undefined ? [] : keyOf(next, ['number', 'number']).map(BigInt);
    return edgeAt === undefined || edgeId === undefined ? [] : [{ at: edgeAt, id: edgeId }];
  });
  const edge = edges.sort((one, other) => (isAfter(one, other) ? 1 : -1))[0];
  const steps = pages
    .flatMap(({ items }) => items)
    .map((decision) => ({
      decision,
      at: BigInt(Date.parse(decision.record.time)) * 1000n,
      id: decision.id ?? 0n,
    }))
    .filter((one) => isAfter(one, { at, id }) && (edge === undefined || !isAfter(one, edge)))
    .sort((one, other) => (isAfter(one, other) ? 1 : -1))
    .map(({ decision, ...reached }) => ({ step: { at: reached.at, decision }, reached }));
  return { steps, edge: edge && { at: edge.at, reached: edge } };
}

/** The decision of the creation, which has no lease id yet. Clients may reuse a request id. */
function ofCreation(page: PageOf<FoundDecision>, { lease }: FoundLease) {
  const isOfIt = ({ record: { operation, lease_id, project_id, user_id } }: FoundDecision) =>
    operation.endsWith('create') &&
    lease_id === null &&
    project_id === lease.projectId &&
    user_id === lease.userId;
  return { ...page, items: page.items.filter(isOfIt) };
}

async function readEntries(
  { ledger, found, limit }: Pick<Wanted, 'ledger' | 'found' | 'limit'>,
  { entry }: Position,
  wait: Wait,
): Promise<Read> {
  if (ledger === undefined || found === undefined) {
    return { steps: [], edge: undefined };
  }
  const after = entry === START ? undefined : cursorOf([entry]);
  const { items, next } = await inTime(
    listEntries(ledger, { lease: found.lease.row, limit, after }, wait),
    wait,
  );
  const last = numberIn(next);
  return {
    steps: items.map((one) => ({ step: { at: one.at, entry: one }, reached: { entry: one.id } })),
    edge: last === undefined ? undefined : { at: items.at(-1)?.at ?? START, reached: { entry: last } },
  };
}
