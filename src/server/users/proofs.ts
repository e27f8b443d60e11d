/** What keeps sessions open: tokens of the configuration, tokens of Keystone, and what an identity provider has said. */
import type { Context } from 'koa';
import type { ValidToken } from '../../openstack/contract.ts';
import { stateOf } from '../request-state.ts';
import { type Caller, whoOf } from './caller.ts';
import type { FixedTokens, TokenCaller } from './fixed-tokens.ts';
import { OidcProof, type Renew } from './oidc-proof.ts';
import type { Proof } from './sessions/sessions.ts';
import type { StoredFixed, StoredKeystone, StoredProof } from './sessions/stored-session.ts';

/** What proofs ask about themselves. */
interface ProofSources {
  readonly tokens: FixedTokens;
  readonly renew: Renew;
}

export function restoredProof(kept: StoredProof, { tokens, renew }: ProofSources): Proof {
  switch (kept.kind) {
    case 'token':
      return new FixedProof(tokens, kept);
    case 'keystone':
      return new KeystoneProof(kept.userId, kept);
    case 'oidc':
      return new OidcProof(kept, renew);
  }
}

/** A token of the configuration. The session ends when it is removed. */
export class FixedProof implements Proof {
  readonly identity: string;
  readonly isShared = true;
  readonly kept: StoredFixed;
  readonly #tokens: FixedTokens;

  constructor(tokens: FixedTokens, { identity, key }: Omit<StoredFixed, 'kind'>) {
    this.identity = identity;
    this.kept = { kind: 'token', identity, key };
    this.#tokens = tokens;
  }

  static of(tokens: FixedTokens, { caller: { identity }, key }: TokenCaller): FixedProof {
    return new FixedProof(tokens, { identity, key });
  }

  async owner(): Promise<Caller | undefined> {
    return this.#tokens.byKey(this.kept.key);
  }
}

/** A token of Keystone. The session ends when it expires or is revoked, or when its user loses the roles that count here. */
export class KeystoneProof implements Proof {
  readonly identity: string;
  readonly isShared = false;
  readonly kept: StoredKeystone;

  constructor(userId: string, { scoped, unscoped }: Pick<StoredKeystone, 'scoped' | 'unscoped'>) {
    this.identity = `keystone ${userId}`;
    this.kept = { kind: 'keystone', userId, scoped, unscoped };
  }

  /** Asks through the cache of the tokens of requests. Throws an HTTP error 503 if Keystone cannot be asked. */
  async owner(ctx: Context): Promise<Caller | undefined> {
    const { options, keystone } = stateOf(ctx).generation;
    const valid = await keystone?.gate.validated(this.kept.scoped);
    return valid && keystoneCaller(valid, options);
  }
}

/** The options of `[service]` that give roles of Keystone a meaning here. */
interface CallerRoles {
  readonly admin_roles: readonly string[];
  readonly manager_roles: readonly string[];
  readonly reader_roles: readonly string[];
}

/**
 * `undefined` = nobody here: the token has none of the roles, or only roles in a domain, which say nothing about its projects. Roles in the
 * system count for all projects. An administrator of a project is none of the cloud where Keystone names another project for these.
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

/** The message of a 403. */
export function expectedRoles({ admin_roles, manager_roles, reader_roles }: CallerRoles): string {
  const roles = [...new Set([...admin_roles, ...manager_roles, ...reader_roles])].join(', ');
  return `expected a token for a project in which its user has one of the roles ${roles}`;
}
