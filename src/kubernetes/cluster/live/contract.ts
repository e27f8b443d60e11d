/** The parts of a source that follows a cluster, testable separately. */
import type { Wait } from '../../../base/deadline.ts';
import type { Account } from '../../policies/access.ts';
import type { InvalidPolicy, SchedulingPolicy } from '../../policies/policy.ts';
import type { ApiObject } from '../api/contract.ts';

/** Called for the list and the watch of one kind of object. Never throws. */
export interface ObjectListener {
  /** All existing objects: at the start, and if the watch could not continue. */
  replaced(objects: readonly ApiObject[]): void;
  changed(object: ApiObject): void;
  removed(object: ApiObject): void;
}

export interface Following {
  /** Whether a whole list was read since the start. */
  readonly hasList: boolean;
  /** When it was last certain that nothing is missing, as `elapsed()`. `undefined` = never. */
  readonly currentAt: number | undefined;
  /**
   * Why it is not certain now; `undefined` = it is. Generic text, cause and server, no secrets: shown by
   * `/readyz` and in the log.
   */
  readonly problem: string | undefined;
}

export interface Followed {
  /** `currentAt` and `hasList` change only after the listener was called. */
  readonly following: Following;
  start(): void;
  close(): Promise<void>;
}

/** Does not start it: `start` does. */
export type Follow = (path: string, listener: ObjectListener) => Followed;

export interface LivePolicy {
  readonly name: string;
  readonly uid: string;
  /** Of the cluster's current object. */
  readonly generation: number;
  /** Of that object. It changes with its status too. */
  readonly resourceVersion: string;
  /** The unparsed status of that object: any client with the right may have written it. */
  readonly status: unknown;
  /** Why that object is not valid; `undefined` = it is. */
  readonly mistake: string | undefined;
  /** Of what is in force. `undefined` = nothing: it has never been valid since the service started. */
  readonly enforcedGeneration: number | undefined;
  /** What an export of what is in force omits: one sentence each. */
  readonly leftOut: readonly string[];
}

/** All policies of the cluster at one moment. Configurations that merge in different ways each build a `PolicySet` from it. */
export interface KnownPolicies {
  /**
   * Of valid and invalid ones, sorted. The same array while the names do not change, whatever changes in the
   * policies.
   */
  readonly names: readonly string[];
  /** In their last good form. */
  readonly policies: readonly SchedulingPolicy[];
  readonly invalid: readonly InvalidPolicy[];
}

/** The policies from a watch, in their last good form. */
export interface LivePolicies {
  /** A new one after each change that is in force; the same one otherwise. */
  readonly known: KnownPolicies;
  /** By name. */
  readonly policies: ReadonlyMap<string, LivePolicy>;
  readonly following: Following;
  /**
   * Calls `listener` after each change, also of a status, with the names that were added, changed or removed.
   * Call the returned function to stop: policies outlive configurations, and would keep each one's listener.
   */
  onChange(listener: (names: readonly string[]) => void): () => void;
}

/** Current permissions of the cluster to use policies. */
export interface UsePermissions {
  /**
   * The names of policies that the account may use, in their order. A promise only if the API server must be
   * called. An unchanged answer is the same array, and `names` is the same array until names change
   * (`KnownPolicies`): both are compared by identity. Rejects with `SourceUnavailableError` if there is no
   * answer: then nothing may be admitted.
   */
  usable(
    account: Account,
    names: readonly string[],
    wait?: Wait,
  ): readonly string[] | Promise<readonly string[]>;
}

/** The health of a source, for `/readyz`, metrics and the log. */
export interface SourceHealth {
  readonly state: 'starting' | 'current' | 'behind' | 'stale';
  /** For how many seconds nothing has been certain; 0 = current. `undefined` = no list was read yet. */
  readonly ageSeconds: number | undefined;
  /** Why it is not current. */
  readonly problem: string | undefined;
}
