/** Lets long work yield to other requests. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Maximum time without yielding, in milliseconds. */
const TURN_MS = 4;
/** Pending work gets this many times as long as the long work. */
const SHARE = 4;
/** Longer work counts as this long: the rest was waiting. In milliseconds. */
const LONGEST_WORK_MS = 25;
/** Shorter event loop turns ran no other work, in milliseconds. */
const IDLE_MS = 0.05;

/** Long work that waits to continue, in this order. */
const waiting: (() => void)[] = [];
let isGivingTurns = false;

/**
 * Call the result between small pieces of work: it waits for other work when the time is up. All long work
 * takes turns: others wait for one piece at a time, however much there is. Do not nest such loops: each would
 * count the other's waiting as work.
 */
export function timedYield(): () => Promise<void> | undefined {
  let began = performance.now();
  const others = async () => {
    await yieldToEventLoop(performance.now() - began);
    began = performance.now();
  };
  return () => (performance.now() - began < TURN_MS ? undefined : others());
}

/** Resolves when neither other work nor other long work is due. `worked`: how long the caller just worked, in ms. */
export function yieldToEventLoop(worked = 0): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (!isGivingTurns) {
      isGivingTurns = true;
      void giveTurns(worked);
    }
  });
}

async function giveTurns(first: number): Promise<void> {
  let worked = first;
  while (waiting.length > 0) {
    await turnsOfOthers(worked);
    const began = performance.now();
    waiting.shift()?.();
    // The piece of work runs before this turn ends.
    await nextTurn();
    worked = performance.now() - began;
  }
  isGivingTurns = false;
}

/** Waits until other work had its share, or nothing is pending. */
async function turnsOfOthers(worked: number): Promise<void> {
  let now = performance.now();
  const until = now + SHARE * Math.min(worked, LONGEST_WORK_MS);
  let idle = 0;
  while (now < until && idle < 3) {
    await nextTurn();
    const turn = performance.now() - now;
    now += turn;
    idle = turn < IDLE_MS ? idle + 1 : 0;
  }
}
