/** The parts of a source that follows a cluster: each can be tried without the others. */
import type { Wait } from '../../../base/deadline.ts';
import type { Account } from '../../policies/access.ts';
import type { InvalidPolicy, SchedulingPolicy } from '../../policies/policy.ts';
import type { ApiObject } from '../api/contract.ts';

/** Hears what a list and a watch of one kind of object say. Never throws. */
export interface ObjectListener {
  /** All objects there are: at the start, and whenever the watch could not go on where it was. */
  replaced(objects: readonly ApiObject[]): void;
  changed(object: ApiObject): void;
  removed(object: ApiObject): void;
}

export interface Following {
  /** Whether a whole list was read since the start. */
  readonly hasList: boolean;
  /** When it was last certain that nothing is missing, as `elapsed()`. `undefined` = never. */
  readonly currentAt: number | undefined;
  /** Why not now; `undefined` = all is well. Generic words, cause and server, no secrets: it is shown by `/readyz` and in the log. */
  readonly problem: string | undefined;
}

export interface Followed {
  /** `currentAt` and `hasList` change only after the listener has heard what they rest on. */
  readonly following: Following;
  start(): void;
  close(): Promise<void>;
}

/** Begins nothing yet: `start` does. */
export type Follow = (path: string, listener: ObjectListener) => Followed;

export interface LivePolicy {
  readonly name: string;
  readonly uid: string;
  /** Of the object that the cluster has now. */
  readonly generation: number;
  /** Of that object. It changes with its status too. */
  readonly resourceVersion: string;
  /** The status of that object, as it came: anybody with the right may have written it. */
  readonly status: unknown;
  /** Why that object is not valid; `undefined` = it is. */
  readonly mistake: string | undefined;
  /** What is in force. `undefined` = nothing: it has never been valid since the service started. */
  readonly enforcedGeneration: number | undefined;
  /** What an export of what is in force leaves out: a sentence for each. */
  readonly leftOut: readonly string[];
}

/** All policies of the cluster at one moment. Configurations that merge in different ways each build a `PolicySet` from it. */
export interface KnownPolicies {
  /** Of valid and invalid ones, sorted. The same array for as long as the names stay the same, whatever changes in the policies. */
  readonly names: readonly string[];
  /** In their last good form. */
  readonly policies: readonly SchedulingPolicy[];
  readonly invalid: readonly InvalidPolicy[];
}

/** The policies that a watch has told of, in their last good form. */
export interface LivePolicies {
  /** A new one after each change that is in force; the same one otherwise. */
  readonly known: KnownPolicies;
  /** By name. */
  readonly policies: ReadonlyMap<string, LivePolicy>;
  readonly following: Following;
  /**
   * Calls `listener` after each change, of a status too, with the names that changed: added, changed and removed ones. The function that it
   * returns ends that: the policies outlive configurations, and would hold the listener of each.
   */
  onChange(listener: (names: readonly string[]) => void): () => void;
}

/** Who may use which policy, as the cluster says now. */
export interface UsePermissions {
  /**
   * Of these names, those that the account may use, in their order. A promise only where the API server must be asked. An answer that
   * has not changed is the same array, and `names` is the same array until names change (`KnownPolicies`): both are compared by identity.
   * Rejects with `SourceUnavailableError` if it gives no answer: then nothing may be admitted.
   */
  usable(
    account: Account,
    names: readonly string[],
    wait?: Wait,
  ): readonly string[] | Promise<readonly string[]>;
}

/** How a source does, for `/readyz`, metrics and the log. */
export interface SourceHealth {
  readonly state: 'starting' | 'current' | 'behind' | 'stale';
  /** Since when nothing is certain any more, in seconds; 0 = it is current. `undefined` = no list was read yet. */
  readonly ageSeconds: number | undefined;
  /** Why it is not current. */
  readonly problem: string | undefined;
}
