/** How many workers there are, and which part of a limit each of them has. */
import { availableParallelism } from 'node:os';

/** Each has a copy of the configuration, and connections of its own to the ledger. */
const MAX_WORKERS = 64;

/** The part of the service that one process is. */
export interface Share {
  /** 1 is the first. */
  readonly number: number;
  readonly of: number;
}

export const ALONE: Share = { number: 1, of: 1 };

/** `workers`: the value of `[service] workers`. `auto`: as many as this process may use cores at the same time. */
export function workerCount(workers: string, cores = availableParallelism()): number {
  return workers === 'auto' ? Math.min(cores, MAX_WORKERS) : Number(workers);
}

/** The parts of all workers are the limit together, and differ by one at most. */
export function shareOf(limit: number, { number, of }: Share): number {
  return Math.floor(limit / of) + (number <= limit % of ? 1 : 0);
}
