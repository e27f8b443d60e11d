/** The rules of `NameRules` as CEL. */
import { type Cel, constant, equals, FALSE, isOneOf, or, TRUE } from './cel.ts';
import type { UsablePolicies } from './usable-policies.ts';

export const LISTS = { schedulerName: 'schedulerNames', priorityClassName: 'priorityClassNames' } as const;

export type NameField = keyof typeof LISTS;

/** `name`: an expression that is empty if the pod names none. `free`: a name that counts as none, unless one is required. */
export function nameCondition(
  policies: UsablePolicies,
  field: NameField,
  name: string,
  free: string | undefined,
): Cel {
  const list = LISTS[field];
  const allowed = or(
    policies.allows(list, (names) => (names.length === 0 ? TRUE : isOneOf(name, names))),
    policies.first<string>('default', [field], (added) => equals(name, added), FALSE),
  );
  const unnamed = or(equals(name, ''), free === undefined ? FALSE : equals(name, free));
  // Policies list no empty names.
  return policies.first<readonly string[]>(
    'required',
    [list],
    (names) => isOneOf(name, names),
    or(unnamed, allowed),
  );
}

/** Whether every scheduler is allowed and none is required. */
export function allowsAllSchedulers(policies: UsablePolicies): Cel {
  const all = policies.allows('schedulerNames', (names) => constant(names.length === 0));
  return policies.first('required', ['schedulerNames'], () => FALSE, all);
}
