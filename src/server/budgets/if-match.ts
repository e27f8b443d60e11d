/** `If-Match`: which version of a budget a person has seen. Source: RFC 9110, 13.1.1; RFC 6585, 3. */
import { ApiError } from '../api/route.ts';

/**
 * The version in the ETag. `*` is refused like a missing one: it would change what somebody else has just set.
 *
 * @throws ApiError 428 = it is missing; 400 = it is no ETag; 412 = it cannot be that of a budget
 */
export function seenVersion(header: string): string {
  const field = 'If-Match';
  const text = header.trim();
  if (text === '' || text === '*') {
    throw new ApiError(428, 'expected the header If-Match with the ETag of the budget as you have seen it', {
      field,
    });
  }
  const [, weak, version] = /^(W\/)?"([\x21\x23-\x7e\x80-\xff]{0,100})"$/.exec(text) ?? [];
  if (version === undefined) {
    throw new ApiError(400, 'expected one ETag, in quotes: If-Match: "42-1796083200000000"', { field });
  }
  if (weak !== undefined) {
    throw new ApiError(412, 'expected a strong ETag, which does not begin with W/', { field });
  }
  return version;
}
