/** Where the policies of an account come from: files, or a cluster. */
import type { Wait } from '../../base/deadline.ts';
import type { Account } from './access.ts';
import type { EffectivePolicy } from './effective-policy.ts';

/** The policies that one account may use, at one moment. */
export interface AccountPolicies {
  /** Names, sorted. */
  readonly names: readonly string[];
  /** All of them, merged. */
  readonly all: EffectivePolicy;
  /** Merged without the named ones. */
  without(names: ReadonlySet<string>): EffectivePolicy;
}

export interface PolicySource {
  /**
   * A promise only where a cluster must be asked first: most answers are known, and waiting for one costs as much as a review.
   * Rejects with `SourceUnavailableError` if it cannot be known which policies apply: then nothing may be admitted.
   */
  policiesOf(account: Account, wait?: Wait): AccountPolicies | Promise<AccountPolicies>;
}

/** It cannot be known which policies apply. The message is for the log: it may name the API server. */
export class SourceUnavailableError extends Error {
  override readonly name = 'SourceUnavailableError';
}
