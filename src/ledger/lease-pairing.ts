/** Which lease of the ledger is which of Blazar's. */
import type { ListedLease } from './reconcile.ts';
import type { LeaseRow } from './schema.ts';

export interface Pairing {
  readonly pairs: readonly { readonly listed: ListedLease; readonly row: LeaseRow }[];
  /** Blazar has them, and the ledger does not. */
  readonly unknown: readonly ListedLease[];
  /** Each may be one of several leases of different owners. */
  readonly unclear: readonly ListedLease[];
  /** The ledger takes them to be there, and Blazar does not have them. */
  readonly absent: readonly LeaseRow[];
}

/**
 * By id; a lease whose id the ledger does not know by name and start, and by its owner where the list says it. Of several the
 * one that ends when it does, else the one that was recorded first.
 */
export function pairLeases(listed: readonly ListedLease[], rows: readonly LeaseRow[]): Pairing {
  const byId = new Map(rows.flatMap((row) => (row.lease_id === null ? [] : [[row.lease_id, row] as const])));
  const pairs = listed.flatMap((lease) => {
    const row = byId.get(lease.id);
    return row === undefined ? [] : [{ listed: lease, row }];
  });
  const nameless = new Map<string, LeaseRow[]>();
  for (const row of rows) {
    if (row.lease_id === null && row.state === 'open') {
      const key = keyOf(row.name, row.starts_at);
      nameless.set(key, [...(nameless.get(key) ?? []), row]);
    }
  }
  const taken = new Set(pairs.map(({ row }) => row.id));
  const unclear: ListedLease[] = [];
  let rest = listed.filter(({ id }) => !byId.has(id));
  for (const sameEnd of [true, false]) {
    rest = rest.filter((lease) => {
      const candidates = (nameless.get(keyOf(lease.name, lease.start)) ?? []).filter(
        (row) => !taken.has(row.id) && mayBe(row, lease) && (!sameEnd || row.ends_at === lease.end),
      );
      const [first] = candidates;
      if (first === undefined) {
        return true;
      }
      if (candidates.some((row) => row.project_id !== first.project_id || row.user_id !== first.user_id)) {
        unclear.push(lease);
        return false;
      }
      taken.add(first.id);
      pairs.push({ listed: lease, row: first });
      return false;
    });
  }
  const kept = new Set(unclear.map(({ name, start }) => keyOf(name, start)));
  const absent = rows.filter(
    (row) =>
      row.state === 'open' &&
      !taken.has(row.id) &&
      (row.lease_id !== null || !kept.has(keyOf(row.name, row.starts_at))),
  );
  return { pairs, unknown: rest, unclear, absent };
}

function mayBe(row: LeaseRow, { projectId, userId }: ListedLease): boolean {
  return (projectId ?? row.project_id) === row.project_id && (userId ?? row.user_id) === row.user_id;
}

function keyOf(name: string, start: bigint): string {
  return `${start} ${name}`;
}
