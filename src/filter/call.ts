/** The circumstances in which a hook of a filter is called. */
import type { Wait } from '../base/deadline.ts';

/** The circumstances of a call of a hook. */
export interface Call {
  /** Fires when the answer is no longer awaited. Pass it to everything that you wait for. */
  readonly signal?: AbortSignal | undefined;
  /** The deadline behind `signal`, for code that checks the time without waiting. */
  readonly wait?: Wait | undefined;
  /** The same in all calls for one request, and different for every other request. */
  readonly requestKey?: string | undefined;
  /** For a request with an `Idempotency-Key`, which may have been sent before. */
  readonly repetition?: Repetition | undefined;
  /** Missing unless `[keystone] resolve_names` is true. */
  readonly names?: RequestNames | undefined;
  /** For an end that undoes a commit: the call of that commit. */
  readonly undoes?: Call | undefined;
}

/** Distinguishes a request that is sent again from another one that looks the same. */
export interface Repetition {
  /** The `Idempotency-Key`. */
  readonly key: string;
  /** A digest of the request. A different request with the same key is not a repetition. */
  readonly content: string;
}

/** The names that Keystone has for the ids of a request, as far as they are known. */
export interface RequestNames {
  readonly project?: (Named & { readonly tags: readonly string[] }) | undefined;
  readonly user?: Named | undefined;
}

export interface Named {
  readonly name: string;
  /** The name of its domain; empty if it is not known. */
  readonly domain: string;
}
