/** Authenticates users, and resolves them to callers: by a configured token, a Keystone token, or the session of a browser. */
import type { Context } from 'koa';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import type { ValidToken } from '../../openstack/contract.ts';
import type { ServiceOptions } from '../configuration/options.ts';
import { stateOf } from '../request-state.ts';
import { ANONYMOUS, type Caller, whoOf } from './caller.ts';
import type { FixedTokens } from './fixed-tokens.ts';
import { oidcSection } from './oidc-options.ts';
import { oidcOwner, type Renew } from './oidc-session.ts';
import type { HeldSession, Sessions } from './sessions/sessions.ts';
import type { WrongTokens } from './wrong-tokens.ts';

const EXPECTED = 'expected a valid token in the header X-Auth-Token';

interface UserAuthenticatorParts {
  readonly tokens: FixedTokens;
  readonly sessions: Sessions;
  readonly wrong: WrongTokens;
  readonly configuration: () => Configuration;
}

export function createUserAuthenticator(parts: UserAuthenticatorParts): UserAuthenticator {
  const { tokens, sessions, wrong, configuration } = parts;
  const isAsked = () => tokens.required || sectionOf(configuration(), oidcSection).issuer !== undefined;
  return {
    byToken: async (ctx) => {
      const token = shownToken(ctx);
      if (token === undefined) {
        return undefined;
      }
      const fixed = tokens.ownerOf(token);
      if (fixed !== undefined) {
        return fixed.caller;
      }
      const { options, keystone } = stateOf(ctx).generation;
      if (keystone !== undefined && !tokens.isOfUsers(token)) {
        return keystone.authenticator.ownerOf(token, {
          address: ctx.ip,
          refuse: (headers) => {
            throw wrong.error(ctx.ip, EXPECTED, headers);
          },
          expectedRoles: `expected a token for a project in which its user has one of the roles ${rolesText(options)}`,
          callerOf: (valid) => keystoneCaller(valid, options),
        });
      }
      if (isAsked()) {
        throw wrong.error(ctx.ip, EXPECTED);
      }
      return undefined;
    },
    bySession: (ctx) => sessions.callerOf(ctx),
    get anonymous() {
      return isAsked() ? undefined : ANONYMOUS;
    },
    csrfOf: (ctx) => sessions.csrfOf(ctx),
  };
}

/** The token of a request; `undefined` = none. Throws an HTTP error 401 for two different ones. */
function shownToken(ctx: Context): string | undefined {
  const header = ctx.get('X-Auth-Token');
  const bearer = /^Bearer +(\S+)$/i.exec(ctx.get('Authorization'))?.[1];
  if (header !== '' && bearer !== undefined && header !== bearer) {
    ctx.throw(401, 'expected one token, got another in X-Auth-Token than in Authorization');
  }
  return header === '' ? bearer : header;
}

export interface UserAuthenticator {
  /**
   * The caller of a token in `X-Auth-Token` or `Authorization: Bearer`. `undefined` = no token or, if no
   * authentication is required, an unknown one. Throws an HTTP error that may be shown: 401 for an invalid
   * token, 429 after many of these from the address, 403 without any role here, 503 if Keystone does not
   * answer.
   */
  byToken(ctx: Context): Promise<Caller | undefined>;
  /** The caller of a browser's session; `undefined` = no session, or it has ended. */
  bySession(ctx: Context): Promise<Caller | undefined>;
  /** The caller without credentials, if no authentication is required; otherwise `undefined`. */
  readonly anonymous: Caller | undefined;
  /** The value that forms of a session must send as `csrf`; empty without a session. */
  csrfOf(ctx: Context): string;
}

/** A caller, and how they authenticated: browsers send the cookie with cross-site requests, too. */
export interface Requester {
  readonly caller: Caller;
  readonly by: 'token' | 'session' | 'nothing';
}

/** `undefined` = not authenticated. Throws like `byToken` and `bySession`. */
export async function requesterOf(ctx: Context, users: UserAuthenticator): Promise<Requester | undefined> {
  const byToken = await users.byToken(ctx);
  if (byToken !== undefined) {
    return { caller: byToken, by: 'token' };
  }
  const bySession = await users.bySession(ctx);
  if (bySession !== undefined) {
    return { caller: bySession, by: 'session' };
  }
  return users.anonymous && { caller: users.anonymous, by: 'nothing' };
}

/** The message of a 401. */
export const EXPECTED_TOKEN =
  'expected one of [service] metrics_tokens, or a token of a reader or operator; or none';

/**
 * Whether a request shows a token for single budgets; without a token, everything else is visible. Throws an
 * HTTP error that may be shown: 401 for another token, 429 after too many of these from one address. Keystone
 * is not called.
 */
export function budgetReaders(tokens: FixedTokens, wrong: WrongTokens): (ctx: Context) => boolean {
  return (ctx) => {
    const token = shownToken(ctx);
    if (token === undefined) {
      return false;
    }
    if (!tokens.seesBudgets(token)) {
      throw wrong.error(ctx.ip, EXPECTED_TOKEN);
    }
    return true;
  };
}

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
type CallerRoles = Pick<ServiceOptions, 'admin_roles' | 'manager_roles' | 'reader_roles'>;

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
