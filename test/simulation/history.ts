/** One history from a seed: what happens at random, then quiet, then what is left must be the truth. */
import { vi } from 'vitest';
import { errorText } from '../../src/base/errors.ts';
import { foldLeases } from '../../src/ledger/folding/fold.ts';
import { NO_WAIT } from '../support/ledgers.ts';
import { changeUnasked, create, end, update } from './clients.ts';
import { GRACE } from './follower.ts';
import { type Budget, Promises } from './promises.ts';
import { Chance } from './schedule.ts';
import { type Ground, SYNCHRONIZED, World } from './world.ts';

const HOUR = 3600;
/** Leases that ended so long ago may be folded, in seconds. */
const FOLDED_AFTER = 1800;
/** How long Blazar waits for an answer, in seconds. */
const PATIENCE = 60;
/** The steps of a whole history, by number. */
const STEPS: readonly number[] = Array.from({ length: 120 }, (_, step) => step);

export interface History {
  readonly seed: number;
  /** The steps that were made, up to the one that broke a promise. */
  readonly steps: readonly number[];
  /** The broken promise; `undefined` = all were kept. */
  readonly broken: string | undefined;
  /** What happened: seconds of virtual time, and who did what. */
  readonly lines: readonly string[];
}

export type HistoryGround = Ground & { readonly budgets: readonly Budget[] };

/** Runs the history of a seed, or some of its steps. Timers and `Math.random` are those of the history meanwhile. */
export async function runHistory(
  ground: HistoryGround,
  seed: number,
  steps: readonly number[] = STEPS,
): Promise<History> {
  const chance = new Chance(seed);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
  const random = vi.spyOn(Math, 'random').mockImplementation(() => chance.next());
  const world = await World.open(ground, chance);
  const promises = new Promises(ground.file, ground.budgets);
  const { lines } = world;
  const made: number[] = [];
  try {
    for (const step of steps) {
      made.push(step);
      chance.beginStep(step);
      await happen(world);
      promises.atEachStep(world);
    }
    chance.beginStep(STEPS.length);
    await becomeQuiet(world, promises);
    await promises.whenQuiet(world);
    return { seed, steps: made, broken: undefined, lines };
  } catch (thrown) {
    return { seed, steps: made, broken: errorText(thrown), lines };
  } finally {
    promises.close();
    for (const replica of world.replicas) {
      replica.crash();
    }
    random.mockRestore();
    vi.useRealTimers();
  }
}

type Deed = (world: World) => void | Promise<void>;

const DEEDS: readonly (readonly [weight: number, deed: Deed])[] = [
  [30, (world) => world.schedule.release(world.chance.pick([1, 1, 2, 3, 6]))],
  [4, (world) => began(world, create(world))],
  [3, (world) => began(world, update(world))],
  [2, (world) => began(world, end(world))],
  [2, (world) => compare(world)],
  [2, (world) => (world.mayNotAsk ? changeUnasked(world) : undefined)],
  [0.5, (world) => fold(world)],
  // Where clocks are wrong, while leases are being built.
  [3, (world) => (world.skew > SYNCHRONIZED ? compare(world) : world.schedule.release())],
  [2, (world) => passShort(world)],
  [2, (world) => passLong(world)],
  [0.5, (world) => crashSome(world)],
  [0.5, (world) => freezeSome(world)],
  [0.5, (world) => jumpSome(world)],
  [
    0.5,
    (world) => {
      world.isServiceDown = !world.isServiceDown;
    },
  ],
];
const WEIGHTS = DEEDS.reduce((sum, [weight]) => sum + weight, 0);

async function happen(world: World): Promise<void> {
  let dice = world.chance.next() * WEIGHTS;
  for (const [weight, deed] of DEEDS) {
    dice -= weight;
    if (dice < 0) {
      await deed(world);
      break;
    }
  }
  await world.schedule.settle();
}

function began(world: World, work: Promise<unknown>): void {
  world.measured += 1;
  world.begins(work);
}

function compare(world: World): void {
  const replica = world.chance.some(world.replicas.filter(({ mayGo }) => mayGo));
  if (replica !== undefined) {
    // The command goes by clocks alone.
    const isByHand = !world.isQuiet && world.skew <= SYNCHRONIZED && world.chance.happens(0.2);
    world.begins(
      world.follower.round(replica, isByHand).then((done) => {
        for (const { outcome, leaseId, row, note, userId, start, end } of done ?? []) {
          if (outcome === 'released') {
            const [from, until] = [Number(start / 1_000_000n), Number(end / 1_000_000n)];
            world.released.push({ id: leaseId, user: userId ?? '', start: from, end: until });
          }
          world.measured += outcome === 'left' ? 0 : 1;
          world.corrected += outcome === 'corrected' ? 1 : 0;
          world.log(`${replica.name} compares: ${outcome} ${leaseId ?? row}: ${note}`);
        }
      }),
    );
  }
}

/** `ledger compact`, beside the services. */
function fold(world: World): void {
  const replica = world.chance.some(world.replicas.filter(({ mayGo }) => mayGo));
  if (replica === undefined) {
    return;
  }
  const until = BigInt(world.now - FOLDED_AFTER - world.skew) * 1_000_000n;
  const keep = () => world.schedule.turn(replica, 'keeps what is folded');
  const folding = foldLeases(replica.ledger, { until, keep }, NO_WAIT).then(
    ({ leases }) => world.log(`${replica.name} folds ${leases} leases`),
    (thrown: unknown) => world.log(`${replica.name} cannot fold: ${errorText(thrown)}`),
  );
  world.begins(Promise.race([folding, replica.gone]));
}

/** Time goes by while requests are under way. */
async function passShort(world: World): Promise<void> {
  await pass(world, world.building.size > 0 ? 1 : world.chance.pick([1, 5, PATIENCE / 2]));
}

/** Hours go by: whatever was under way is over by then. */
async function passLong(world: World): Promise<void> {
  await finishWork(world);
  await pass(world, world.chance.pick([GRACE / 2, GRACE + 60, HOUR, 3 * HOUR]));
}

/** Every request is answered, or nobody waits for its answer any more. */
async function finishWork(world: World): Promise<void> {
  for (let turns = 0; world.underWay > 0 && turns < 10_000; turns += 1) {
    if (world.schedule.isIdle) {
      for (const replica of world.replicas) {
        if (replica.isFrozen) {
          replica.lose();
          await world.schedule.settle();
        }
      }
      if (world.schedule.isIdle) {
        thaw(world);
        await tick(world);
      }
    }
    await world.schedule.release();
  }
  world.throwIfFailed();
  if (world.underWay > 0) {
    throw new Error(`something hangs: ${world.underWay}`);
  }
}

async function pass(world: World, seconds: number): Promise<void> {
  world.now += seconds;
  await tick(world, Math.min(seconds, 3));
  for (const lease of world.blazar.live) {
    if (lease.end <= world.now && !world.busy.has(lease.id)) {
      world.measured += 1;
      world.begins(end(world, lease));
    }
  }
  await world.schedule.settle();
}

/** Timers go off. After hours they do so for a few seconds only, as after a suspension. */
async function tick(world: World, seconds = 1): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    vi.advanceTimersByTime(1000);
    await (world.isQuiet ? drain(world) : world.schedule.settle());
  }
}

async function crashSome(world: World): Promise<void> {
  const replica = world.hasCrashes ? world.chance.some(world.replicas) : undefined;
  if (replica !== undefined) {
    world.log(`${replica.name} crashes`);
    // A commit in doubt is forgotten, and so is a lease that nobody was told of.
    world.unknown += 1;
    replica.crash();
    world.replicas.splice(world.replicas.indexOf(replica), 1);
    await world.startReplica();
  }
}

function freezeSome(world: World): void {
  const replica = world.chance.some(world.replicas);
  if (replica !== undefined && world.hasCrashes) {
    replica.isFrozen = !replica.isFrozen;
    world.log(`${replica.name} ${replica.isFrozen ? 'freezes' : 'goes on'}`);
  }
}

function jumpSome(world: World): void {
  if (world.skew > 0) {
    world.jump();
  }
}

function thaw(world: World): void {
  for (const replica of world.replicas) {
    replica.isFrozen = false;
  }
}

/** Every fault is over, and the ledger is compared until it must have found everything. */
async function becomeQuiet(world: World, promises: Promises): Promise<void> {
  world.isQuiet = true;
  world.isServiceDown = false;
  thaw(world);
  for (const replica of world.replicas) {
    replica.isFaulty = false;
  }
  world.setClocks();
  world.log('it becomes quiet');
  await rest(world);
  for (let round = 0; round < 4; round += 1) {
    await finishWork(world);
    await pass(world, GRACE + world.skew + 60);
    await finishWork(world);
    compare(world);
    await finishWork(world);
    promises.atEachStep(world);
  }
  await rest(world);
}

/** A service that was away is left alone for minutes. */
async function rest(world: World): Promise<void> {
  for (let times = 0; times < (world.hasService ? 4 : 1); times += 1) {
    vi.advanceTimersByTime(320_000);
    await drain(world);
  }
}

/** Whoever waits for a turn gets it. */
async function drain(world: World): Promise<void> {
  await world.schedule.settle();
  while (!world.schedule.isIdle) {
    await world.schedule.release();
  }
}
