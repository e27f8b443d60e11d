import type { Lease } from '../../lease/lease.ts';
import type { Suggestion } from './contract.ts';
import type { Line } from './nearest.ts';

/** A way in which a lease can be changed, step by step. */
export interface Way {
  readonly change: Suggestion['change'];
  readonly line: Line;
  leaseAt(step: number): Lease;
  /** How much of the wish is lost, from 0 to 1: to compare ways. */
  lossAt(step: number): number;
  /** For people. */
  textAt(step: number): string;
  /** A step that stays allowed for longer than this one, if it is allowed. Default: none. */
  easier?(step: number): number | undefined;
}
