/** The projects and users that people name: by id, or by `name@domain` where Keystone tells whose that is. Nothing is guessed. */
import { inTime, type Wait } from '../../base/deadline.ts';
import { ConfigurationError, errorText } from '../../base/errors.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { OptionalTables } from '../../ledger/tables.ts';
import { ApiError, NOT_ALLOWED } from '../api/route.ts';
import type { Generation } from '../configuration/generation.ts';
import { type Caller, may, visibleProjects } from '../users/caller.ts';

type Kind = 'project' | 'user';

/** How long Keystone may take, in seconds, to be asked again. */
const RETRY_AFTER = '5';

/**
 * The id of a project or user. Without `[keystone]` every text is an id. With it, one that Keystone certainly does not have is a mistake: a
 * budget of nobody would limit nobody.
 *
 * @throws ApiError 422 = there is none; 503 = Keystone does not tell
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
  const { isPlausible, readRecord } = await import('../../openstack/identity-records.ts');
  if (!text.includes('@')) {
    // No id looks so, but names do.
    if (!isPlausible(text)) {
      throw unknown(kind, text, field);
    }
    const record = await inTime(readRecord(keystone, kind, text), requester.deadline);
    // Whether it cannot be asked or does not answer: an id is an id.
    if ('missing' in record && record.missing === 'unknown') {
      throw unknown(kind, text, field);
    }
    return text;
  }
  const { accountIdOf } = await import('../../openstack/identity-records.ts');
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
      headers: { 'Retry-After': RETRY_AFTER },
      cause: thrown,
    });
  });
  // Nobody waits for it once the deadline is over.
  lookup.catch(() => {});
  const id = await inTime(lookup, requester.deadline);
  if (id === undefined) {
    throw unknown(kind, text, field);
  }
  return id;
}

/** For a list, by id or `name@domain`: ids may be those of accounts that are gone from Keystone. @throws ApiError 422, 503 */
export function listedId(requester: Requester, kind: Kind, text: string): Promise<string> | string {
  return text.includes('@') ? accountId(requester, kind, text, `${kind}_id`) : text;
}

/** For members who may give no budgets, every text is an id: they hear nothing about users of other projects. */
export function listedUser(requester: Requester, text: string): Promise<string> | string {
  const { caller } = requester;
  const mayName = visibleProjects(caller) === undefined || may(caller, 'set-user-budget');
  return mayName ? listedId(requester, 'user', text) : text;
}

/** The project of a member, by id or name; `undefined` = they belong to none of that name. Asks nobody. */
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
export function ledgerFor({
  generation: { ledger },
  deadline,
}: Pick<Requester, 'generation' | 'deadline'>): Promise<Ledger> {
  if (ledger === undefined) {
    throw new ApiError(404, 'this service keeps no ledger: no filter or policy that needs one is enabled');
  }
  return inTime(ledger.ledger(deadline), deadline);
}

/**
 * The same, with tables that leases do not need. `what` they keep, for people.
 * @throws ApiError 404 if nothing uses the ledger; 503 if it lacks them; LedgerUnavailableError
 */
export async function ledgerWith(
  requester: Pick<Requester, 'generation' | 'deadline'>,
  tables: OptionalTables,
  what: string,
): Promise<Ledger> {
  const ledger = await ledgerFor(requester);
  const { requireTables } = await import('../../ledger/tables.ts');
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
