/** Rules, ready to judge requests. */
import type { AccountList } from '../filter/account-limits.ts';
import type { Expression } from './expression.ts';

/** The operations that a rule can judge. The end of a lease is only reported, never refused. */
export const OPERATIONS = ['create', 'update', 'pod', 'task'] as const;
export type Operation = (typeof OPERATIONS)[number];

/** A rule for one operation: its expressions are checked against the variables of that operation. */
export interface Rule {
  readonly name: string;
  readonly audit: boolean;
  /** The rule ends at this time, in milliseconds of the epoch. */
  readonly until: number | undefined;
  readonly exempt: Exemption;
  /** The requests that it judges. `undefined` = all. */
  readonly match: Expression | undefined;
  /** Must be true. */
  readonly allow: Expression;
  readonly message: string | Expression;
  readonly place: Place;
  readonly needs: readonly Need[];
  /** The position of a character of one of its parts. */
  placeOf(part: 'match' | 'allow' | 'message' | 'until', offset?: number): Need['place'];
}

/**
 * An external dependency of a rule, and its position: a function of the ledger, a name of Keystone such as
 * `climate@Default`, or a resource type.
 */
export interface Need {
  readonly of: 'ledger' | 'keystone' | 'resource-type';
  readonly text: string;
  readonly place: Place & { readonly column: number };
}

/** The projects and users that a rule does not judge. */
export interface Exemption {
  /** Nothing is exempt. */
  readonly isEmpty: boolean;
  /** For leases, by id or `name@domain`. */
  readonly projects: AccountList;
  readonly users: AccountList;
  /** The same, as written: Keystone does not have the users of pods and tasks. */
  readonly userNames: ReadonlySet<string>;
  /** Tags of projects in Keystone. */
  readonly tags: ReadonlySet<string>;
  /** It has tags, which only Keystone provides. */
  readonly needsNames: boolean;
}

/** Whether a rule reads the ledger: then it is evaluated again in the transaction that records the lease. */
export function readsLedger({ match, allow, message }: Rule): boolean {
  return [match, allow, message].some((part) => typeof part === 'object' && part.ledgerCalls.length > 0);
}

interface Place {
  readonly file: string;
  /** From 1. */
  readonly line: number;
}

/** The rules of a folder by operation, each in the order as written. */
export type RuleSet = { readonly [operation in Operation]: readonly Rule[] };
