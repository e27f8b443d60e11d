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

/**
 * Call the result between small pieces of work: it waits for others when it is their turn. Not within a loop that breathes already: each of
 * the two would take the other's waiting for work.
 */
export function breathing(): () => Promise<void> | undefined {
  let began = performance.now();
  const others = async () => {
    const since = performance.now();
    const until = since + SHARE * Math.min(since - began, LONGEST_WORK_MS);
    let now = since;
    let idle = 0;
    while (now < until && idle < 3) {
      await nextTurn();
      const turn = performance.now() - now;
      now += turn;
      idle = turn < IDLE_MS ? idle + 1 : 0;
    }
    began = now;
  };
  return () => (performance.now() - began < TURN_MS ? undefined : others());
}
