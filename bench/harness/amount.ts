/** Set for subject processes that only verify that they work. */
const VARIABLE = 'BENCH_QUICK';

/** Sets it for this process and its children. */
export function beQuick(): void {
  process.env[VARIABLE] = '1';
}

/** A subject's work in a batch. `quick`: the minimum that verifies it. Call it in the subject's process. */
export function amount(full: number, quick: number): number {
  return process.env[VARIABLE] === undefined ? full : quick;
}
