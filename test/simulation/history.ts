/** One history from a seed: what happens at random, then quiet, then what is left must be the truth. */
import { vi } from 'vitest';
import { errorText } from '../../src/base/errors.ts';
import { foldLeases } from '../../src/ledger/folding/fold.ts';
import { NO_WAIT } from '../support/ledgers.ts';
import { changeWithoutAsking, create, end, failToEnd, update } from './clients.ts';
import { GRACE } from './follower.ts';
import { type Budget, Promises } from './promises.ts';
import { Chance } from './schedule.ts';
import { type SharedServices, Site, SYNCHRONIZED } from './site.ts';

const HOUR = 3600;
const OVERDUE = 'Blazar has not ended it';
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

export type HistoryServices = SharedServices & { readonly budgets: readonly Budget[] };

/** Runs the history of a seed, or some of its steps. Timers and `Math.random` are those of the history meanwhile. */
export async function runHistory(
  shared: HistoryServices,
  seed: number,
  steps: readonly number[] = STEPS,
): Promise<History> {
  const chance = new Chance(seed);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
  const random = vi.spyOn(Math, 'random').mockImplementation(() => chance.next());
  const site = await Site.open(shared, chance);
  const promises = new Promises(shared.file, shared.budgets);
  const { lines } = site;
  const made: number[] = [];
  try {
    for (const step of steps) {
      made.push(step);
      chance.beginStep(step);
      await happen(site);
      promises.atEachStep(site);
    }
    chance.beginStep(STEPS.length);
    await becomeQuiet(site, promises);
    await promises.whenQuiet(site);
    return { seed, steps: made, broken: undefined, lines };
  } catch (thrown) {
    return { seed, steps: made, broken: errorText(thrown), lines };
  } finally {
    promises.close();
    for (const replica of site.replicas) {
      replica.crash();
    }
    random.mockRestore();
    vi.useRealTimers();
  }
}

type Action = (site: Site) => void | Promise<void>;

const ACTIONS: readonly (readonly [weight: number, action: Action])[] = [
  [30, (site) => site.schedule.release(site.chance.pick([1, 1, 2, 3, 6]))],
  [4, (site) => began(site, create(site))],
  [3, (site) => began(site, update(site))],
  [2, (site) => began(site, end(site))],
  [2, (site) => compare(site)],
  [2, (site) => (site.mayNotAsk ? changeWithoutAsking(site) : undefined)],
  [0.5, (site) => fold(site)],
  // Where clocks are wrong, while leases are being built.
  [3, (site) => (site.skew > SYNCHRONIZED ? compare(site) : site.schedule.release())],
  [2, (site) => passShort(site)],
  [2, (site) => passLong(site)],
  [0.5, (site) => crashSome(site)],
  [0.5, (site) => freezeSome(site)],
  [0.5, (site) => jumpSome(site)],
  [
    0.5,
    (site) => {
      site.isServiceDown = !site.isServiceDown;
    },
  ],
];
const WEIGHTS = ACTIONS.reduce((sum, [weight]) => sum + weight, 0);

async function happen(site: Site): Promise<void> {
  let dice = site.chance.next() * WEIGHTS;
  for (const [weight, action] of ACTIONS) {
    dice -= weight;
    if (dice < 0) {
      await action(site);
      break;
    }
  }
  await site.schedule.settle();
}

function began(site: Site, work: Promise<unknown>): void {
  site.measured += 1;
  site.begins(work);
}

function compare(site: Site): void {
  const replica = site.chance.some(site.replicas.filter(({ mayGo }) => mayGo));
  if (replica !== undefined) {
    // The command goes by clocks alone.
    const isByHand = !site.isQuiet && site.skew <= SYNCHRONIZED && site.chance.happens(0.2);
    site.begins(
      site.follower.round(replica, isByHand).then((done) => {
        for (const { outcome, leaseId, row, note, userId, start, end } of done ?? []) {
          if (outcome === 'released') {
            const from = Number(start / 1_000_000n);
            const until = Number(end / 1_000_000n);
            site.released.push({ id: leaseId, user: userId ?? '', start: from, end: until });
          }
          site.measured += outcome === 'left' ? 0 : 1;
          site.corrected += outcome === 'corrected' && note !== OVERDUE ? 1 : 0;
          site.log(`${replica.name} compares: ${outcome} ${leaseId ?? row}: ${note}`);
        }
      }),
    );
  }
}

/** `ledger compact`, beside the services. */
function fold(site: Site): void {
  const replica = site.chance.some(site.replicas.filter(({ mayGo }) => mayGo));
  // A lease that Blazar does not end is changed more often than that: its row is not as old as those that are folded.
  if (replica === undefined || site.blazar.live.some(({ isOverdue }) => isOverdue === true)) {
    return;
  }
  const until = BigInt(site.now - FOLDED_AFTER - site.skew) * 1_000_000n;
  const keep = () => site.schedule.turn(replica, 'keeps what is folded');
  const folding = foldLeases(replica.ledger, { until, keep }, NO_WAIT).then(
    ({ leases }) => site.log(`${replica.name} folds ${leases} leases`),
    (thrown: unknown) => site.log(`${replica.name} cannot fold: ${errorText(thrown)}`),
  );
  site.begins(Promise.race([folding, replica.gone]));
}

/** Time goes by while requests are under way. */
async function passShort(site: Site): Promise<void> {
  await pass(site, site.building.size > 0 ? 1 : site.chance.pick([1, 5, PATIENCE / 2]));
}

/** Hours go by: whatever was under way is over by then. */
async function passLong(site: Site): Promise<void> {
  await finishWork(site);
  await pass(site, site.chance.pick([GRACE / 2, GRACE + 60, HOUR, 3 * HOUR]));
}

/** Every request is answered, or nobody waits for its answer any more. */
async function finishWork(site: Site): Promise<void> {
  for (let turns = 0; site.underWay > 0 && turns < 10_000; turns += 1) {
    if (site.schedule.isIdle) {
      for (const replica of site.replicas) {
        if (replica.isFrozen) {
          replica.lose();
          await site.schedule.settle();
        }
      }
      if (site.schedule.isIdle) {
        thaw(site);
        // A lock of a dead replica expires.
        await pass(site, 1);
      }
    }
    await site.schedule.release();
  }
  site.throwIfFailed();
  if (site.underWay > 0) {
    throw new Error(`something hangs: ${site.underWay}`);
  }
}

async function pass(site: Site, seconds: number): Promise<void> {
  site.now += seconds;
  await tick(site, Math.min(seconds, 3));
  for (const lease of site.blazar.live) {
    if (lease.end <= site.now && !site.busy.has(lease.id)) {
      const fails =
        site.failedEnds > 0 && !site.isQuiet && site.chance.happens(lease.isOverdue ? 0.7 : site.failedEnds);
      site.measured += 1;
      site.begins(!fails ? end(site, lease) : lease.isOverdue ? Promise.resolve() : failToEnd(site, lease));
    }
  }
  await site.schedule.settle();
}

/** Timers go off. After hours they do so for a few seconds only, as after a suspension. */
async function tick(site: Site, seconds = 1): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    vi.advanceTimersByTime(1000);
    await (site.isQuiet ? drain(site) : site.schedule.settle());
  }
}

async function crashSome(site: Site): Promise<void> {
  const replica = site.hasCrashes ? site.chance.some(site.replicas) : undefined;
  if (replica !== undefined) {
    site.log(`${replica.name} crashes`);
    // A commit in doubt is forgotten, and so is a lease that nobody was told of.
    site.unknown += 1;
    replica.crash();
    site.replicas.splice(site.replicas.indexOf(replica), 1);
    await site.startReplica();
  }
}

function freezeSome(site: Site): void {
  const replica = site.chance.some(site.replicas);
  if (replica !== undefined && site.hasCrashes) {
    replica.isFrozen = !replica.isFrozen;
    site.log(`${replica.name} ${replica.isFrozen ? 'freezes' : 'goes on'}`);
  }
}

function jumpSome(site: Site): void {
  if (site.skew > 0) {
    site.jump();
  }
}

function thaw(site: Site): void {
  for (const replica of site.replicas) {
    replica.isFrozen = false;
  }
}

/** Every fault is over, and the ledger is compared until it must have found everything. */
async function becomeQuiet(site: Site, promises: Promises): Promise<void> {
  site.isQuiet = true;
  site.isServiceDown = false;
  thaw(site);
  for (const replica of site.replicas) {
    replica.isFaulty = false;
  }
  site.setClocks();
  site.log('it becomes quiet');
  await rest(site);
  for (let round = 0; round < 4; round += 1) {
    await finishWork(site);
    await pass(site, GRACE + site.skew + 60);
    await finishWork(site);
    compare(site);
    await finishWork(site);
    promises.atEachStep(site);
  }
  await rest(site);
}

/** A service that was away is left alone for minutes. */
async function rest(site: Site): Promise<void> {
  for (let times = 0; times < (site.hasService ? 4 : 1); times += 1) {
    vi.advanceTimersByTime(320_000);
    await drain(site);
  }
}

/** Whoever waits for a turn gets it. */
async function drain(site: Site): Promise<void> {
  await site.schedule.settle();
  while (!site.schedule.isIdle) {
    await site.schedule.release();
  }
}
