import type { DecisionOutcome, DecisionRecord, Side } from './record.ts';

/** What `refused` means where outcomes are asked for. */
export const REFUSED: readonly DecisionOutcome[] = ['rejected', 'failed'];

/** Selects decisions that match every given part, with any of its values. */
export interface Selection {
  readonly projects?: readonly string[] | undefined;
  readonly users?: readonly string[] | undefined;
  /** Filters that decided, or did not allow, such as an audited one that would have rejected. */
  readonly filters?: readonly string[] | undefined;
  readonly outcomes?: readonly DecisionOutcome[] | undefined;
  readonly operations?: readonly DecisionRecord['operation'][] | undefined;
  /** Only SkyPilot requests, from these sides. */
  readonly sides?: readonly Side[] | undefined;
  /** In milliseconds since 1970, inclusive. */
  readonly since?: number | undefined;
  /** In milliseconds since 1970, exclusive. */
  readonly until?: number | undefined;
}

type Accounts = 'project_id' | 'project_name' | 'project_domain' | 'user_id' | 'user_name' | 'user_domain';

/** What selects a record, also of a later version with other words. */
interface Selectable extends Pick<DecisionRecord, Accounts | 'time' | 'filter'> {
  readonly outcome: string;
  readonly operation: string;
  readonly side?: string | undefined;
  readonly filters: readonly { readonly filter: string; readonly outcome: string }[];
}

export function isSelected(record: Selectable, selection: Selection): boolean {
  const { projects, users, filters, outcomes, operations, sides, since, until } = selection;
  return (
    isAccount(record.project_id, record.project_name, record.project_domain, projects) &&
    isAccount(record.user_id, record.user_name, record.user_domain, users) &&
    (filters === undefined || concerns(record, filters)) &&
    isOneOf(record.outcome, outcomes) &&
    isOneOf(record.operation, operations) &&
    isOneOf(record.side, sides) &&
    (since === undefined || Date.parse(record.time) >= since) &&
    (until === undefined || Date.parse(record.time) < until)
  );
}

function concerns(record: Selectable, names: readonly string[]): boolean {
  return (
    isNamed(record.filter, names) ||
    record.filters.some(({ filter, outcome }) => outcome !== 'allowed' && names.includes(filter))
  );
}

type Text = string | null | undefined;

/** By id, or by `name@domain`. */
function isAccount(
  id: string | null,
  name: Text,
  domain: Text,
  accounts: readonly string[] | undefined,
): boolean {
  return (
    isNamed(id, accounts) ||
    (accounts !== undefined && isNamed(name && domain ? `${name}@${domain}` : null, accounts))
  );
}

function isNamed(name: string | null, names: readonly string[] | undefined): boolean {
  return names === undefined || (name !== null && names.includes(name));
}

function isOneOf<Value>(value: Value | undefined, values: readonly Value[] | undefined): boolean {
  return values === undefined || (value !== undefined && values.includes(value));
}
