/**
 * Compares the ledger with the leases that Blazar has: releases those that do not exist, records those that the ledger does not
 * know, and corrects dates and reservations that differ.
 */

import type { Wait } from '../../deadline.ts';
import { errorText, LedgerUnavailableError } from '../../errors.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { CLUSTER_REGION } from '../clusters/cluster-mark.ts';
import type { Undone, Work } from '../database/database.ts';
import type { LeaseRow } from '../database/schema.ts';
import type { Ledger } from '../ledger.ts';
import { keptName, textMistake } from '../texts.ts';
import type { Turn } from '../turn.ts';
import { regionsOf } from './known-regions.ts';
import { type ListedLease, pairLeases } from './lease-pairing.ts';
import { openLeasesOf } from './open-leases.ts';
import {
  corrected,
  differs,
  left,
  type Reconciled,
  type ReconcileOptions,
  recorded,
  released,
  settled,
  unrecorded,
} from './reconcile-lease.ts';

/** The regions of Blazar that the ledger has leases of. @throws LedgerUnavailableError */
export async function knownRegions(ledger: Ledger, wait: Wait): Promise<string[]> {
  const regions = await ledger.read('read', () => regionsOf(ledger), wait);
  return regions.filter((region) => region !== CLUSTER_REGION);
}

/**
 * Yields each lease as soon as it is done: when the ledger fails half way, what was done before stays. `listed`: the leases that
 * exist, of any project, each id once. `seen` is told how many leases were compared, and of how many. @throws LedgerUnavailableError
 */
export async function* reconcile(
  ledger: Ledger,
  listed: readonly ListedLease[],
  options: ReconcileOptions,
  wait: Wait,
  seen: (leases: number, all: number) => Promise<void> | undefined = () => undefined,
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
      // One lease that a filter cannot judge must not keep the others from being reconciled.
      return { ...failed, note: errorText(thrown) };
    }
  };

  const all = absent.length + pairs.length + unclear.length + unknown.length;
  let compared = 0;
  const next = (): Promise<void> | undefined => {
    compared += 1;
    return seen(compared, all);
  };
  for (const row of absent) {
    await next();
    const since = ledger.now() - options.olderThan * MICROSECONDS_PER_SECOND;
    yield row.recorded_at > since
      ? left(row, 'not in the list, which may be older than the lease')
      : await attempt((turn) => released(ledger, turn, row, options), left(row, null));
  }
  for (const { row, listed: lease } of pairs) {
    await next();
    if (row.lease_id === null || row.state === 'ended' || differs(row, lease, claimants)) {
      yield await attempt((turn) => corrected(ledger, turn, row, lease, options), left(row, null));
    }
  }
  for (const lease of unclear) {
    await next();
    yield unrecorded(
      lease,
      'it may be several leases that begin with it; the list does not say enough to tell which',
    );
  }
  for (const lease of unknown) {
    await next();
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

/** Why the ledger cannot hold the ids of a lease. Neither Blazar nor Keystone gives out such ids. */
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

/** The open leases of the projects, and every lease on the list in whatever state: all as of one moment. */
function rowsInQuestion(
  ledger: Ledger,
  listed: readonly ListedLease[],
  { region, projectIds }: ReconcileOptions,
  wait: Wait,
): Promise<LeaseRow[]> {
  const now = ledger.now();
  let all = ledger.database.queries.selectFrom('leases').selectAll().where('region', '=', region);
  let open = openLeasesOf(ledger.database.queries, region, now).selectAll();
  if (projectIds !== undefined) {
    all = all.where('project_id', 'in', [...projectIds]);
    open = open.where('project_id', 'in', [...projectIds]);
  }
  const queries = [open.orderBy('id').compile()];
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

/** Databases limit the number of parameters of a query. */
const BATCH = 500;
