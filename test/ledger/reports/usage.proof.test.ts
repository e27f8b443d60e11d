/** Usage and reports of it beside a naive model that counts hour by hour, and beside the balances of the ledger: whatever happens to leases. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import '../../support/properties.ts';
import { listBudgets } from '../../../src/ledger/budgets/budgets.ts';
import { foldLeases } from '../../../src/ledger/folding/fold.ts';
import { listProjectLeases } from '../../../src/ledger/reports/leases.ts';
import { reportUsage } from '../../../src/ledger/reports/usage/report.ts';
import { USAGE_KEYS, type UsageKey, type UsageReport } from '../../../src/ledger/reports/usage/sums.ts';
import { type UsageQuery, usageOf } from '../../../src/ledger/reports/usage.ts';
import { budgetsOverTime } from '../../../src/ledger/reports/usage-over-time.ts';
import { DIALECTS, NO_WAIT } from '../../support/ledgers.ts';
import { type LedgerFixture, leaseOf, newFixtures } from '../fixture.ts';

const newGround = newFixtures(true);

const HOUR = 3_600_000;
const BEGIN = Date.parse('2026-12-01');
const HOURS = 24 * 20;
const UNIT_HOUR = 3_600_000_000n;
const USERS = ['alice', 'bob', 'eve'];
const RUNS = { sqlite: 40, postgresql: 8 };

type Step =
  | { readonly kind: 'create'; user: number; hosts: number; start: number; hours: number }
  | { readonly kind: 'move'; lease: number; start: number; hours: number }
  | { readonly kind: 'end'; lease: number }
  | { readonly kind: 'wait'; hours: number };

const hours = (max: number) => fc.integer({ min: 1, max });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('create' as const),
      user: fc.nat(2),
      hosts: hours(4),
      start: fc.nat(200),
      hours: hours(150),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('move' as const),
      lease: fc.nat(5),
      start: fc.nat(100),
      hours: hours(150),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('end' as const), lease: fc.nat(5) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait' as const), hours: hours(60) }) },
);

/** A lease as Blazar has it, in hours since the beginning; and as it may be, as far as the ledger knows. */
interface ModelLease {
  readonly id: string;
  readonly user: string;
  readonly hosts: number;
  start: number;
  end: number;
  /** What is charged. */
  span: { from: number; until: number };
  /** What it has reserved, as last asked for. */
  asked: { from: number; until: number };
  isOver: boolean;
}

class World {
  readonly leases: ModelLease[] = [];
  readonly #fixture: LedgerFixture;
  now = 0;

  constructor(fixture: LedgerFixture) {
    this.#fixture = fixture;
    this.#fixture.now = date(0);
  }

  async take(one: Step): Promise<void> {
    switch (one.kind) {
      case 'wait':
        this.now = Math.min(this.now + one.hours, HOURS - 1);
        this.#fixture.now = date(this.now);
        return;
      case 'create': {
        const start = this.now + one.start;
        const id = `L${this.leases.length}`;
        const user = USERS[one.user] ?? '';
        const span = { from: start, until: start + one.hours };
        const { refusal } = await this.#fixture.create(
          leaseOf({ id, name: id, hosts: one.hosts, from: date(span.from), until: date(span.until) }),
          user,
        );
        expect(refusal).toBeUndefined();
        const lease = {
          id,
          user,
          hosts: one.hosts,
          start,
          end: span.until,
          span,
          asked: span,
          isOver: false,
        };
        this.leases.push(lease);
        return;
      }
      case 'move':
        return this.#move(this.leases[one.lease], one);
      case 'end': {
        const lease = this.leases[one.lease];
        if (lease !== undefined && !lease.isOver && lease.end > this.now) {
          await this.#fixture.end(this.#text(lease), lease.user);
          lease.isOver = true;
          for (const span of [lease.span, lease.asked]) {
            span.until = Math.max(span.from, Math.min(span.until, this.now));
          }
        }
      }
    }
  }

  /** One that runs keeps its start. The next request shows how it was before: only one change at a time is unconfirmed. */
  async #move(
    lease: ModelLease | undefined,
    { start: later, hours: length }: { start: number; hours: number },
  ) {
    if (lease === undefined || lease.isOver || lease.end <= this.now) {
      return;
    }
    const runs = lease.start <= this.now;
    const start = runs ? lease.start : this.now + 1 + later;
    const end = runs ? Math.max(this.now + 1, lease.start + length) : start + length;
    const { refusal } = await this.#fixture.update(
      this.#text(lease),
      { start_date: date(start), end_date: date(end) },
      lease.user,
    );
    expect(refusal).toBeUndefined();
    const before = { from: lease.start, until: lease.end };
    const wanted = { from: start, until: end };
    const isDearer = before.until - before.from > wanted.until - wanted.from;
    lease.span = { ...(isDearer ? before : wanted) };
    lease.asked = { from: start, until: Math.max(before.until, wanted.until) };
    Object.assign(lease, { start, end });
  }

  #text({ id, hosts, start, end }: ModelLease) {
    return leaseOf({ id, name: id, hosts, from: date(start), until: date(end) });
  }

  /** Hours of hosts, counted one by one. */
  used(
    from: number,
    until: number,
    keyOf: (lease: ModelLease, hour: number) => string,
    what: 'span' | 'asked',
  ) {
    const sums = new Map<string, bigint>();
    for (const lease of this.leases) {
      for (let hour = lease[what].from; hour < lease[what].until; hour += 1) {
        if (hour >= from && hour < until) {
          const key = keyOf(lease, hour);
          sums.set(key, (sums.get(key) ?? 0n) + BigInt(lease.hosts));
        }
      }
    }
    return sums;
  }
}

function date(hour: number): string {
  return new Date(BEGIN + hour * HOUR).toISOString();
}

function at(hour: number): bigint {
  return BigInt((BEGIN + hour * HOUR) / 1000);
}

async function sums(fixture: LedgerFixture, groupBy: UsageQuery['groupBy'], from: number, until: number) {
  const query = { projectId: fixture.project, from: at(from), until: at(until), groupBy };
  const { groups, isPartial } = await usageOf(fixture.ledger, query, NO_WAIT);
  expect(isPartial).toBe(false);
  return groups;
}

it.each(DIALECTS)(
  'usage on %s is what a count hour by hour says, and adds up to what is taken',
  async (dialect) => {
    const property = fc.asyncProperty(
      fc.array(step, { minLength: 3, maxLength: 14 }),
      fc.nat(300),
      hours(300),
      fc.boolean(),
      async (steps, from, length, hasTwo) => {
        const fixture = await newGround(dialect);
        const half = hasTwo ? 24 * 8 : 0;
        const ends = 24 * 60;
        if (hasTwo) {
          await fixture.give({ from: date(-240), until: date(half), amount: '100000' });
        }
        await fixture.give({ from: date(hasTwo ? half : -240), until: date(ends), amount: '100000' });
        const world = new World(fixture);
        const until = from + length;
        for (const [index, one] of steps.entries()) {
          await world.take(one);
          await reported(fixture, USAGE_KEYS[index % 4] ?? 'project', -240, ends);
          await reported(
            fixture,
            'month',
            ...(index % 2 === 0 ? ([from, until] as const) : ([-240, ends] as const)),
          );
        }
        // With two budgets, an unconfirmed lease may be most expensive at one time for the one, and at another for the other.
        if (!hasTwo) {
          const byUser = await sums(fixture, 'user', from, until);
          const expected = world.used(from, until, ({ user }) => user, 'span');
          expect(new Map(byUser.flatMap(({ key, amount }) => (amount ? [[key, amount]] : [])))).toEqual(
            scaled(expected),
          );
          const byDay = await sums(fixture, 'day', from, until);
          const days = world.used(from, until, (_, hour) => date(hour).slice(0, 10), 'span');
          expect(new Map(byDay.flatMap(({ key, amount }) => (amount ? [[key, amount]] : [])))).toEqual(
            scaled(days),
          );
        }
        const [hosts] = await sums(fixture, 'resource_type', from, until);
        const reserved = world.used(from, until, () => 'physical:host', 'asked').get('physical:host') ?? 0n;
        expect((hosts?.resourceSeconds ?? 0n) / 3600n).toBe(reserved);
        for (const budget of await listBudgets(fixture.ledger, fixture.project, NO_WAIT)) {
          const validity = [budget.validFrom, budget.validUntil].map(
            (second) => (Number(second) * 1000 - BEGIN) / HOUR,
          ) as [number, number];
          for (const groupBy of ['user', 'day'] as const) {
            const total = (await sums(fixture, groupBy, ...validity)).reduce(
              (sum, { amount }) => sum + (amount ?? 0n),
              0n,
            );
            expect(total).toBe(budget.taken);
          }
        }
        await expectCourses(fixture, world, hasTwo);
        const page = await listProjectLeases(
          fixture.ledger,
          { projectId: fixture.project, limit: 100, after: undefined },
          NO_WAIT,
        );
        const taken = (await listBudgets(fixture.ledger, fixture.project, NO_WAIT)).reduce(
          (sum, budget) => sum + budget.taken,
          0n,
        );
        expect(page.items.reduce((sum, { cost }) => sum + cost, 0n)).toBe(taken);
        await expectReports(fixture, { from, until, ends });
      },
    );
    await fc.assert(property, { numRuns: RUNS[dialect] });
  },
);

/** Reports that keep totals, and have kept some before, say the same as one that does not. */
async function reported(
  { ledger, project }: LedgerFixture,
  by: UsageKey,
  from: number,
  until: number,
): Promise<UsageReport> {
  const query = { projectIds: [project], from: at(from), until: at(until), by };
  const report = await reportUsage(ledger, query, NO_WAIT);
  for (const _ of [1, 2]) {
    expect(await reportUsage(ledger, { ...query, cachesTotals: true }, NO_WAIT)).toEqual(report);
  }
  return report;
}

/** They say what usage says, add up to what is taken, and what is folded makes no number wrong. */
async function expectReports(
  fixture: LedgerFixture,
  { from, until, ends }: { readonly from: number; readonly until: number; readonly ends: number },
): Promise<void> {
  const { ledger, project } = fixture;
  const report = (by: UsageKey, begin: number, end: number) => reported(fixture, by, begin, end);
  const total = ({ rows }: UsageReport) => rows.reduce((sum, { amount }) => sum + amount, 0n);
  const taken = (await listBudgets(ledger, project, NO_WAIT)).reduce((sum, budget) => sum + budget.taken, 0n);
  const expectTaken = async (isFolded: boolean) => {
    for (const by of ['project', 'user', 'month'] as const) {
      const told = await report(by, -240, ends);
      const undated = told.undated.amount;
      expect({ by, total: total(told) + undated }).toEqual({ by, total: taken });
      // The budgets are for more than a month.
      expect(isFolded && by === 'month' ? 0n : undated).toBe(0n);
    }
  };
  await expectTaken(false);
  const byUser = await report('user', from, until);
  const used = new Map(
    byUser.rows.flatMap(({ userId, amount }) => (amount === 0n ? [] : [[userId, amount]])),
  );
  const expected = await sums(fixture, 'user', from, until);
  expect(used).toEqual(new Map(expected.flatMap(({ key, amount }) => (amount ? [[key, amount]] : []))));
  const [hosts] = await sums(fixture, 'resource_type', from, until);
  const types = (await report('resource_type', from, until)).rows;
  expect(types.reduce((sum, row) => sum + row.resourceSeconds, 0n)).toBe(hosts?.resourceSeconds ?? 0n);
  expect(total(await report('month', from, until))).toBe(total(byUser));
  if (until - from > 1) {
    const halves = await Promise.all([report('project', from, from + 1), report('project', from + 1, until)]);
    expect(halves.map(total).reduce((sum, part) => sum + part)).toBe(total(byUser));
  }

  fixture.now = date(ends);
  await foldLeases(ledger, { until: at(until) * 1_000_000n, keep: async () => {} }, NO_WAIT);
  await expectTaken(true);
  const folded = await report('project', from, until);
  expect(total(folded)).toBeLessThanOrEqual(total(byUser));
  expect(total(folded) + folded.undated.amount).toBeGreaterThanOrEqual(total(byUser));
}

async function expectCourses(fixture: LedgerFixture, world: World, hasTwo: boolean): Promise<void> {
  const query = { projectId: fixture.project, from: at(0), until: at(HOURS), points: 24 };
  for (const { points, budget } of await budgetsOverTime(fixture.ledger, query, NO_WAIT)) {
    const used = points.map((point) => point.used);
    expect([...used].sort((a, b) => (a < b ? -1 : 1))).toEqual(used);
    if (hasTwo) {
      continue;
    }
    for (const point of points) {
      const hour = (Number(point.at) * 1000 - BEGIN) / HOUR;
      const expected = world.used(0, Math.floor(hour), () => '', 'span').get('') ?? 0n;
      if (Number.isInteger(hour)) {
        expect({ budget, at: point.at, used: point.used }).toEqual({
          budget,
          at: point.at,
          used: expected * UNIT_HOUR,
        });
      }
    }
  }
}

function scaled(amounts: ReadonlyMap<string, bigint>): Map<string, bigint> {
  return new Map([...amounts].map(([key, amount]) => [key, amount * UNIT_HOUR]));
}
