/** Checks the ledger against itself: computes every balance and budget again from what it was made of. */
import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Amount } from '../../filter/claim.ts';
import { alternativesOf, heldBy } from '../accounting/alternatives.ts';
import type { Ledger } from '../ledger.ts';
import type { Snapshot } from '../storage/database.ts';
import { type ProjectRange, partOf, projectRanges, within } from './project-ranges.ts';

/** Something that does not agree. */
export interface Difference {
  /**
   * `balance`: a balance is not the sum of its entries. `held`: a balance is not the sum of what open leases hold. `budget`: a budget
   * is not what it was last set to.
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

/** About so many accounts or budgets are held in memory, at most twice as many. */
const HELD = 2000;

/** Rows of a range of projects that are compared now: those whose name belongs to a part. */
interface Part extends ProjectRange {
  readonly part: number;
}

/**
 * Compares balances with entries and with open leases, and budgets with their changes, as of one moment, while others write. Reads a range of
 * projects after the other, and those that have too much for the memory several times: memory does not grow with the ledger, nor with a project.
 * `seen` is told how many leases it has read, and of how many; it may hold it up. `most`: accounts or budgets in memory.
 * @throws LedgerUnavailableError
 */
export function verifyLedger(
  ledger: Ledger,
  wait: Wait,
  seen: (leases: number, all: number) => Promise<void> | undefined = () => undefined,
  most = HELD,
): Promise<Verification> {
  return ledger.database.snapshot(async (snapshot) => {
    const all = await leasesOf(ledger, snapshot);
    const differences: Difference[] = [];
    const compared = { accounts: 0, entries: 0n, leases: 0, budgets: 0 };
    for await (const range of projectRanges(ledger, snapshot, 'accounts', most)) {
      const before = compared.leases;
      let ofRange = 0;
      for (const one of partsOf(range)) {
        const accounts = await accountsOf(ledger, snapshot, one);
        const ofBalances = await verifyBalances(ledger, snapshot, one, accounts);
        const ofHeld = await verifyHeld(ledger, snapshot, one, accounts, (leases) =>
          seen(before + Math.floor((one.part * ofRange + leases) / one.parts), all),
        );
        ofRange = ofHeld.leases;
        differences.push(...ofBalances.differences, ...ofHeld.differences);
        compared.accounts += accounts.size;
        compared.entries += ofBalances.entries;
      }
      compared.leases = before + ofRange;
    }
    for await (const range of projectRanges(ledger, snapshot, 'budgets', most)) {
      for (const one of partsOf(range)) {
        const ofBudgets = await verifyBudgets(ledger, snapshot, one);
        differences.push(...ofBudgets.differences);
        compared.budgets += ofBudgets.budgets;
      }
    }
    return { differences, compared };
  }, wait);
}

function partsOf(range: ProjectRange): Part[] {
  return Array.from({ length: range.parts }, (_, part) => ({ ...range, part }));
}

function belongs(name: string, { part, parts }: Part): boolean {
  return partOf(name, parts) === part;
}

async function leasesOf({ database }: Ledger, snapshot: Snapshot): Promise<number> {
  const query = database.queries
    .selectFrom('leases')
    .select(({ fn }) => fn.countAll<bigint>().as('count'))
    .compile();
  let all = 0;
  for await (const { count } of snapshot.stream(query)) {
    all = Number(count);
  }
  return all;
}

interface Account {
  readonly projectId: string;
  readonly name: string;
  readonly balance: Amount;
}

async function accountsOf(ledger: Ledger, snapshot: Snapshot, range: Part): Promise<Map<string, Account>> {
  const accounts = new Map<string, Account>();
  const query = within(ledger.database.queries.selectFrom('accounts').selectAll(), range).compile();
  for await (const { project_id: projectId, name, balance } of snapshot.stream(query)) {
    if (belongs(name, range)) {
      accounts.set(keyOf(projectId, name), { projectId, name, balance });
    }
  }
  return accounts;
}

/** Numbers are summed in two halves: SQLite fails when an intermediate sum overflows. */
const HALF = 2n ** 32n;

/** The database sums, so no entry is transferred. As text, because PostgreSQL sums to another type. */
async function verifyBalances(
  ledger: Ledger,
  snapshot: Snapshot,
  range: Part,
  accounts: ReadonlyMap<string, Account>,
): Promise<{ entries: bigint; differences: Difference[] }> {
  const { queries } = ledger.database;
  const posted = within(queries.selectFrom('entries'), range)
    .select(({ fn }) => [
      'project_id',
      'account',
      sql<string>`cast(sum(delta / ${sql.lit(HALF)}) as text)`.as('high'),
      sql<string>`cast(sum(delta % ${sql.lit(HALF)}) as text)`.as('low'),
      fn.countAll<bigint>().as('count'),
    ])
    .groupBy(['project_id', 'account'])
    .compile();
  const folded = new Map<string, Amount>();
  for await (const { project_id, account, amount } of snapshot.stream(
    within(queries.selectFrom('folded_balances').selectAll(), range).compile(),
  )) {
    if (belongs(account, range)) {
      folded.set(keyOf(project_id, account), amount);
    }
  }
  const differences: Difference[] = [];
  const seen = new Set<string>();
  let entries = 0n;
  const compare = (projectId: string, subject: string, expected: Amount, found: Amount | undefined) => {
    if (expected !== (found ?? 0n)) {
      differences.push({ kind: 'balance', projectId, subject, ...shownAmounts(expected, found) });
    }
  };
  for await (const { project_id, account, high, low, count } of snapshot.stream(posted)) {
    if (!belongs(account, range)) {
      continue;
    }
    const key = keyOf(project_id, account);
    seen.add(key);
    entries += count;
    const sum = BigInt(high) * HALF + BigInt(low) + (folded.get(key) ?? 0n);
    compare(project_id, account, sum, accounts.get(key)?.balance);
  }
  for (const [key, amount] of folded) {
    if (!seen.has(key)) {
      const [projectId, account] = JSON.parse(key) as [string, string];
      seen.add(key);
      compare(projectId, account, amount, accounts.get(key)?.balance);
    }
  }
  for (const [key, { projectId, name, balance }] of accounts) {
    if (!seen.has(key)) {
      compare(projectId, name, 0n, balance);
    }
  }
  return { entries, differences };
}

/** Leases past their end still hold what they held until the end is noticed. */
async function verifyHeld(
  ledger: Ledger,
  snapshot: Snapshot,
  range: Part,
  accounts: ReadonlyMap<string, Account>,
  seen: (leases: number) => Promise<void> | undefined,
): Promise<{ leases: number; differences: Difference[] }> {
  const query = within(ledger.database.queries.selectFrom('leases'), range)
    .select(['project_id', 'state', 'starts_at', 'ends_at', 'demand', 'claims', 'alternatives'])
    .compile();
  const held = new Map<string, Account>();
  let leases = 0;
  for await (const row of snapshot.stream(query)) {
    leases += 1;
    const pause = seen(leases);
    if (pause !== undefined) {
      await pause;
    }
    const { project_id: projectId, state } = row;
    for (const [name, amount] of heldBy(alternativesOf(row))) {
      if (!belongs(name, range)) {
        continue;
      }
      const key = keyOf(projectId, name);
      const before = held.get(key)?.balance ?? 0n;
      // An ended lease holds nothing, but its accounts must be compared.
      held.set(key, { projectId, name, balance: before + (state === 'open' ? amount : 0n) });
    }
  }
  const differences: Difference[] = [];
  for (const [key, { projectId, name, balance: expected }] of held) {
    const found = accounts.get(key)?.balance;
    if (expected !== (found ?? 0n)) {
      differences.push({ kind: 'held', projectId, subject: name, ...shownAmounts(expected, found) });
    }
  }
  return { leases, differences };
}

async function verifyBudgets(
  ledger: Ledger,
  snapshot: Snapshot,
  range: Part,
): Promise<{ budgets: number; differences: Difference[] }> {
  const { queries } = ledger.database;
  const changes = within(queries.selectFrom('budget_changes').selectAll(), range).orderBy('id').compile();
  const all = within(queries.selectFrom('budgets').selectAll(), range).compile();
  const last = new Map<bigint, { readonly projectId: string; readonly text: string }>();
  for await (const change of snapshot.stream(changes)) {
    if (belongs(String(change.budget), range)) {
      const text = budgetText(change, change.operation === 'removed');
      last.set(change.budget, { projectId: change.project_id, text });
    }
  }
  const differences: Difference[] = [];
  let budgets = 0;
  for await (const budget of snapshot.stream(all)) {
    if (!belongs(String(budget.id), range)) {
      continue;
    }
    budgets += 1;
    const found = budgetText(budget, budget.removed_at !== null);
    const expected = last.get(budget.id)?.text ?? NOTHING;
    if (expected !== found) {
      const subject = String(budget.id);
      differences.push({ kind: 'budget', projectId: budget.project_id, subject, expected, found });
    }
    last.delete(budget.id);
  }
  for (const [id, { projectId, text: expected }] of last) {
    differences.push({ kind: 'budget', projectId, subject: String(id), expected, found: NOTHING });
  }
  return { budgets, differences };
}

const NOTHING = 'nothing';

function budgetText(
  budget: {
    readonly project_id: string;
    readonly user_id: string | null;
    readonly valid_from: bigint;
    readonly valid_until: bigint;
    readonly amount: Amount;
  },
  isRemoved: boolean,
): string {
  const { project_id, user_id, valid_from, valid_until, amount } = budget;
  const whose = user_id === null ? `project ${project_id}` : `user ${user_id} in project ${project_id}`;
  return `${isRemoved ? 'removed: ' : ''}${amount} of ${whose} from ${valid_from} until ${valid_until}`;
}

/** A missing account has a balance of 0. */
function shownAmounts(expected: Amount, found: Amount | undefined): Pick<Difference, 'expected' | 'found'> {
  return { expected: String(expected), found: found === undefined ? NOTHING : String(found) };
}

function keyOf(projectId: string, account: string): string {
  return JSON.stringify([projectId, account]);
}
