/** Who may do what: the one table that the API, the console and docs/reference/access.md follow. */
import type { Caller } from './caller.ts';

/**
 * For each action, the kinds of persons who may do it. `member` and `manager` = in projects that they belong to; a manager is a member who
 * may also give budgets to users.
 */
export const ACTIONS = {
  'see-service': ['operator', 'reader'],
  'see-configuration': ['operator', 'reader'],
  'list-projects': ['operator', 'reader', 'manager', 'member'],
  'see-project': ['operator', 'reader', 'manager', 'member'],
  estimate: ['operator', 'reader', 'manager', 'member'],
  'see-ledger': ['operator', 'reader'],
  'see-decisions': ['operator', 'reader', 'manager', 'member'],
  'list-budgets': ['operator', 'reader', 'manager', 'member'],
  'set-user-budget': ['operator', 'manager'],
  'set-project-budget': ['operator'],
  'import-budgets': ['operator'],
} as const satisfies Readonly<Record<string, readonly Role[]>>;

export type Role = 'operator' | 'reader' | 'manager' | 'member';
export type Action = keyof typeof ACTIONS;

/**
 * Whether a caller may do something in a project. `projectId`: `undefined` = in no particular one: a list is then narrowed to what the
 * caller may see (`visibleProjects`).
 */
export function may(caller: Caller, action: Action, projectId?: string): boolean {
  const allowed: readonly Role[] = ACTIONS[action];
  return rolesOf(caller, projectId).some((role) => allowed.includes(role));
}

/** The projects that lists show; `undefined` = all. */
export function visibleProjects({ kind, memberships }: Caller): readonly string[] | undefined {
  return kind === 'member' ? memberships.map(({ projectId }) => projectId) : undefined;
}

function rolesOf({ kind, memberships }: Caller, projectId: string | undefined): readonly Role[] {
  if (kind !== 'member') {
    return [kind];
  }
  return memberships
    .filter((membership) => projectId === undefined || membership.projectId === projectId)
    .flatMap(({ isManager }): Role[] => (isManager ? ['manager', 'member'] : ['member']));
}
