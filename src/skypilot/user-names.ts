/** What a user is called in lists of users that an operator writes. Source: SkyPilot 0.13, its service accounts. */
import type { User } from './user-request.ts';

/** Ids of service accounts, in any case. */
const SERVICE_ACCOUNT = /^sa-/i;

/**
 * The id, and the name after it. Of a service account only the id: whoever creates it chooses its name, and could choose that of
 * somebody who may do more.
 */
export function namesOfUser({ id, name }: Pick<User, 'id' | 'name'>): readonly string[] {
  return SERVICE_ACCOUNT.test(id) || name === '' ? [id] : [id, name];
}
