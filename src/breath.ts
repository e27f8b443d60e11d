/** Long work that lets other requests have their turn. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** The longest time without a turn for others, in milliseconds. */
const TURN_MS = 8;

/** Call the result between small pieces of work: it waits for others when it is their turn. */
export function breathing(): () => Promise<void> | undefined {
  let began = performance.now();
  return () =>
    performance.now() - began < TURN_MS
      ? undefined
      : nextTurn().then(() => {
          began = performance.now();
        });
}
