/** Compares a ledger with the responses to clients. */

import { type Amount, parseUnitHours } from '../../src/filter/claim.ts';
import { alternativesOf, chargedBy } from '../../src/ledger/accounting/alternatives.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import { rows } from '../../src/ledger/storage/database.ts';
import type { LeaseRow } from '../../src/ledger/storage/schema.ts';
import type { ClientLease, LeaseClient } from './lease-clients.ts';
import { NO_WAIT } from './ledgers.ts';

const HOUR = parseUnitHours('1') ?? 0n;

/** All inconsistencies of a ledger without current writers; empty = none. */
export async function inspect(ledger: Ledger, clients: readonly LeaseClient[]): Promise<string[]> {
  const { differences } = await verifyLedger(ledger, NO_WAIT);
  const { queries } = ledger.database;
  const leases = await read(ledger, queries.selectFrom('leases').selectAll().compile());
  const entries = await read(ledger, queries.selectFrom('entries').selectAll().orderBy('id').compile());
  const charged = new Map<string, Amount>();
  for (const { lease, account, delta } of entries) {
    const key = `${lease} ${account}`;
    charged.set(key, (charged.get(key) ?? 0n) + delta);
  }
  return [
    ...differences.map((difference) => JSON.stringify(difference)),
    ...leases.flatMap((row) => halfThere(row, charged)),
    ...told(leases, clients),
  ];
}

/** The highest and lowest balance that an account ever had: entries are in insertion order. */
export async function extremes(
  ledger: Ledger,
  account: string,
): Promise<{ highest: Amount; lowest: Amount }> {
  const query = ledger.database.queries.selectFrom('entries').select('delta');
  const entries = await read(ledger, query.where('account', '=', account).orderBy('id').compile());
  let balance = 0n;
  let highest = 0n;
  let lowest = 0n;
  for (const { delta } of entries) {
    balance += delta;
    highest = balance > highest ? balance : highest;
    lowest = balance < lowest ? balance : lowest;
  }
  return { highest, lowest };
}

export async function leaseNames(ledger: Ledger): Promise<string[]> {
  const query = ledger.database.queries.selectFrom('leases').select('name').compile();
  return (await read(ledger, query)).map(({ name }) => name);
}

function read<Row>(ledger: Ledger, query: Parameters<typeof rows<Row>>[0]): Promise<Row[]> {
  return ledger.read('read', () => rows(query), NO_WAIT);
}

/** No lease has begun: an open one is charged in full, an ended one not at all. */
function halfThere(row: LeaseRow, charged: ReadonlyMap<string, Amount>): string[] {
  const { id, name, state } = row;
  return [...chargedBy(alternativesOf(row))].flatMap(([account, whole]) => {
    const expected = state === 'open' ? whole : 0n;
    const found = charged.get(`${id} ${account}`) ?? 0n;
    return expected === found ? [] : [`${name} (${state}): expected ${expected} on ${account}, got ${found}`];
  });
}

/** Whether the ledger has exactly the acknowledged leases. */
function told(leases: readonly LeaseRow[], clients: readonly LeaseClient[]): string[] {
  // A lease that was taken back and requested again has several rows: only the last may be open.
  const found = new Map([...leases].sort((a, b) => (a.id < b.id ? -1 : 1)).map((row) => [row.name, row]));
  const wrong = leases
    .filter((row) => row.state === 'open' && found.get(row.name) !== row)
    .map((row) => `there twice: ${text(row)}`);
  for (const { acknowledged, pending, refused } of clients) {
    const possible = new Map(
      [...acknowledged].map(([name, lease]) => [name, [lease] as (ClientLease | undefined)[]]),
    );
    if (pending !== undefined) {
      possible.set(pending.after.name, [pending.before, pending.after]);
    }
    for (const name of refused) {
      possible.set(name, [undefined]);
    }
    for (const [name, states] of possible) {
      const row = found.get(name);
      found.delete(name);
      if (!states.some((state) => isAs(state, row))) {
        wrong.push(`${name}: expected ${JSON.stringify(states)}, got ${text(row)}`);
      }
    }
  }
  return [...wrong, ...[...found.values()].map((row) => `nobody has asked for ${text(row)}`)];
}

function isAs(expected: ClientLease | undefined, row: LeaseRow | undefined): boolean {
  if (expected === undefined || row === undefined) {
    return expected === undefined && row === undefined;
  }
  const [asked] = alternativesOf(row);
  const usage = asked?.claims.find(({ kind }) => kind === 'usage');
  return (
    row.state === (expected.isOpen ? 'open' : 'ended') &&
    asked?.end === BigInt(expected.end) * 1_000_000n &&
    (row.lease_id === null || row.lease_id === expected.id) &&
    usage?.kind === 'usage' &&
    usage.perSecond * 3600n === BigInt(expected.hosts) * HOUR
  );
}

function text(row: LeaseRow | undefined): string {
  return (
    JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)) ??
    'nothing'
  );
}
