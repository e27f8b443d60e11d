/** What most tests of filters and policies expect of a decision, for `toMatchObject`. */
export const ALLOWED = { allowed: true, failed: false };
export const UNCHANGED = { ...ALLOWED, changed: false };
export const REJECTED = { allowed: false, failed: false };
/** The filter or policy could not judge: the request is refused for safety. */
export const UNCHECKED = { allowed: false, failed: true };

/** By one that has judged the request: none has failed. `message`: a text, or what vitest compares with one. */
export function rejectedWith(message: unknown): object {
  return { ...REJECTED, message };
}
