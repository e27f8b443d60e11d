import { setTimeout as pause } from 'node:timers/promises';
import type { LivePolicies } from './contract.ts';

const LOOK_MS = 50;

/** Waits for the first list of policies. Resolves to whether it is there, before the time is over or `signal` fires. Keeps no process alive. */
export async function isListedWithin(
  policies: LivePolicies,
  milliseconds: number,
  signal: AbortSignal,
): Promise<boolean> {
  const until = performance.now() + milliseconds;
  while (!policies.following.hasList) {
    if (performance.now() >= until) {
      return false;
    }
    await pause(LOOK_MS, undefined, { signal, ref: false }).catch(() => {});
    if (signal.aborted) {
      return false;
    }
  }
  return true;
}
