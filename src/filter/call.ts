/** The circumstances of a filter hook's call. */
import { type Wait, waitFor } from '../base/deadline.ts';

/** The circumstances of a hook's call. */
export interface Call {
  /** Fires when the answer is no longer needed. Pass it to everything that you wait for. */
  readonly signal?: AbortSignal | undefined;
  /** The deadline behind `signal`, for code that checks the time without waiting. */
  readonly wait?: Wait | undefined;
  /** The same in all calls for one request, different for every other request. */
  readonly requestKey?: string | undefined;
  /** For a request with an `Idempotency-Key`, which may be a repetition. */
  readonly repetition?: Repetition | undefined;
  /** Missing unless `[keystone] resolve_names` is true. */
  readonly names?: RequestNames | undefined;
  /** For an end that undoes a commit: the call of that commit. */
  readonly undoes?: Call | undefined;
}

/** Distinguishes a repeated request from another one that looks the same. */
export interface Repetition {
  /** The `Idempotency-Key`. */
  readonly key: string;
  /** A digest of the request. A different request with the same key is no repetition. */
  readonly content: string;
}

/** Keystone's names for the ids of a request, as far as known. */
export interface RequestNames {
  readonly project?: (Named & { readonly tags: readonly string[] }) | undefined;
  readonly user?: Named | undefined;
}

export interface Named {
  readonly name: string;
  /** The name of its domain; empty if unknown. */
  readonly domain: string;
}

export function waitOf({ wait, signal }: Call): Wait {
  return wait ?? waitFor(signal);
}
