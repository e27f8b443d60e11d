/** Arithmetic of whole seconds, in which ledgers and budgets count. */
import { type Instant, MICROSECONDS_PER_SECOND } from '../lease/dates.ts';

/** The second in which an instant lies. */
export function floor(instant: Instant): bigint {
  return instant / MICROSECONDS_PER_SECOND;
}

/** The first second that does not begin before an instant. */
export function ceil(instant: Instant): bigint {
  return (instant + MICROSECONDS_PER_SECOND - 1n) / MICROSECONDS_PER_SECOND;
}

export function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

export function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
