/** Long work that lets other requests have their turn. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** The longest time without a turn for others, in milliseconds. */
const TURN_MS = 4;
/** While others have work, they get so many times as long. */
const SHARE = 4;
/** What took longer was spent waiting: others had their turns meanwhile. In milliseconds. */
const LONGEST_WORK_MS = 25;
/** A turn without work of others is shorter, in milliseconds. */
const IDLE_MS = 0.05;

/** Long work that waits for its turn, in this order. */
const waiting: (() => void)[] = [];
let isGivingTurns = false;

/**
 * Call the result between small pieces of work: it waits for others when it is their turn. Long work takes turns with each other too: however
 * much there is of it, others wait for one piece. Not within a loop that yields already: each of the two would take the other's waiting
 * for work.
 */
export function timedYield(): () => Promise<void> | undefined {
  let began = performance.now();
  const others = async () => {
    await yieldToEventLoop(performance.now() - began);
    began = performance.now();
  };
  return () => (performance.now() - began < TURN_MS ? undefined : others());
}

/** Resolves when neither others nor other long work has a turn. `worked`: how long the caller has just worked, in milliseconds. */
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
    // The piece of work runs before the turn is over.
    await nextTurn();
    worked = performance.now() - began;
  }
  isGivingTurns = false;
}

/** Until others have had their share, or have nothing to do. */
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
