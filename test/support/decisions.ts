/** What most tests of filters expect of a decision, for `toMatchObject`. */
export const ALLOWED = { allowed: true };
export const REJECTED = { allowed: false };

/** By a filter that has judged the lease: none has failed. `message`: a text, or what vitest compares with one. */
export function rejectedWith(message: unknown): object {
  return { allowed: false, failed: false, message };
}
