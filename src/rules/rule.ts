/** Rules as they are judged by. */
import type { AccountList } from '../filter/account-limits.ts';
import type { Expression } from './expression.ts';

/** What a rule can judge. The end of a lease is only told, never refused. */
export const OPERATIONS = ['create', 'update', 'pod', 'task'] as const;
export type Operation = (typeof OPERATIONS)[number];

/** A rule for one operation: its expressions are checked against the variables of that operation. */
export interface Rule {
  readonly name: string;
  readonly audit: boolean;
  /** The rule ends at this time, in milliseconds of the epoch. */
  readonly until: number | undefined;
  readonly exempt: Exemption;
  /** Which requests it judges. `undefined` = all. */
  readonly match: Expression | undefined;
  /** Must be true. */
  readonly allow: Expression;
  readonly message: string | Expression;
  readonly place: Place;
  readonly needs: readonly Need[];
  /** Where a character of a part of it is written. */
  placeOf(part: 'match' | 'allow' | 'message' | 'until', offset?: number): Need['place'];
}

/** What a rule needs from elsewhere, and where that is written: a function of the ledger, a name of Keystone such as `climate@Default`, or a resource type. */
export interface Need {
  readonly of: 'ledger' | 'keystone' | 'resource-type';
  readonly text: string;
  readonly place: Place & { readonly column: number };
}

/** Whom a rule does not judge. */
export interface Exemption {
  /** It is nobody. */
  readonly isEmpty: boolean;
  /** Of leases, by id or `name@domain`. */
  readonly projects: AccountList;
  readonly users: AccountList;
  /** The same, as they are written: pods and tasks have users that Keystone does not know. */
  readonly userNames: ReadonlySet<string>;
  /** Tags of projects at Keystone. */
  readonly tags: ReadonlySet<string>;
  /** Projects are named by tags, which only Keystone knows. */
  readonly needsNames: boolean;
}

/** Whether a rule reads the ledger: then it is asked again in the transaction that records the lease. */
export function readsLedger({ match, allow, message }: Rule): boolean {
  return [match, allow, message].some((part) => typeof part === 'object' && part.ledgerCalls.length > 0);
}

interface Place {
  readonly file: string;
  /** From 1. */
  readonly line: number;
}

/** The rules of a folder, by the operation that they judge, each in the order as written. */
export type RuleSet = { readonly [operation in Operation]: readonly Rule[] };
