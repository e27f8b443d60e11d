/** What a query asks for or writes, so that somebody who knows the answer, or what changes by it, can recognise it. */
import type { CompiledQuery } from 'kysely';
import type { Statements } from './statements.ts';

const RECOGNISED = [
  'lockProject',
  'overdueLeases',
  'budgets',
  'budgetsOfUsers',
  'balances',
  'setBalances',
  'addEntries',
  'leasesByKey',
  'leaseById',
  'addLease',
  'addLeaseAs',
  'setLease',
  'nextLeaseIds',
] as const satisfies readonly (keyof Statements)[];

type Kind = (typeof RECOGNISED)[number];

/** The statement, and the values that it was made for. */
export type Ask = {
  [Name in Kind]: { readonly kind: Name; readonly of: Parameters<NonNullable<Statements[Name]>>[0] };
}[Kind];

const ASKS = new WeakMap<CompiledQuery, Ask>();

/** `undefined` = it is none of those that are recognised. */
export function askOf(query: CompiledQuery): Ask | undefined {
  return ASKS.get(query);
}

/** The same statements, whose queries `askOf` knows. */
export function recognisable(statements: Statements): Statements {
  const known: Record<string, unknown> = { ...statements };
  for (const kind of RECOGNISED) {
    const build = statements[kind] as ((of: never) => CompiledQuery) | undefined;
    if (build !== undefined) {
      known[kind] = (of: never) => {
        const query = build(of);
        ASKS.set(query, { kind, of } as Ask);
        return query;
      };
    }
  }
  return known as Statements;
}
