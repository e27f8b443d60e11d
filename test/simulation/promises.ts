/** What must hold at every step of a history, and when everything has become quiet. */

import { alternativesOf } from '../../src/ledger/accounting/alternatives.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import type { LeaseRow } from '../../src/ledger/storage/schema.ts';
import {
  openSqlite,
  type SqliteConnection,
  type SqliteStatement,
} from '../../src/ledger/storage/sqlite-driver.ts';
import { ledgerAt, NO_WAIT } from '../support/ledgers.ts';
import { PROJECT, type Window } from './blazar.ts';
import { GRACE } from './follower.ts';
import { BrokenPromise, type LeaseForm, type Site, SYNCHRONIZED } from './site.ts';

export interface Budget extends Window {
  /** In host-seconds. */
  readonly amount: number;
}

export const MOST_LEASES = 5;
/** The most hosts that a lease has. */
const MOST_HOSTS = 6;
const HOST_SECOND = 1_000_000;

/** Looks into the file beside the replicas. */
export class Promises {
  readonly #file: string;
  readonly #budgets: readonly Budget[];
  readonly #connection: SqliteConnection;
  readonly #statements = new Map<string, SqliteStatement>();

  constructor(file: string, budgets: readonly Budget[]) {
    this.#file = file;
    this.#budgets = budgets;
    this.#connection = openSqlite(file, { readonly: true, bigints: true });
  }

  close(): void {
    this.#connection.close();
  }

  /** Truth is charged, and no more is charged than there is. */
  atEachStep(site: Site): void {
    site.throwIfFailed();
    this.#nothingIsGivenBack(site);
    if (site.skew > SYNCHRONIZED || site.hasNotAsked) {
      // Leases end by their dates when a clock says so; and what Blazar does without asking is charged when it is seen.
      return;
    }
    // Whenever a replica measures what a lease has used, its clock may be wrong by so much.
    const byClocks = site.measured * 2 * site.skew * MOST_HOSTS;
    // What a comparison corrects is charged from then on, and what was asked for from when it was allowed: Blazar does not say when it
    // has changed a lease, which is as it was for some seconds more.
    const byBlazar = (site.corrected * GRACE + site.delays) * MOST_HOSTS;
    const slack = byClocks + byBlazar + site.blazar.unseen(site.now);
    for (const [index, budget] of this.#budgets.entries()) {
      const taken = this.#taken(index + 1);
      const truth = site.blazar.cost(budget, site.now);
      const text = `budget ${index + 1}: ${truth} used, ${taken} charged, ${budget.amount} granted`;
      const isCharged = taken <= budget.amount || taken <= budget.amount + this.#restored(index + 1);
      hold(isCharged || site.mayMistake || site.hasOverrun, `more is charged than granted: ${text}`);
      hold(truth <= taken + slack, `less is charged than used: ${text}`);
      hold(truth <= budget.amount + slack || site.hasOverrun, `more is used than granted: ${text}`);
    }
    const open = this.#open(site.now).length;
    // One that Blazar does not end counts until its end.
    const live = site.blazar.live.filter(({ isOverdue }) => isOverdue !== true);
    if (site.skew === 0) {
      hold(live.length <= MOST_LEASES, `${live.length} leases at once`);
      const most = site.blazar.leases.size + site.unknown + site.unheard + site.underWay;
      hold(open <= most, `the ledger has ${open} leases, and there are ${most} at most`);
    }
  }

  /** Nothing is under way, and every fault is over: the ledger has what Blazar has, and nothing else. */
  async whenQuiet(site: Site): Promise<void> {
    this.atEachStep(site);
    const open = new Map(this.#open(site.now).map((row) => [row.lease_id, row]));
    for (const { id, hosts, start, end, begunAt, isOverdue } of site.blazar.live) {
      if (isOverdue === true) {
        continue;
      }
      const row = open.get(id);
      hold(row !== undefined, `${id} is not in the ledger`);
      open.delete(id);
      const [only, ...others] = row === undefined ? [] : alternativesOf(row);
      const usage = only?.claims.filter((claim) => claim.kind === 'usage') ?? [];
      const isAs =
        others.length === 0 &&
        only !== undefined &&
        (begunAt === undefined
          ? only.start === BigInt(start) * 1_000_000n
          : only.start <= BigInt(start) * 1_000_000n) &&
        only.end === BigInt(end) * 1_000_000n &&
        usage.every(({ perSecond }) => perSecond === BigInt(hosts * HOST_SECOND));
      hold(
        isAs,
        `${id} has ${hosts} hosts from ${start} to ${end}, and the ledger has ${row?.claims}, ${row?.alternatives}`,
      );
    }
    const [left] = open.values();
    hold(
      left === undefined,
      `the ledger has a lease that Blazar does not have: ${left?.id}, ${left?.lease_id}`,
    );
    const lost = [...(site.hasService ? site.ended : [])].filter((id) => !site.told.has(id));
    hold(lost.length === 0, `the external service was not told of the end of ${lost}`);
    const isExact = !site.hasWasted && site.unknown + site.unheard + site.skew + site.faults === 0;
    for (const [index, budget] of this.#budgets.entries()) {
      const taken = this.#taken(index + 1);
      const truth = site.blazar.cost(budget, site.now);
      const slack = site.delays * MOST_HOSTS + site.blazar.unseen(site.now);
      const isSettled = truth <= taken + slack && (site.hasChanged || taken <= truth + slack);
      hold(!isExact || isSettled, `budget ${index + 1}: ${truth} used, ${taken} settled`);
    }
    const ledger = await ledgerAt(`sqlite://${this.#file}`);
    const { differences } = await verifyLedger(ledger, NO_WAIT);
    await ledger.close();
    hold(differences.length === 0, `ledger verify: ${differences.map(String).join()}`);
  }

  /** Whatever clocks say: no round releases a lease that is there, or is being built. */
  #nothingIsGivenBack({ blazar, building, released }: Site): void {
    if (released.length === 0) {
      return;
    }
    const rows = this.#all<LeaseRow>('SELECT * FROM leases WHERE project_id = ?', PROJECT)
      // What has ended by its date comes back as soon as clocks are right.
      .filter(({ state, ended_at, ends_at }) => state === 'open' || ended_at === ends_at);
    const known = new Set(rows.map(({ lease_id }) => lease_id));
    const nameless = rows.filter(({ lease_id }) => lease_id === null);
    // One that Blazar does not end is charged afterwards, whatever the ledger took for its end.
    const there = blazar.live.filter(({ isOverdue }) => isOverdue !== true);
    const uncharged = [...there, ...building.values()].filter(({ id }) => !known.has(id));
    for (const lease of uncharged) {
      const isAlike = (other: LeaseForm) =>
        other.user === lease.user && other.start === lease.start && other.end === lease.end;
      const charged = nameless.filter((row) =>
        alternativesOf(row).some(({ start, end }) =>
          isAlike({
            id: null,
            user: row.user_id,
            start: Number(start / 1_000_000n),
            end: Number(end / 1_000_000n),
          }),
        ),
      );
      const isReleased = released.some((one) => one.id === lease.id || (one.id === null && isAlike(one)));
      hold(
        !isReleased || uncharged.filter(isAlike).length <= charged.length,
        `a comparison has given back ${lease.id}, which is there`,
      );
    }
  }

  #taken(budget: number): number {
    const [row] = this.#all<{ balance: bigint }>(
      'SELECT balance FROM accounts WHERE project_id = ? AND name = ?',
      PROJECT,
      `usage_budget/${budget}`,
    );
    return Number(row?.balance ?? 0n) / HOST_SECOND;
  }

  /**
   * An update that is taken back leaves what was in doubt before it, of which others may have taken a part meanwhile. The next request or
   * comparison settles it.
   */
  #restored(budget: number): number {
    const [row] = this.#all<{ sum: bigint | null }>(
      "SELECT SUM(delta) AS sum FROM entries WHERE project_id = ? AND account = ? AND operation = 'undo' AND delta > 0",
      PROJECT,
      `usage_budget/${budget}`,
    );
    return Number(row?.sum ?? 0n) / HOST_SECOND;
  }

  #open(now: number): LeaseRow[] {
    const at = BigInt(now) * 1_000_000n;
    return this.#all<LeaseRow>(
      "SELECT * FROM leases WHERE project_id = ? AND state = 'open' AND ends_at > ?",
      PROJECT,
      at,
    );
  }

  #all<Row>(sql: string, ...values: unknown[]): Row[] {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#connection.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement.all(values) as Row[];
  }
}

function hold(isKept: boolean, text: string): void {
  if (!isKept) {
    throw new BrokenPromise(text);
  }
}
