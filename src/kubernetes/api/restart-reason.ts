import type { RestartReason } from './contract.ts';
import { isExpired } from './list.ts';

/** A watch is overdue. */
export class SilentError extends Error {}

export function reasonOf(thrown: unknown): RestartReason {
  return thrown instanceof SilentError ? 'silent' : isExpired(thrown) ? 'expired' : 'failed';
}
