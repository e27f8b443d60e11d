/** Expected decisions for most tests of filters and policies, for `toMatchObject`. */
export const ALLOWED = { allowed: true, failed: false };
export const UNCHANGED = { ...ALLOWED, changed: false };
export const REJECTED = { allowed: false, failed: false };
/** The filter or policy failed: the request is refused for safety. */
export const UNCHECKED = { allowed: false, failed: true };

/** Rejected by a filter or policy that did not fail. `message`: a text, or an asymmetric matcher. */
export function rejectedWith(message: unknown): object {
  return { ...REJECTED, message };
}
