import type { DecisionOutcome, DecisionRecord } from './record.ts';

/** Which decisions are meant: those that fit every part, and in each part one of its values. What is left out fits all. */
export interface Selection {
  readonly projects?: readonly string[] | undefined;
  readonly users?: readonly string[] | undefined;
  /** Filters that the outcome is due to. */
  readonly filters?: readonly string[] | undefined;
  readonly outcomes?: readonly DecisionOutcome[] | undefined;
  readonly operations?: readonly DecisionRecord['operation'][] | undefined;
  /** In milliseconds since 1970; the ones made then are meant too. */
  readonly since?: number | undefined;
}

export function isSelected(record: DecisionRecord, selection: Selection): boolean {
  const { projects, users, filters, outcomes, operations, since } = selection;
  return (
    isNamed(record.project_id, projects) &&
    isNamed(record.user_id, users) &&
    isNamed(record.filter, filters) &&
    isOneOf(record.outcome, outcomes) &&
    isOneOf(record.operation, operations) &&
    (since === undefined || Date.parse(record.time) >= since)
  );
}

function isNamed(name: string | null, names: readonly string[] | undefined): boolean {
  return names === undefined || (name !== null && names.includes(name));
}

function isOneOf<Value>(value: Value, values: readonly Value[] | undefined): boolean {
  return values === undefined || values.includes(value);
}
