/** Random projects with budgets, leases and rules, requests that may be refused in any way, and changes; and what must hold of each estimate. */
import fc from 'fast-check';
import { expect } from 'vitest';
import {
  type CheckOptions,
  type CreateRequest,
  type Lease,
  toInstant,
  type UpdateRequest,
  UsageEnforcement,
} from '../../../src/index.ts';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import { rows } from '../../../src/ledger/storage/database.ts';
import { valuesOnly } from '../../support/files.ts';
import { filterFolder, filterSource } from '../../support/filter-folder.ts';
import { balancesOf, giveBudget, ledgerAt, NO_WAIT } from '../../support/ledgers.ts';
import { recordingLogger } from '../../support/logger.ts';

const NOW = '2026-11-21T09:00:30Z';
const DAY = 86_400_000;
const MINUTE = 60_000;
const FIRST = Date.parse('2026-11-01T00:00:00Z');

interface Period {
  readonly gap: number;
  readonly days: number;
  readonly hours: number;
}

const periods = fc.array(
  fc.record({
    gap: fc.integer({ min: 0, max: 20 }),
    days: fc.integer({ min: 1, max: 40 }),
    hours: fc.integer({ min: 0, max: 900 }),
  }),
  { maxLength: 4 },
);

const reservation = fc.oneof(
  fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 0, max: 8 })).map(([min, more]) => ({
    resource_type: 'physical:host',
    min,
    max: min + more,
  })),
  fc.integer({ min: 1, max: 60 }).map((amount) => ({ resource_type: 'virtual:instance', amount })),
  fc
    .integer({ min: 1, max: 9 })
    .map((amount) => ({ resource_type: 'virtual:floatingip', amount: String(amount) })),
);

const wish = fc.record({
  /** After now. */
  start: fc.oneof(fc.integer({ min: 0, max: 120 }), fc.integer({ min: 0, max: 120 * 1440 })),
  minutes: fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 20 * 1440 })),
  reservations: fc.array(reservation, { maxLength: 3 }),
});

export const randomProjects = fc.record({
  project: periods,
  user: fc.option(periods, { freq: 3 }),
  before: fc.array(wish, { maxLength: 3 }),
  wish,
  /** Of the wish, once it is a lease. */
  change: fc.record({
    /** In minutes: when it is asked for, and how much earlier or later the lease starts and ends then. */
    after: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 20 * 1440 })),
    start: fc.oneof(fc.constant(0), fc.integer({ min: -3000, max: 9000 })),
    end: fc.oneof(fc.constant(0), fc.integer({ min: -9000, max: 20 * 1440 })),
    counts: fc.option(fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 3, maxLength: 3 })),
  }),
});
type World = typeof randomProjects extends fc.Arbitrary<infer Value> ? Value : never;

/** No lease starts on a Sunday, and none takes from 100 to 200 minutes: not monotone at all. */
const ODD = `
  const start = new Date(lease.start_date + 'Z');
  const minutes = (new Date(lease.end_date + 'Z') - start) / 60000;
  if (start.getUTCDay() === 0) return reject('not on a Sunday');
  return minutes > 100 && minutes < 200 ? reject('odd') : allow();`;

interface TestClock {
  at: number;
}

export class RandomProjects {
  readonly enforcement: UsageEnforcement;
  readonly ledger: Ledger;
  readonly clock: TestClock;
  #projects = 0;

  private constructor(enforcement: UsageEnforcement, ledger: Ledger, clock: TestClock) {
    this.enforcement = enforcement;
    this.ledger = ledger;
    this.clock = clock;
  }

  static async open(connection: string): Promise<RandomProjects> {
    const clock = { at: Date.parse(NOW) };
    const enforcement = await UsageEnforcement.load(
      valuesOnly({
        ledger: { connection },
        enforcement: {
          enabled_filters: [
            ...['MaxLeasesFilter', 'OddFilter', 'MaxLeaseDurationFilter', 'LeaseDatesFilter'],
            ...['MaxReservationSizeFilter', 'UsageBudgetFilter'],
          ],
          filters_path: [
            filterFolder({
              'odd-filter.js': filterSource('OddFilter', {
                create: ODD,
                update: ODD.replaceAll('lease.', 'newLease.'),
              }),
            }),
          ],
          max_leases_per_project: 3,
          max_lease_duration: 12 * 86_400,
          lease_dates_earliest_start: '+1800',
          lease_dates_latest_end: '2027-04-01',
          max_reservation_size: { 'physical:host': 9 },
          usage_budget_rates: { 'physical:host': 1, 'virtual:instance': 0.1, 'virtual:floatingip': 0.01 },
        },
      }),
      { logger: recordingLogger(), clock: { now: () => new Date(clock.at) } },
    );
    return new RandomProjects(enforcement, await ledgerAt(connection, { now: () => NOW }), clock);
  }

  async close(): Promise<void> {
    await this.enforcement.close();
    await this.ledger.close();
  }

  /** Fails where a promise is broken. Returns the changes that were suggested; `allowed` = the wish itself is. */
  async try({ project, user, before, wish: wanted, change }: World): Promise<readonly string[]> {
    this.#projects += 1;
    this.clock.at = Date.parse(NOW);
    const projectId = `project-${this.#projects}`;
    await this.#give(projectId, null, project);
    await this.#give(projectId, 'alice', user ?? []);
    for (const one of before) {
      await this.enforcement.checkCreate(requestOf(projectId, one));
    }
    const { made, seen } = await this.#estimated(requestOf(projectId, wanted), expectOnly);
    if (made === undefined) {
      return seen;
    }
    this.clock.at += change.after * MINUTE;
    const asked = changeOf(made, change);
    const changed = await this.#estimated(asked, (_, wished, lease) => {
      expect(shapeOf(lease)).not.toEqual(shapeOf(made.lease));
      expect(Date.parse(String(lease.end_date))).toBeGreaterThan(0);
      const isBegun = Date.parse(`${made.lease.start_date}Z`) <= this.clock.at;
      expect(isBegun ? lease.start_date : null).toEqual(isBegun ? wished.start_date : null);
    });
    return [...seen, ...changed.seen.map((one) => `change: ${one}`)];
  }

  /** What was suggested, and the request that was granted in the end. */
  async #estimated(request: CreateRequest | UpdateRequest, expectSuggested: typeof expectOnly) {
    const ask = (lease: Lease, options: CheckOptions) =>
      'currentLease' in request
        ? this.enforcement.checkUpdate({ ...request, lease }, options)
        : this.enforcement.checkCreate({ ...request, lease }, options);
    const recorded = await this.#everything();
    const { decision, charges, suggestions, searched } = await this.enforcement.estimate(request);
    expect(await this.#everything()).toEqual(recorded);
    const checked = await ask(request.lease, { dryRun: true, explain: true });
    expect(withoutTimes(decision)).toEqual(withoutTimes(checked));
    expect(searched === null).toBe(decision.allowed);
    for (const { change, lease, charges: its } of suggestions) {
      expectSuggested(change, request.lease, lease);
      const again = await ask(lease, { dryRun: true });
      expect(again, `${change}: ${again.message}`).toMatchObject({ allowed: true, changed: false });
      // A change may leave an account beyond its limit that was so before.
      expect(its.filter(({ left, amount }) => left !== null && left < 0n && amount > 0n)).toEqual([]);
    }
    if (decision.allowed) {
      expect(suggestions).toEqual([]);
    }
    const granted = decision.allowed ? { lease: request.lease, charges } : suggestions.at(-1);
    if (granted === undefined) {
      return { made: undefined, seen: [] };
    }
    expect((await ask(granted.lease, {})).allowed).toBe(true);
    const made = { context: request.context, lease: { ...granted.lease, id: 'lease' } };
    if ('currentLease' in request) {
      // As the next request shows it: until then it may be as it was, too.
      await this.enforcement.checkUpdate({ ...made, currentLease: made.lease });
    }
    const balances = await balancesOf(this.ledger, request.context.project_id);
    for (const { account, taken, amount } of granted.charges) {
      const balance = balances.get(account) ?? 0n;
      if (showsCounts(request)) {
        expect(balance, account).toBe(taken + amount);
      } else {
        // Only Blazar's list shows that it is not as it was, too.
        expect(balance, account).toBeGreaterThanOrEqual(taken + amount);
      }
    }
    return { made, seen: decision.allowed ? ['allowed'] : suggestions.map(({ change }) => change) };
  }

  async #give(projectId: string, userId: string | null, all: readonly Period[]): Promise<void> {
    let day = 0;
    for (const { gap, days, hours } of all) {
      day += gap;
      const [from, until] = [day, day + days].map((at) =>
        new Date(FIRST + at * DAY).toISOString().slice(0, 10),
      );
      await giveBudget(this.ledger, {
        projectId,
        amount: String(hours),
        from: from ?? '',
        until: until ?? '',
        ...(userId !== null && { userId }),
      });
      day += days;
    }
  }

  /** All rows of all tables. */
  async #everything(): Promise<string> {
    const { queries } = this.ledger.database;
    const tables = [
      ...['projects', 'leases', 'accounts', 'entries', 'budgets', 'budget_changes', 'outbox'],
    ] as const;
    const read: unknown[] = [];
    for (const table of tables) {
      const query = queries.selectFrom(table).selectAll().compile();
      read.push(await this.ledger.read('read', () => rows(query), NO_WAIT));
    }
    return JSON.stringify(read, (_, value) => (typeof value === 'bigint' ? String(value) : value));
  }
}

function requestOf(projectId: string, { start, minutes, reservations }: World['wish']): CreateRequest {
  const from = Date.parse('2026-11-21T09:00:00Z') + start * MINUTE;
  return {
    context: { user_id: 'alice', project_id: projectId },
    lease: {
      name: 'wish',
      start_date: text(from),
      end_date: text(from + minutes * MINUTE),
      reservations: reservations.map((one, index) => ({ id: `r${index}`, ...one })),
      before_end_date: '',
    },
  };
}

function changeOf({ context, lease }: CreateRequest, change: World['change']): UpdateRequest {
  const moved = (date: unknown, minutes: number) =>
    Date.parse(`${date}Z`.replace('ZZ', 'Z')) + minutes * MINUTE;
  const start = moved(lease.start_date, change.start);
  return {
    context,
    currentLease: lease,
    lease: {
      start_date: text(start),
      end_date: text(Math.max(start + MINUTE, moved(lease.end_date, change.end))),
      reservations: (lease.reservations ?? []).map((one, index) => {
        const count = change.counts?.[index];
        return count === undefined
          ? one
          : one.min === undefined
            ? { ...one, amount: typeof one.amount === 'string' ? String(count) : count }
            : { ...one, min: Math.min(Number(one.min), count), max: count };
      }),
    },
  };
}

/** Whether a change leaves the counts as they are, or a request shows them: those of hosts, of which Blazar names each. */
function showsCounts(request: CreateRequest | UpdateRequest): boolean {
  const { reservations = [] } = request.lease;
  return (
    !('currentLease' in request) ||
    JSON.stringify(request.currentLease.reservations) === JSON.stringify(reservations) ||
    (reservations.length === 1 && reservations[0]?.resource_type === 'physical:host')
  );
}

function shapeOf({ start_date, end_date, reservations }: Lease): object {
  return [toInstant(start_date), toInstant(end_date), reservations];
}

function text(at: number): string {
  return new Date(at).toISOString().slice(0, 19);
}

function withoutTimes(decision: { readonly outcomes: readonly object[] }): object {
  return { ...decision, outcomes: decision.outcomes.map((one) => ({ ...one, milliseconds: 0 })) };
}

/** That a suggestion is the wish but for what it says. */
function expectOnly(change: string, wished: Lease, lease: Lease): void {
  const at = ({ start_date, end_date }: Lease) =>
    [start_date, end_date].map((date) => Number((toInstant(date) ?? 0n) / 1000n)) as [number, number];
  const [start, end] = at(wished);
  const [from, until] = at(lease);
  const { reservations = [] } = lease;
  const { start_date, end_date } = wished;
  expect({ ...lease, start_date, end_date, reservations: wished.reservations }).toEqual(wished);
  expect(from % MINUTE).toBe(0);
  expect(until % MINUTE).toBe(0);
  const changes = change.split('-');
  expect(from - start > 0).toBe(changes.includes('later'));
  expect(until - from < end - start).toBe(changes.includes('shorter'));
  expect(until - from).toBeLessThanOrEqual(end - start);
  expect(until - from).toBeGreaterThan(0);
  const before = wished.reservations ?? [];
  for (const [index, one] of reservations.entries()) {
    const { max, amount, min } = one;
    expect({ ...one, ...pick(before[index] ?? {}) }).toEqual(before[index]);
    expect(Number(max ?? amount)).toBeGreaterThanOrEqual(Number(min ?? 1));
    expect(Number(max ?? amount)).toBeLessThanOrEqual(Number(before[index]?.max ?? before[index]?.amount));
  }
  expect(JSON.stringify(reservations) !== JSON.stringify(before)).toBe(changes.includes('smaller'));
}

function pick({ max, amount }: Readonly<Record<string, unknown>>): object {
  return { ...(max === undefined ? {} : { max }), ...(amount === undefined ? {} : { amount }) };
}
