/**
 * Checks the consistency of the ledger: recomputes every balance and budget from its history. Reads projects
 * in ranges, and large projects in parts, so that memory use grows neither with the ledger nor with a
 * project.
 */

import { type CompiledQuery, sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Amount } from '../../filter/claim.ts';
import { alternativesOf, heldBy } from '../accounting/alternatives.ts';
import type { Ledger } from '../ledger.ts';
import type { Snapshot } from '../storage/database.ts';
import type { BudgetsTable } from '../storage/schema.ts';
import { amountOf, HALF } from './usage/pieces.ts';

interface Difference {
  /**
   * `balance`: differs from the sum of its entries. `held`: differs from the sum held by open leases.
   * `budget`: differs from its last change.
   */
  readonly kind: 'balance' | 'held' | 'budget';
  readonly projectId: string;
  /** The account, or the id of the budget. */
  readonly subject: string;
  readonly expected: string;
  readonly found: string;
}

export interface Verification {
  readonly differences: readonly Difference[];
  readonly compared: {
    readonly accounts: number;
    readonly entries: bigint;
    readonly leases: number;
    readonly budgets: number;
  };
}

/** About this many accounts or budgets are in memory, at most twice as many. */
const HELD = 2000;

type Queries = Ledger['database']['queries'];

/**
 * Rows of the projects after `after` up to `last`, in the database's order, whose name belongs to one of
 * `parts` parts.
 */
interface Part {
  /** `undefined` = no bound. */
  readonly after: string | undefined;
  readonly last: string | undefined;
  readonly part: number;
  readonly parts: number;
}

/**
 * Compares balances with entries and open leases, and budgets with their changes, on a snapshot while others
 * write. `seen` gets the number of leases read and their total; reading waits for its promise. `most`:
 * accounts or budgets in memory, at most twice as many. @throws LedgerUnavailableError
 */
export function verifyLedger(
  { database }: Ledger,
  wait: Wait,
  seen: (leases: number, all: number) => Promise<void> | undefined = () => undefined,
  most = HELD,
): Promise<Verification> {
  const { queries } = database;
  return database.snapshot(async (snapshot) => {
    const counted = queries.selectFrom('leases').select(({ fn }) => fn.countAll<bigint>().as('count'));
    const all = Number((await first(snapshot, counted.compile()))?.count ?? 0n);
    const differences: Difference[] = [];
    const compared = { accounts: 0, entries: 0n, leases: 0, budgets: 0 };
    let ofRange = 0;
    for await (const part of partsOf(queries, snapshot, 'accounts', most)) {
      if (part.part === 0) {
        compared.leases += ofRange;
        ofRange = 0;
      }
      const progress = (leases: number) =>
        seen(compared.leases + Math.floor((part.part * ofRange + leases) / part.parts), all);
      const found = await verifyAccounts(queries, snapshot, part, progress);
      ofRange = found.leases;
      differences.push(...found.differences);
      compared.accounts += found.accounts;
      compared.entries += found.entries;
    }
    compared.leases += ofRange;
    for await (const part of partsOf(queries, snapshot, 'budgets', most)) {
      const found = await verifyBudgets(queries, snapshot, part);
      differences.push(...found.differences);
      compared.budgets += found.budgets;
    }
    return { differences, compared };
  }, wait);
}

/** Together they cover all projects, even those without a row. A range has about `size` rows. */
async function* partsOf(
  queries: Queries,
  snapshot: Snapshot,
  table: 'accounts' | 'budgets',
  size: number,
): AsyncGenerator<Part> {
  let after: string | undefined;
  do {
    const later = within(queries.selectFrom(table), { after, last: undefined });
    const bound = later.select('project_id').orderBy('project_id').offset(size).limit(1);
    const last: string | undefined = (await first(snapshot, bound.compile()))?.project_id;
    const rows = within(queries.selectFrom(table), { after, last });
    const counted = rows.select(({ fn }) => fn.countAll<bigint>().as('count'));
    const count = Number((await first(snapshot, counted.compile()))?.count ?? 0n);
    // The last project of a range may extend beyond its size.
    const parts = Math.max(1, Math.ceil(count / (2 * size)));
    for (let part = 0; part < parts; part += 1) {
      yield { after, last, part, parts };
    }
    after = last;
  } while (after !== undefined);
}

async function first<Row>(snapshot: Snapshot, query: CompiledQuery<Row>): Promise<Row | undefined> {
  for await (const row of snapshot.stream(query)) {
    return row;
  }
  return undefined;
}

interface OfProjects {
  where(column: 'project_id', operator: '>' | '<=', value: string): this;
}

function within<Query extends OfProjects>(
  query: Query,
  { after, last }: Pick<Part, 'after' | 'last'>,
): Query {
  const later = after === undefined ? query : query.where('project_id', '>', after);
  return last === undefined ? later : later.where('project_id', '<=', last);
}

/** The same part for the same name; about as many names in each part. */
function belongs(name: string, { part, parts }: Part): boolean {
  // FNV-1a. Databases sort names differently from JavaScript, so parts are not ranges.
  let hash = 0x811c9dc5;
  for (let index = 0; parts > 1 && index < name.length; index += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0) % parts === part;
}

interface Account {
  readonly projectId: string;
  readonly name: string;
  /** `undefined` = no row for the account, which means a balance of 0. */
  balance: Amount | undefined;
  /** The sum of its entries, including folded ones. */
  posted: Amount;
  /** Held by open leases; `undefined` = the account is not for held amounts. */
  held: Amount | undefined;
}

async function verifyAccounts(
  queries: Queries,
  snapshot: Snapshot,
  part: Part,
  seen: (leases: number) => Promise<void> | undefined,
): Promise<{ accounts: number; entries: bigint; leases: number; differences: Difference[] }> {
  const accounts = new Map<string, Account>();
  const change = (projectId: string, name: string, by: (account: Account) => void) => {
    if (belongs(name, part)) {
      const key = JSON.stringify([projectId, name]);
      const account = accounts.get(key) ?? {
        projectId,
        name,
        balance: undefined,
        posted: 0n,
        held: undefined,
      };
      accounts.set(key, account);
      by(account);
    }
  };
  let known = 0;
  let entries = 0n;
  let leases = 0;
  const balances = within(queries.selectFrom('accounts').selectAll(), part);
  for await (const { project_id, name, balance } of snapshot.stream(balances.compile())) {
    change(project_id, name, (account) => {
      account.balance = balance;
      known += 1;
    });
  }
  const folded = within(queries.selectFrom('folded_balances').selectAll(), part);
  for await (const { project_id, account: name, amount } of snapshot.stream(folded.compile())) {
    change(project_id, name, (account) => {
      account.posted += amount;
    });
  }
  // Summed by the database, so no entry is transferred. As text, because PostgreSQL sums to another type.
  const posted = within(queries.selectFrom('entries'), part)
    .select(({ fn }) => [
      'project_id',
      'account',
      sql<string>`cast(sum(delta / ${sql.lit(HALF)}) as text)`.as('high'),
      sql<string>`cast(sum(delta % ${sql.lit(HALF)}) as text)`.as('low'),
      fn.countAll<bigint>().as('count'),
    ])
    .groupBy(['project_id', 'account']);
  for await (const { project_id, account: name, high, low, count } of snapshot.stream(posted.compile())) {
    change(project_id, name, (account) => {
      account.posted += amountOf({ high, low });
      entries += count;
    });
  }
  // Expired leases still hold their amounts until their end is recorded.
  const all = within(queries.selectFrom('leases'), part).select([
    ...(['project_id', 'state', 'starts_at', 'ends_at', 'demand', 'claims', 'alternatives'] as const),
  ]);
  for await (const row of snapshot.stream(all.compile())) {
    leases += 1;
    const pause = seen(leases);
    if (pause !== undefined) {
      await pause;
    }
    for (const [name, amount] of heldBy(alternativesOf(row))) {
      change(row.project_id, name, (account) => {
        // An ended lease holds nothing, but its accounts must be compared.
        account.held = (account.held ?? 0n) + (row.state === 'open' ? amount : 0n);
      });
    }
  }
  const differences = [...accounts.values()].flatMap(
    ({ projectId, name: subject, balance, posted, held }) => {
      const found = balance === undefined ? NOTHING : String(balance);
      return (['balance', 'held'] as const).flatMap((kind) => {
        const expected = kind === 'balance' ? posted : held;
        return expected === undefined || expected === (balance ?? 0n)
          ? []
          : [{ kind, projectId, subject, expected: String(expected), found }];
      });
    },
  );
  return { accounts: known, entries, leases, differences };
}

const NOTHING = 'nothing';

async function verifyBudgets(
  queries: Queries,
  snapshot: Snapshot,
  part: Part,
): Promise<{ budgets: number; differences: Difference[] }> {
  const texts = new Map<bigint, { readonly projectId: string; expected: string; found: string }>();
  const textsOf = (id: bigint, projectId: string) => {
    const known = texts.get(id) ?? { projectId, expected: NOTHING, found: NOTHING };
    texts.set(id, known);
    return known;
  };
  let budgets = 0;
  const changes = within(queries.selectFrom('budget_changes').selectAll(), part).orderBy('id');
  for await (const change of snapshot.stream(changes.compile())) {
    if (belongs(String(change.budget), part)) {
      const text = budgetText(change, change.operation === 'removed');
      textsOf(change.budget, change.project_id).expected = text;
    }
  }
  const all = within(queries.selectFrom('budgets').selectAll(), part);
  for await (const budget of snapshot.stream(all.compile())) {
    if (belongs(String(budget.id), part)) {
      budgets += 1;
      textsOf(budget.id, budget.project_id).found = budgetText(budget, budget.removed_at !== null);
    }
  }
  const differences = [...texts].flatMap(([id, { projectId, expected, found }]) =>
    expected === found ? [] : [{ kind: 'budget' as const, projectId, subject: String(id), expected, found }],
  );
  return { budgets, differences };
}

function budgetText(budget: Omit<BudgetsTable, 'id' | 'removed_at'>, isRemoved: boolean): string {
  const { project_id, user_id, valid_from, valid_until, amount } = budget;
  const whose = user_id === null ? `project ${project_id}` : `user ${user_id} in project ${project_id}`;
  return `${isRemoved ? 'removed: ' : ''}${amount} of ${whose} from ${valid_from} until ${valid_until}`;
}
