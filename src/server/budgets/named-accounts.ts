/** Resolves projects and users by id, or by `name@domain` if Keystone is configured. No guesses. */
import { inTime, type Wait } from '../../base/deadline.ts';
import { ConfigurationError, errorText } from '../../base/errors.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { OptionalTables } from '../../ledger/open.ts';
import { ApiError, NOT_ALLOWED, RETRY_AFTER } from '../api/route.ts';
import type { Generation } from '../configuration/generation.ts';
import { type Caller, may, visibleProjects } from '../users/caller.ts';

type Kind = 'project' | 'user';

/**
 * The id of a project or user. Without `[keystone]` every text is an id. With it, an id that Keystone
 * certainly does not have is rejected: a budget without an owner would limit nothing.
 *
 * @throws ApiError 422 = no such account; 503 = Keystone does not answer
 */
export async function accountId(
  requester: Requester,
  kind: Kind,
  text: string,
  field: string,
): Promise<string> {
  const { keystone } = requester.generation.enforcement;
  if (keystone === undefined) {
    return text;
  }
  const { accountIdOf, isPlausible, readRecord } = await import('../../openstack/identity-records.ts');
  if (!text.includes('@')) {
    // Names may look like this, ids may not.
    if (!isPlausible(text)) {
      throw unknown(kind, text, field);
    }
    const record = await inTime(readRecord(keystone, kind, text), requester.deadline);
    // If Keystone cannot be called or does not answer, the id is accepted.
    if ('missing' in record && record.missing === 'unknown') {
      throw unknown(kind, text, field);
    }
    return text;
  }
  const { KeystoneError } = await import('../../openstack/contract.ts');
  const lookup = accountIdOf(keystone, kind, text).catch((thrown: unknown) => {
    if (thrown instanceof KeystoneError && thrown.message.endsWith('; give the id')) {
      throw new ApiError(422, `Keystone does not tell which ${kind} that is: give the id`, {
        field,
        cause: errorText(thrown),
      });
    }
    throw new ApiError(503, 'Keystone does not answer; please try again, or give the id', {
      field,
      headers: RETRY_AFTER,
      cause: thrown,
    });
  });
  // After the deadline, nothing awaits it.
  lookup.catch(() => {});
  const id = await inTime(lookup, requester.deadline);
  if (id === undefined) {
    throw unknown(kind, text, field);
  }
  return id;
}

/** For lists, by id or `name@domain`. Ids are not checked: some are deleted. @throws ApiError 422, 503 */
export function listedId(requester: Requester, kind: Kind, text: string): Promise<string> | string {
  return text.includes('@') ? accountId(requester, kind, text, `${kind}_id`) : text;
}

/** Members who cannot set budgets name only themselves: users of other projects stay unknown to them. */
export function listedUser(requester: Requester, text: string): Promise<string> | string {
  const { caller } = requester;
  const mayName = visibleProjects(caller) === undefined || may(caller, 'set-user-budget');
  return ownUser(caller, text) ?? (mayName ? listedId(requester, 'user', text) : text);
}

/** The caller's id, by id or `name@domain`; `undefined` = another user. Sends no request. */
export function ownUser({ userId, name }: Caller, text: string): string | undefined {
  const isOwn = text === userId || (text.includes('@') && text === name);
  return (isOwn && userId) || undefined;
}

/** The project of a member, by id or name; `undefined` = not one of theirs. Sends no request. */
export function ownProject({ memberships }: Caller, text: string): string | undefined {
  return memberships.find(({ projectId, name, domain }) => projectId === text || `${name}@${domain}` === text)
    ?.projectId;
}

function unknown(kind: Kind, text: string, field: string): ApiError {
  const shown = JSON.stringify(text.slice(0, 100));
  return new ApiError(422, `Keystone has no ${kind} ${shown}: expected an id, or name@domain`, { field });
}

export interface Requester {
  readonly caller: Caller;
  readonly generation: Pick<Generation, 'enforcement' | 'ledger' | 'configuration'>;
  readonly deadline: Wait & { readonly milliseconds: number };
}

/** @throws ApiError 404 if nothing in the configuration uses a ledger; LedgerUnavailableError */
export function ledgerFor(requester: Pick<Requester, 'generation' | 'deadline'>): Promise<Ledger> {
  const { deadline, generation } = requester;
  const { ledger } = generation;
  if (ledger === undefined) {
    throw new ApiError(404, 'this service keeps no ledger: no filter or policy that needs one is enabled');
  }
  return inTime(ledger.ledger(deadline), deadline);
}

/**
 * The same, with tables that leases do not need. `what`: their content, for messages.
 *
 * @throws ApiError 404 if nothing uses the ledger; 503 if it lacks the tables; LedgerUnavailableError
 */
export async function ledgerWith(
  requester: Pick<Requester, 'generation' | 'deadline'>,
  tables: OptionalTables,
  what: string,
): Promise<Ledger> {
  const ledger = await ledgerFor(requester);
  const { requireTables } = await import('../../ledger/open.ts');
  try {
    await requireTables(ledger, tables, requester.deadline);
  } catch (thrown) {
    if (!(thrown instanceof ConfigurationError)) {
      throw thrown;
    }
    throw new ApiError(503, `the ledger cannot keep ${what} yet: ask the operator to upgrade it`, {
      headers: { 'Retry-After': '60' },
      cause: thrown,
    });
  }
  return ledger;
}

export function notAllowed(): ApiError {
  return new ApiError(403, NOT_ALLOWED);
}
