/** Who asks for budgets, with what is needed to answer: the API and the console ask the same. */
import type { Wait } from '../../base/deadline.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { ledgerOf } from '../api/ledger-of.ts';
import { ApiError, NOT_ALLOWED } from '../api/route.ts';
import type { Generation } from '../configuration/generation.ts';
import type { Person } from '../users/person.ts';

export interface Asker {
  readonly person: Person;
  readonly generation: Pick<Generation, 'enforcement' | 'ledger' | 'configuration'>;
  readonly deadline: Wait & { readonly milliseconds: number };
}

/** @throws ApiError 404 if nothing uses the ledger; LedgerUnavailableError */
export function ledgerFor({ generation, deadline }: Asker): Promise<Ledger> {
  return ledgerOf(generation, deadline);
}

export function notAllowed(): ApiError {
  return new ApiError(403, NOT_ALLOWED);
}
