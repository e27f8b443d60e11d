/** Tells the processes of the subjects that only their way is tried. */
const VARIABLE = 'BENCH_QUICK';

/** For this process and those that it starts. */
export function beQuick(): void {
  process.env[VARIABLE] = '1';
}

/** How much a subject does in a batch. `quick`: the least that shows that it works. Call it in the process of the subject. */
export function amount(full: number, quick: number): number {
  return process.env[VARIABLE] === undefined ? full : quick;
}
