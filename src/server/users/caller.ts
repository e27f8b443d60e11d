/** A user of the API or the console, and their rights. */
import { z } from 'zod';
import { cut, onOneLine } from '../../base/visible-text.ts';

const membership = z
  .object({
    projectId: z.string(),
    /** The name in Keystone or at the identity provider; `undefined` = unknown. */
    name: z.string().optional(),
    domain: z.string().optional(),
    /** Whether the caller may set budgets of users within the project's. */
    isManager: z.boolean(),
  })
  .readonly();

export type Membership = z.infer<typeof membership>;

export const callerSchema = z.object({
  /**
   * - `operator`: may do everything, in all projects
   * - `reader`: sees all projects and the configuration, changes nothing
   * - `member`: sees the projects of `memberships`, and has a manager's rights where they are manager
   */
  kind: z.enum(['operator', 'reader', 'member']),
  /** How the caller was authenticated. `nobody` = no authentication is required. */
  provenBy: z.enum(['keystone', 'oidc', 'token', 'nobody']),
  /** The owner of sessions, streams and requests: a user, or a configured token, which many may share. */
  identity: z.string(),
  /** For `who` in ledger and logs: `alice@Default (0a1b…)`, `operator token`. At most 255 characters. */
  who: z.string(),
  name: z.string(),
  /** Keystone's id, or the configured claim; `null` = a fixed token, or no authentication. */
  userId: z.string().nullable(),
  /** Empty for operators and readers, who see all projects. */
  memberships: z.array(membership).readonly(),
});

export type Caller = Readonly<z.infer<typeof callerSchema>>;

/** The caller with a token of the configuration. `key`: identifies the token. */
export function tokenCaller(kind: 'operator' | 'reader', who: string, key = who): Caller {
  return { kind, provenBy: 'token', identity: `token ${key}`, who, name: who, userId: null, memberships: [] };
}

/** Every caller, if no authentication is required. */
export const ANONYMOUS: Caller = { ...tokenCaller('reader', 'anonymous'), provenBy: 'nobody' };

const MAX_WHO = 255;
const MAX_ID = 100;

/** For `who`: `alice@Default (0a1b…)`. Always contains the id, since names are chosen freely. */
export function whoOf({ name, domain, id }: { name: string; domain?: string; id: string }): string {
  const end = ` (${cut(onOneLine(id), MAX_ID)})`;
  const full = domain === undefined || domain === '' ? name : `${name}@${domain}`;
  return cut(onOneLine(full), MAX_WHO - end.length) + end;
}

/**
 * The roles that may do each action. `member` and `manager`: in their own projects; managers are members who
 * may also set budgets of users.
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
  'request-budget': ['operator', 'manager', 'member'],
  'endorse-budget-request': ['operator', 'manager'],
  'set-user-budget': ['operator', 'manager'],
  'set-project-budget': ['operator'],
  'import-budgets': ['operator'],
} as const satisfies Readonly<Record<string, readonly Role[]>>;

export type Role = 'operator' | 'reader' | 'manager' | 'member';
export type Action = keyof typeof ACTIONS;

/**
 * Whether a caller may do something in a project. `projectId`: `undefined` = no specific one: lists are then
 * limited to `visibleProjects`.
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
