/** Operations on a ledger whose transactions are in one group when they are asked for at once, however long that takes. */

import fc from 'fast-check';
import { budgetAccount, parseUnitHours } from '../../src/filter/claim.ts';
import { toInstant } from '../../src/lease/dates.ts';
import { setBudget } from '../../src/ledger/budgets/budgets.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import type { Claimant, LedgerRequest } from '../../src/ledger/ledger-request.ts';
import { PostgresDatabase } from '../../src/ledger/storage/postgres/postgres.ts';
import { SqliteDatabase } from '../../src/ledger/storage/sqlite.ts';
import { openSqlite } from '../../src/ledger/storage/sqlite-driver.ts';
import { type Recording, record, type Undo } from '../../src/ledger/transactions/lease-transactions.ts';
import { NO_WAIT } from '../support/ledgers.ts';
import { runSql as runInPostgres } from '../support/postgres-activity.ts';

export const HOUR = 3_600_000_000n;
const SQLITE = 'sqlite://';
/** No date of 64 bits, and so close to another that its lease takes no more than others do. */
const BEYOND_64_BITS = 2n ** 64n;
const NOW = toInstant('2026-12-01') ?? 0n;
const USERS = ['alice', 'bob', 'carol'];
const MOST_LEASES = 2n;
/** Parts of a group may take as long as a busy machine needs. */
const UNHURRIED = { members: 64, milliseconds: 600_000, characters: 1024 * 1024 };

const user = fc.constantFrom(...USERS);
const create = fc.record({
  kind: fc.constant('create' as const),
  user,
  key: fc.constantFrom<string | undefined>(undefined, undefined, 'k', 'l'),
  id: fc.constantFrom<string | null>(null, null, 'A', 'B'),
  /** From now, in hours: some are over, or have begun, when they are asked for. */
  start: fc.constantFrom(-3n, -1n, 1n),
  hours: fc.constantFrom(1n, 2n),
  /** What becomes of the part. */
  fate: fc.constantFrom('written', 'written', 'written', 'written', 'breaks', 'holds what cannot be stored'),
});
const end = fc.record({ kind: fc.constant('end' as const), user, id: fc.constantFrom('A', 'B') });
const budget = fc.record({
  kind: fc.constant('budget' as const),
  user: fc.constantFrom<string | null>(null, ...USERS),
  hours: fc.constantFrom('1', '3', '25'),
});
const takeBack = fc.record({ kind: fc.constant('take back' as const), which: fc.nat(20) });
const operation = fc.oneof({ weight: 6, arbitrary: create }, end, budget, takeBack);
export type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;

/** What is asked for at once, in which of two projects, and how much later. */
export const round = fc.record({
  minutes: fc.constantFrom(0n, 1n, 90n),
  operations: fc.array(fc.record({ asked: operation, project: fc.constantFrom(0, 0, 0, 1) }), {
    minLength: 1,
    maxLength: 12,
  }),
});

const claimant: Claimant = {
  name: 'TestFilter',
  audit: false,
  claims: ({ context, start, end: until }, { budgets }) => [
    {
      kind: 'held',
      account: `max_leases/user/${context.user_id}`,
      amount: 1n,
      limit: MOST_LEASES,
      refuse: () => 'too many',
    },
    ...budgets.map((of) => ({
      kind: 'usage' as const,
      account: budgetAccount(of),
      perSecond: 1_000_000n,
      from: start / 1_000_000n,
      until: until / 1_000_000n,
      limit: of.amount,
      refuse: () => 'too much',
    })),
  ],
};

/** A ledger, and the time there. `connection`: of an empty ledger. */
export function fixtureAt(connection: string) {
  const time = { now: NOW };
  const database = connection.startsWith(SQLITE)
    ? new SqliteDatabase(connection.slice(SQLITE.length), 'normal', UNHURRIED)
    : new PostgresDatabase(connection, { poolSize: 4, timeout: 600 }, UNHURRIED);
  const clock = { now: () => new Date(Number(time.now / 1000n)) };
  const ledger = new Ledger(database, { clock, timeout: 600, observer: undefined });
  return { connection, ledger, time };
}
export type LedgerFixture = ReturnType<typeof fixtureAt>;

export function requestOf(
  project: string,
  now: bigint,
  asked: Operation & { kind: 'create' },
): LedgerRequest {
  const isStorable = asked.fate !== 'holds what cannot be stored';
  const start = isStorable ? now + asked.start * HOUR : BEYOND_64_BITS;
  const context = { project_id: project, user_id: asked.user };
  return {
    identity: { leaseId: asked.id, region: '', projectId: project, userId: asked.user },
    name: isStorable ? 'run' : 'a\0b',
    proposal: {
      context,
      start,
      end: start + asked.hours * HOUR,
      reservations: [],
      allocationsAreExact: true,
    },
    current: undefined,
    halfway: undefined,
    isCertain: false,
    adopts: false,
    repetition: asked.key === undefined ? undefined : { key: asked.key, content: asked.key },
    claimants: [claimant],
  };
}

/** Resolves to what the caller is told. `before`: what takes back what was recorded before; `undos`: the same of what is recorded now. */
export async function perform(
  { ledger, time }: LedgerFixture,
  project: string,
  asked: Operation,
  { before, undos }: { readonly before: readonly Undo[]; readonly undos: Undo[] },
): Promise<unknown> {
  const author = { operation: 'create', who: 'somebody', requestId: null, reason: null } as const;
  switch (asked.kind) {
    case 'create': {
      const request = requestOf(project, time.now, asked);
      const work =
        asked.fate === 'breaks'
          ? ledger.transact(
              'commit',
              function* (transaction) {
                yield* record(ledger.statements, request, transaction, author);
                throw new Error('broken');
              },
              NO_WAIT,
              { project },
            )
          : ledger.commit(request, author, NO_WAIT);
      const { refusal, undo }: Recording = await work;
      if (undo !== undefined) {
        undos.push(undo);
      }
      return refusal?.message ?? (undo === undefined ? 'known' : 'recorded');
    }
    case 'end': {
      const identity = { leaseId: asked.id, region: '', projectId: project, userId: asked.user };
      return ledger.end({ identity, shape: undefined }, { ...author, operation: 'end' }, NO_WAIT);
    }
    case 'budget': {
      const amount = parseUnitHours(asked.hours) ?? 0n;
      const terms = { projectId: project, userId: asked.user, validFrom: 0n, validUntil: 10n ** 10n, amount };
      return (await setBudget(ledger, terms, author, NO_WAIT)).amount;
    }
    case 'take back': {
      const undo = before[asked.which];
      return undo && ledger.takeBack(undo, { ...author, operation: 'undo' }, NO_WAIT);
    }
  }
}

function runSql(connection: string, sql: string): Promise<unknown[]> | unknown[] {
  if (!connection.startsWith(SQLITE)) {
    return runInPostgres(connection, sql);
  }
  const database = openSqlite(connection.slice(SQLITE.length), { bigints: true });
  try {
    return database.prepare(sql).all([]);
  } finally {
    database.close();
  }
}

/** What the tables have of a project, apart from the numbers of their rows. */
export async function contentOf({ connection }: LedgerFixture, project: string): Promise<string> {
  const numbered = (table: string) => `(SELECT count(*) FROM leases AS x WHERE x.project_id = '${project}'
    AND x.id <= ${table}) AS lease`;
  const tables = await Promise.all(
    [
      `SELECT ${numbered('leases.id')}, lease_id, user_id, starts_at, ends_at, state,
         claims, alternatives IS NULL AS is_single,
         repetition_key, recorded_at, ended_at FROM leases WHERE project_id = '${project}' ORDER BY id`,
      `SELECT rtrim(name, '0123456789') AS name, (SELECT user_id FROM budgets WHERE 'usage_budget/' || id = name),
         balance FROM accounts WHERE project_id = '${project}' ORDER BY 1, 2 NULLS FIRST`,
      `SELECT at, rtrim(account, '0123456789') AS account, delta, ${numbered('lease')}, operation
         FROM entries WHERE project_id = '${project}' ORDER BY entries.id`,
      `SELECT user_id, amount FROM budgets WHERE project_id = '${project}' ORDER BY id`,
    ].map((sql) => runSql(connection, sql)),
  );
  const text = JSON.stringify(tables, (_, value) => (typeof value === 'bigint' ? `${value}n` : value), 1);
  return text.replaceAll(/usage_budget\/[0-9]+/g, 'usage_budget/');
}
