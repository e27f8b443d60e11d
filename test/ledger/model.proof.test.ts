/** Whatever a Blazar does in whatever order, and whatever fails: what it has costs no more than is charged, nor than there is. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Lease, MICROSECONDS_PER_SECOND, toInstant } from '../../src/index.ts';
import { listBudgets, setBudget } from '../../src/ledger/budgets/budgets.ts';
import type { ShownLease } from '../../src/ledger/reconciliation/leases.ts';
import type { OpenRows } from '../../src/ledger/reconciliation/plan.ts';
import { readOpenRows, reconcileObservation } from '../../src/ledger/reconciliation/reconcile.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import { asSent, Blazar, type Held, hostIds } from '../simulation/blazar.ts';
import { DIALECTS, NO_WAIT } from '../support/ledgers.ts';
import { type LedgerFixture, newFixtures } from './fixture.ts';

const newGround = newFixtures();

const HOUR = 3600;
const MOST = 5;
const BEGIN = second('2026-12-01');
const TURN = BEGIN + 6 * HOUR;
const HOST_SECOND = 1_000_000n;

const WINDOWS = [
  { user: null, from: BEGIN - 24 * HOUR, until: TURN, hours: 40 },
  { user: null, from: TURN, until: TURN + 96 * HOUR, hours: 60 },
  { user: 'alice', from: BEGIN - 24 * HOUR, until: TURN + 96 * HOUR, hours: 45 },
] as const;

/** What comes of a change when it was allowed. */
const outcome = fc.constantFrom('done', 'done', 'done', 'refused', 'half way');
const counts = fc.record({ min: fc.integer({ min: 1, max: 2 }), more: fc.integer({ min: 0, max: 2 }) });

const create = fc.record({
  kind: fc.constant('create' as const),
  user: fc.constantFrom('alice', 'bob'),
  counts,
  found: fc.nat(2),
  start: fc.integer({ min: 0, max: 3 }),
  hours: fc.integer({ min: 1, max: 6 }),
  isDone: fc.constantFrom(true, true, true, false),
  // Blazar takes the id of whoever asks.
  ownId: fc.constantFrom(undefined, undefined, 'x', 'y'),
});
const change = fc.record({
  kind: fc.constant('change' as const),
  which: fc.nat(4),
  later: fc.constantFrom(0, 0, 0, 1, 24),
  longer: fc.constantFrom(-3, -1, 0, 1, 2, 6),
  counts: fc.option(counts),
  found: fc.nat(3),
  outcome,
});
const rename = fc.record({ kind: fc.constant('rename' as const), which: fc.nat(4) });
const end = fc.record({
  kind: fc.constant('end' as const),
  which: fc.nat(4),
  isHeard: fc.constantFrom(true, true, true, false),
});

/** Reads the rows and Blazar's list; a later `follow` acts upon what was read last, however old it is. */
const look = fc.record({ kind: fc.constant('look' as const) });
const follow = fc.record({ kind: fc.constant('follow' as const) });

const operation = fc.oneof(
  { weight: 2, arbitrary: look },
  { weight: 2, arbitrary: follow },
  { weight: 5, arbitrary: create },
  { weight: 6, arbitrary: change },
  { weight: 1, arbitrary: rename },
  { weight: 2, arbitrary: end },
);
type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;

/** Operations that come at once, of different leases, and how much time goes by before them. */
const round = (most: number) =>
  fc.record({
    seconds: fc.constantFrom(0, 0, 1, HOUR / 2, HOUR, 3 * HOUR),
    operations: fc.array(operation, { minLength: 1, maxLength: most }),
  });

describe.each(DIALECTS)('the ledger on %s', (dialect) => {
  const runs = (dialect === 'sqlite' ? 60 : 8) * Number(process.env.LEDGER_PROOFS ?? 1);

  it.each([
    ['one after the other', 1, 25],
    ['at once', 4, 8],
  ])(
    'charges no less than what a Blazar has, and grants no more than there is, %s',
    async (_, most, rounds) => {
      await fc.assert(
        fc.asyncProperty(fc.array(round(most), { minLength: 1, maxLength: rounds }), async (all) => {
          const fixtures = await meet(most === 1 ? 1 : 3);
          const [fixture] = fixtures;
          const world: World = {
            blazar: new Blazar(),
            now: BEGIN - HOUR,
            renamed: new Set(),
            unheard: 0,
          };
          pass(world, 0, fixtures);
          await giveBudgets(fixture);
          for (const { seconds, operations } of all) {
            pass(world, seconds, fixtures);
            const touched = new Set<string>();
            await Promise.all(
              operations.map((operation, index) =>
                perform(world, fixtures[index % fixtures.length] ?? fixture, operation, touched),
              ),
            );
            await judge(world, fixture);
          }
          await finish(world, fixture);
          await Promise.all(fixtures.map((one) => one.close()));
        }),
        { numRuns: runs },
      );
    },
    600_000,
  );

  /** Several who share one project in one database. */
  async function meet(many: number): Promise<[LedgerFixture, ...LedgerFixture[]]> {
    const first = await newGround(dialect, { most: MOST, budget: 'none' });
    const others = Array.from({ length: many - 1 }, () =>
      newGround(dialect, { most: MOST, budget: 'none', projectId: first.project }),
    );
    return [first, ...(await Promise.all(others))];
  }
});

interface World {
  readonly blazar: Blazar;
  /** In seconds of the epoch. */
  now: number;
  /** Leases that Blazar has renamed, without telling anybody. */
  readonly renamed: Set<string>;
  /** How many leases may be in the ledger that nobody will end. */
  unheard: number;
  seen?: { readonly rows: OpenRows; readonly leases: readonly ShownLease[] };
}

async function perform(
  world: World,
  fixture: LedgerFixture,
  operation: Operation,
  touched: Set<string>,
): Promise<void> {
  const { blazar } = world;
  if (operation.kind === 'look') {
    const rows = await readOpenRows(fixture.ledger, '', NO_WAIT);
    const own = [...rows.rows].filter(([, row]) => row.project_id === fixture.project);
    world.seen = {
      rows: { ...rows, rows: new Map(own) },
      leases: blazar.live.map((lease) => shownAs(world, lease, fixture)),
    };
    return;
  }
  if (operation.kind === 'follow') {
    await followSeen(world, fixture);
    return;
  }
  if (operation.kind === 'create') {
    await createLease(world, fixture, operation, touched);
    return;
  }
  const lease = blazar.live[operation.which % Math.max(1, blazar.live.length)];
  if (lease === undefined || touched.has(lease.id)) {
    return;
  }
  touched.add(lease.id);
  switch (operation.kind) {
    case 'rename':
      world.renamed.add(lease.id);
      return;
    case 'end':
      world.unheard += operation.isHeard ? 0 : 1;
      if (operation.isHeard) {
        await fixture.end(sent(world, lease, lease.hosts), lease.user);
      }
      remove(world, lease);
      return;
    case 'change':
      await changeLease(world, fixture, lease, operation);
  }
}

async function followSeen({ seen }: World, fixture: LedgerFixture): Promise<void> {
  if (seen === undefined) {
    return;
  }
  const options = {
    region: '',
    claimants: fixture.claimants,
    who: 'follower',
    reason: null,
    exemptProjects: [],
    grace: 1n,
    isDryRun: false,
    doubts: [],
    isKnownEndpoint: true,
    otherEndpoints: [],
    overdue: [],
    looksOften: true,
    doubted: new Set(seen.rows.rows.keys()),
  };
  const done = reconcileObservation(fixture.ledger, seen.rows, seen.leases, options, NO_WAIT);
  for await (const { note } of done) {
    expect(note ?? '').not.toMatch(/expected|cannot|more than can be counted/);
  }
}

function shownAs(world: World, lease: Held, fixture: LedgerFixture): ShownLease {
  const { project: projectId } = fixture;
  const id = String(fixture.named({ id: lease.id }).id);
  const { user: userId, min, max, hosts, start, end } = lease;
  const { name, reservations: [reservation] = [] } = sent(world, lease, hosts);
  const listed = { id: 'r1', resource_type: 'physical:host', min, max };
  const given = [{ ...reservation, min: hosts, max: hosts }];
  const micro = (at: number) => BigInt(at) * MICROSECONDS_PER_SECOND;
  const dates = { start: micro(start), end: micro(end) };
  const state = {
    inUseAt: undefined,
    createdAt: undefined,
    hasChangedResources: false,
    isCreating: false,
    isChanging: false,
    isEmpty: false,
  };
  return { id, name: String(name), projectId, userId, ...dates, ...state, reservations: [listed], given };
}

async function createLease(
  world: World,
  fixture: LedgerFixture,
  {
    user,
    counts,
    found,
    start,
    hours,
    isDone,
    ownId,
  }: typeof create extends fc.Arbitrary<infer V> ? V : never,
  touched: Set<string>,
): Promise<void> {
  const { blazar } = world;
  const from = Math.max(BEGIN + start * HOUR, world.now);
  const { min, more } = counts;
  const hosts = min + Math.min(found, more);
  const wanted = { user, min, max: min + more, start: from, end: from + hours * HOUR, hosts };
  const isTaken = ownId !== undefined && (touched.has(ownId) || blazar.leases.has(ownId));
  if (ownId !== undefined) {
    touched.add(ownId);
  }
  const { refusal } = await fixture.create(asSent({ ...wanted, id: ownId }, hostIds(hosts)), user);
  if (refusal === undefined && isDone && !isTaken) {
    blazar.add({ ...wanted, id: ownId ?? blazar.newId(), status: 'PENDING', createdAt: world.now });
  } else if (refusal === undefined) {
    world.unheard += 1;
  }
}

async function changeLease(
  world: World,
  fixture: LedgerFixture,
  lease: Held,
  { later, longer, counts, found, outcome }: typeof change extends fc.Arbitrary<infer V> ? V : never,
): Promise<void> {
  const { blazar, now } = world;
  const hasBegun = lease.start < now;
  const start = lease.start + (hasBegun ? 0 : later * HOUR);
  const end = Math.max(start + 1, now + 1, lease.end + (hasBegun ? 0 : later * HOUR) + longer * HOUR);
  const min = counts?.min ?? lease.min;
  const max = counts === null ? lease.max : min + counts.more;
  const current = sent(world, lease, lease.hosts);
  const asked = sent(world, { ...lease, start, end }, lease.hosts);
  // Those that the lease has are never among the candidates: they are not free.
  const allocations = hostIds(Math.min(max, min + found)).map((host) => ({ id: `free-${host}` }));
  const reservations =
    counts === null
      ? asked.reservations
      : [{ id: `r-${lease.id}`, resource_type: 'physical:host', min, max, allocations }];
  const { refusal } = await fixture.update(
    current,
    { ...asked, ...(reservations && { reservations }) },
    lease.user,
  );
  const isSame = counts === null && start === lease.start && end === lease.end;
  // What changes nothing takes nothing.
  expect(isSame && lease.hosts === lease.max ? refusal : undefined).toBeUndefined();
  if (refusal !== undefined || outcome === 'refused') {
    return;
  }
  // Where neither counts are named nor a second is added, Blazar looks for nothing. Else it takes what it finds.
  const isWithin = start >= lease.start && end <= lease.end;
  const hosts = counts === null && isWithin ? lease.hosts : Math.min(max, Math.max(min, lease.hosts + found));
  const kept = { hosts, min, max };
  blazar.change(lease.id, now, outcome === 'done' ? { ...kept, start, end } : kept);
}

/** As Blazar sends a lease, under the name that it has by now. */
function sent({ renamed }: World, lease: Held, hosts: number): Lease {
  return { ...asSent(lease, hostIds(hosts)), ...(renamed.has(lease.id) && { name: 'renamed' }) };
}

function remove({ blazar, now }: World, { id }: Held): void {
  blazar.stop(id, now);
  blazar.remove(id);
}

function pass(world: World, seconds: number, fixtures: readonly LedgerFixture[]): void {
  world.now += seconds;
  for (const fixture of fixtures) {
    fixture.now = new Date(world.now * 1000).toISOString();
  }
  for (const lease of world.blazar.live.filter(({ end }) => end <= world.now)) {
    // The ledger sees that its time is over, or hears nothing where it was asked for a longer one.
    world.unheard += 1;
    remove(world, lease);
  }
}

async function giveBudgets(fixture: LedgerFixture): Promise<void> {
  for (const { user: userId, from, until, hours } of WINDOWS) {
    const valid = { validFrom: BigInt(from), validUntil: BigInt(until) };
    const wanted = {
      projectId: fixture.project,
      userId,
      ...valid,
      amount: BigInt(hours * HOUR) * HOST_SECOND,
    };
    await setBudget(fixture.ledger, wanted, { who: 'operator', reason: null }, NO_WAIT);
  }
}

async function judge({ blazar, now }: World, fixture: LedgerFixture): Promise<void> {
  const budgets = await listBudgets(fixture.ledger, fixture.project, NO_WAIT);
  for (const window of WINDOWS) {
    const budget = budgets.find(
      ({ userId, validFrom }) => userId === window.user && validFrom === BigInt(window.from),
    );
    const cost = BigInt(blazar.cost(window, now)) * HOST_SECOND;
    expect(cost).toBeLessThanOrEqual(budget?.taken ?? 0n);
    expect(budget?.taken).toBeLessThanOrEqual(budget?.amount ?? 0n);
  }
  expect(blazar.live.length).toBeLessThanOrEqual(MOST);
  expect(BigInt(blazar.live.length)).toBeLessThanOrEqual(await fixture.count());
}

/** Everything ends, and what is left is of leases of which nobody has heard. */
async function finish(world: World, fixture: LedgerFixture): Promise<void> {
  for (const lease of world.blazar.live) {
    await fixture.end(sent(world, lease, lease.hosts), lease.user);
    remove(world, lease);
  }
  await judge(world, fixture);
  const open = (await fixture.rows('leases')).filter(
    ({ state, ends_at }) => state === 'open' && ends_at > BigInt(world.now) * MICROSECONDS_PER_SECOND,
  );
  expect(open.length).toBeLessThanOrEqual(world.unheard);
  expect((await verifyLedger(fixture.ledger, NO_WAIT)).differences).toEqual([]);
}

function second(text: string): number {
  return Number((toInstant(text) ?? 0n) / MICROSECONDS_PER_SECOND);
}
