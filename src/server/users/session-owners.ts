/** Resolves Keystone tokens and sessions to callers. */
import type { Context } from 'koa';
import type { ValidToken } from '../../openstack/contract.ts';
import { stateOf } from '../request-state.ts';
import { type Caller, whoOf } from './caller.ts';
import type { FixedTokens } from './fixed-tokens.ts';
import { oidcOwner, type Renew } from './oidc-session.ts';
import type { HeldSession } from './sessions/sessions.ts';

/** The user of the session; `undefined` = no longer valid. Throws an HTTP error 503 if Keystone is away. */
export function sessionOwners(
  tokens: FixedTokens,
  renew: Renew,
): (ctx: Context, held: HeldSession) => Promise<Caller | undefined> {
  return async (ctx, held) => {
    const { kept } = held;
    switch (kept.kind) {
      case 'token':
        return tokens.byKey(kept.key);
      case 'keystone': {
        const { options, keystone } = stateOf(ctx).generation;
        // Shares the cache of request tokens.
        const valid = await keystone?.authenticator.validated(kept.scoped);
        return valid && keystoneCaller(valid, options);
      }
      case 'oidc':
        return oidcOwner(ctx, kept, held, renew);
    }
  };
}

/** The options of `[service]` that map roles of Keystone. */
interface CallerRoles {
  readonly admin_roles: readonly string[];
  readonly manager_roles: readonly string[];
  readonly reader_roles: readonly string[];
}

/**
 * `undefined` = no rights here: the token has none of the roles, or only roles in a domain, which do not
 * apply to its projects. System roles apply to all projects. A project's administrator is not a cloud
 * administrator if Keystone has another project for these.
 */
export function keystoneCaller(token: ValidToken, roles: CallerRoles): Caller | undefined {
  const { user, project, systemRoles = [] } = token;
  const has = (names: readonly string[], among: readonly string[]) =>
    among.some((role) => names.includes(role));
  const { admin_roles, manager_roles, reader_roles } = roles;
  const { domain } = user;
  const base = {
    provenBy: 'keystone',
    identity: `keystone ${user.id}`,
    who: whoOf({ name: user.name, domain, id: user.id }),
    name: domain === '' ? user.name : `${user.name}@${domain}`,
    userId: user.id,
    memberships: [],
  } as const;
  if (project === undefined) {
    const readers = [...manager_roles, ...reader_roles];
    if (has(admin_roles, systemRoles)) {
      return { ...base, kind: 'operator' };
    }
    return has(readers, systemRoles) ? { ...base, kind: 'reader' } : undefined;
  }
  if (has(admin_roles, token.roles) && token.isAdminElsewhere !== true) {
    return { ...base, kind: 'operator' };
  }
  const isManager = has(manager_roles, token.roles);
  if (!isManager && !has(reader_roles, token.roles)) {
    return undefined;
  }
  const { id: projectId, name } = project;
  return { ...base, kind: 'member', memberships: [{ projectId, name, domain: project.domain, isManager }] };
}

export function rolesText({ admin_roles, manager_roles, reader_roles }: CallerRoles): string {
  return [...new Set([...admin_roles, ...manager_roles, ...reader_roles])].join(', ');
}
