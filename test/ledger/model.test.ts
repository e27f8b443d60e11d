/** Whatever is done in whatever order: the ledger says what the plain one says, which does one thing after the other. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatInstant, formatUnitHours, MICROSECONDS_PER_SECOND, toInstant } from '../../src/index.ts';
import { listBudgets, setBudget } from '../../src/ledger/budgets.ts';
import type { Recording } from '../../src/ledger/transactions.ts';
import { DIALECTS, NO_WAIT } from '../support/ledgers.ts';
import { type Ground, leaseOf, newGrounds } from './ground.ts';
import { type PlainLease, PlainLedger, type PlainRefusal } from './plain-ledger.ts';

const newGround = newGrounds();

const HOUR = 3600;
const MOST = 4;
const BEGIN = second('2026-12-01');
const TURN = BEGIN + 6 * HOUR;
const HOST_SECOND = 1_000_000n;

type Operation =
  | { readonly kind: 'create'; readonly lease: PlainLease }
  | { readonly kind: 'update'; readonly current: PlainLease; readonly lease: PlainLease }
  | { readonly kind: 'end'; readonly lease: PlainLease }
  | { readonly kind: 'budget'; readonly which: number; readonly hours: number };

/** A few names, dates and ids, so that requests meet the leases of others. */
const lease = fc.record({
  user: fc.constantFrom('alice', 'bob'),
  name: fc.constantFrom('a', 'b'),
  hosts: fc.integer({ min: 1, max: 3 }),
  start: fc.integer({ min: 0, max: 4 }).map((hours) => BEGIN + hours * HOUR),
  hours: fc.integer({ min: 1, max: 8 }),
});
const asked = lease.map(({ hours, ...rest }): PlainLease => ({ ...rest, end: rest.start + hours * HOUR }));
const known = fc
  .record({ lease: asked, id: fc.constantFrom('x', 'y', 'z') })
  .map(({ lease, id }): PlainLease => ({ ...lease, id }));

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 5, arbitrary: asked.map((lease) => ({ kind: 'create', lease }) as const) },
  { weight: 1, arbitrary: known.map((lease) => ({ kind: 'create', lease }) as const) },
  {
    weight: 4,
    arbitrary: fc
      .record({
        current: known,
        hosts: fc.integer({ min: 1, max: 3 }),
        shift: fc.integer({ min: -2, max: 4 }),
      })
      .map(({ current, hosts, shift }) => {
        const end = Math.max(current.start + HOUR, current.end + shift * HOUR);
        return { kind: 'update', current, lease: { ...current, hosts, end } } as const;
      }),
  },
  { weight: 2, arbitrary: known.map((lease) => ({ kind: 'end', lease }) as const) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('budget' as const),
      which: fc.integer({ min: 0, max: 2 }),
      hours: fc.integer({ min: 0, max: 30 }),
    }),
  },
);

/** Operations that come at once, again and again the same ones, and how much time goes by before them. */
const round = (most: number) =>
  fc.record({
    seconds: fc.constantFrom(0, 0, 1, HOUR / 2, HOUR, 3 * HOUR),
    operations: fc
      .array(fc.record({ operation, times: fc.constantFrom(1, 1, 1, 2) }), { minLength: 1, maxLength: most })
      .map((all) =>
        all.flatMap(({ operation, times }) => Array<Operation>(times).fill(operation)).slice(0, most),
      ),
  });

/** So many orders of all rounds are followed. */
const EXPLANATIONS = 200;

const OWNERS = [
  { user: null, from: BEGIN - 24 * HOUR, until: TURN },
  { user: null, from: TURN, until: TURN + 48 * HOUR },
  { user: 'alice', from: BEGIN, until: TURN + 2 * HOUR },
] as const;

describe.each(DIALECTS)('the ledger on %s', (dialect) => {
  const runs = dialect === 'sqlite' ? 40 : 8;

  it('says what the plain ledger says, to one operation after the other', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(round(1), { minLength: 1, maxLength: 25 }), async (rounds) => {
        const [ground] = await meet(1);
        const plain = await begin(ground);
        for (const { seconds, operations } of rounds) {
          pass(plain, seconds, [ground]);
          for (const operation of sensible(operations, plain.now)) {
            const real = await perform(ground, operation);
            expect(real).toEqual(answer(plain, operation));
            expect(await standing(ground)).toEqual(plainStanding(plain, await ids(ground)));
          }
        }
        await ground.verify({ overdrawn: true });
        await ground.close();
      }),
      { numRuns: runs },
    );
  });

  it('says what the plain ledger would in some order, to operations that come at once', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(round(4), { minLength: 1, maxLength: 6 }), async (rounds) => {
        const grounds = await meet(3);
        const [ground] = grounds;
        let plains = [await begin(ground)];
        for (const { seconds, operations } of rounds) {
          for (const plain of plains) {
            pass(plain, seconds, grounds);
          }
          const all = sensible(operations, plains[0]?.now ?? 0);
          const real = await Promise.all(
            all.map((operation, index) => perform(grounds[index % grounds.length] ?? ground, operation)),
          );
          const after = await standing(ground);
          const names = await ids(ground);
          const same = plains.flatMap((plain) =>
            orders(all.length).flatMap((order) => {
              const tried = plain.copy();
              const said: unknown[] = [];
              for (const index of order) {
                const operation = all[index];
                said[index] = operation && answer(tried, operation);
              }
              return isSame([said, plainStanding(tried, names)], [real, after]) ? [tried] : [];
            }),
          );
          if (same.length === 0) {
            expect({ all, real, after }).toBe('what some order of them one by one comes to');
          }
          // Several orders may explain it, and what they have left behind may differ in what is not seen yet.
          plains = same.slice(0, EXPLANATIONS);
        }
        await ground.verify({ overdrawn: true });
        await Promise.all(grounds.map((one) => one.close()));
      }),
      { numRuns: runs },
    );
  });

  /** Several who share one project in one database. */
  async function meet(many: number): Promise<[Ground, ...Ground[]]> {
    const first = await newGround(dialect, { most: MOST, budget: 'none' });
    const others = Array.from({ length: many - 1 }, () =>
      newGround(dialect, { most: MOST, budget: 'none', projectId: first.project }),
    );
    return [first, ...(await Promise.all(others))];
  }
});

async function begin(ground: Ground): Promise<PlainLedger> {
  const plain = new PlainLedger(MOST, BEGIN - HOUR);
  pass(plain, 0, [ground]);
  for (const which of [0, 1]) {
    const operation = { kind: 'budget', which, hours: 20 } as const;
    await perform(ground, operation);
    answer(plain, operation);
  }
  return plain;
}

function pass(plain: PlainLedger, seconds: number, grounds: readonly Ground[]): void {
  plain.now += seconds;
  for (const ground of grounds) {
    ground.now = date(plain.now);
  }
}

/** Nobody asks for a lease that is over, nor for a change of one. */
function sensible(operations: readonly Operation[], now: number): Operation[] {
  return operations.filter(
    (operation) => !('lease' in operation) || operation.kind === 'end' || operation.lease.end > now,
  );
}

async function perform(ground: Ground, operation: Operation): Promise<unknown> {
  switch (operation.kind) {
    case 'create':
      return refusalOf(await ground.create(wire(operation.lease), operation.lease.user));
    case 'update': {
      const { current, lease } = operation;
      return refusalOf(await ground.update(wire(current), wire(lease), lease.user));
    }
    case 'end':
      await ground.end(wire(operation.lease), operation.lease.user);
      return undefined;
    case 'budget': {
      const owner = OWNERS[operation.which] ?? OWNERS[0];
      const wanted = {
        projectId: ground.project,
        userId: owner.user,
        validFrom: BigInt(owner.from),
        validUntil: BigInt(owner.until),
        amount: BigInt(operation.hours * HOUR) * HOST_SECOND,
      };
      await setBudget(ground.ledger, wanted, { who: 'operator', reason: null }, NO_WAIT);
      return undefined;
    }
  }
}

function answer(plain: PlainLedger, operation: Operation): unknown {
  switch (operation.kind) {
    case 'create':
      return shown(plain.create(operation.lease));
    case 'update':
      return shown(plain.update(operation.current, operation.lease));
    case 'end':
      plain.end(operation.lease);
      return undefined;
    case 'budget': {
      const { which, hours } = operation;
      const id = `budget ${which}`;
      const budget = plain.budgets.find((one) => one.id === id);
      if (budget === undefined) {
        plain.budgets.push({ id, ...(OWNERS[which] ?? OWNERS[0]), hostSeconds: hours * HOUR });
      } else {
        budget.hostSeconds = hours * HOUR;
      }
      return undefined;
    }
  }
}

function refusalOf({ refusal }: Recording): unknown {
  const costs = /would cost (\S+) .*; .* has (\S+) node-hours left/.exec(refusal?.message ?? '');
  return refusal === undefined
    ? 'recorded'
    : costs === null
      ? (/has no budget/.exec(refusal.message)?.[0] ?? refusal.filter)
      : `costs ${costs[1]}, left ${costs[2]}`;
}

function shown(refusal: PlainRefusal): string {
  switch (refusal?.limit) {
    case undefined:
      return 'recorded';
    case 'leases':
      return 'MaxLeasesFilter';
    case 'no budget':
      return 'has no budget';
    case 'budget':
      return `costs ${unitHours(refusal.asked, 'up')}, left ${unitHours(refusal.left, 'down')}`;
  }
}

function unitHours(hostSeconds: number, rounding: 'up' | 'down'): string {
  return formatUnitHours(BigInt(hostSeconds) * HOST_SECOND, rounding);
}

/** What is taken of the budgets, in their order. */
async function standing(ground: Ground): Promise<[string, bigint, bigint][]> {
  const budgets = await listBudgets(ground.ledger, ground.project, NO_WAIT);
  return budgets.map(({ userId, validFrom, taken, amount }) => [`${userId} ${validFrom}`, taken, amount]);
}

function ids(ground: Ground): Promise<string[]> {
  return standing(ground).then((all) => all.map(([name]) => name));
}

function plainStanding(plain: PlainLedger, names: readonly string[]): unknown {
  const found = plain.budgets.map((budget) => [
    `${budget.user} ${budget.from}`,
    BigInt(plain.taken(budget.id)) * HOST_SECOND,
    BigInt(budget.hostSeconds) * HOST_SECOND,
  ]);
  return names.map((name) => found.find(([other]) => other === name));
}

function wire({ id, name, hosts, start, end }: PlainLease) {
  return leaseOf({ ...(id === undefined ? {} : { id }), name, hosts, from: date(start), until: date(end) });
}

function isSame(one: unknown, other: unknown): boolean {
  const text = (value: unknown) =>
    JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part));
  return text(one) === text(other);
}

function orders(length: number): number[][] {
  if (length === 0) {
    return [[]];
  }
  return orders(length - 1).flatMap((order) =>
    Array.from({ length }, (_, at) => [...order.slice(0, at), length - 1, ...order.slice(at)]),
  );
}

function date(seconds: number): string {
  return formatInstant(BigInt(seconds) * MICROSECONDS_PER_SECOND);
}

function second(text: string): number {
  return Number((toInstant(text) ?? 0n) / MICROSECONDS_PER_SECOND);
}
