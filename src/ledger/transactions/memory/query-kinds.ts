/** What a query asks for or writes, so that somebody who knows the answer, or what changes by it, can recognise it. */
import type { CompiledQuery } from 'kysely';
import type { Statements } from '../statements.ts';

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

/** On the query itself: a lease has about ten, and the garbage collector takes long for that many keys of a WeakMap. */
const ASK = Symbol('ask');
type Recognised = CompiledQuery & { [ASK]?: Ask };

/** `undefined` = it is none of those that are recognised. */
export function askOf(query: Recognised): Ask | undefined {
  return query[ASK];
}

/** The same statements, whose queries `askOf` knows. */
export function recognisable(statements: Statements): Statements {
  const known: Record<string, unknown> = { ...statements };
  for (const kind of RECOGNISED) {
    const build = statements[kind] as ((of: never) => CompiledQuery) | undefined;
    if (build !== undefined) {
      known[kind] = (of: never) => {
        const query: Recognised = build(of);
        query[ASK] = { kind, of } as Ask;
        return query;
      };
    }
  }
  return known as Statements;
}
