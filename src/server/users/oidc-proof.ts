/** What keeps a session of OpenID Connect open: what the issuer has said, and says again from time to time. */
import { hash } from 'node:crypto';
import type { Context } from 'koa';
import { z } from 'zod';
import { sectionOf } from '../../enforcement/configuration.ts';
import { textMistake } from '../../ledger/identity.ts';
import { stateOf } from '../request-state.ts';
import { type Caller, type Membership, whoOf } from './caller.ts';
import { type OidcOptions, oidcSection } from './oidc-options.ts';
import type { Proof } from './sessions.ts';

/** In milliseconds: no right is used that the issuer has not confirmed for so long. */
const LONGEST = 900_000;
/** From then on it is asked, beside the requests: it may be away for a third of the time without a session ending. */
const ASK_AFTER = 600_000;
/** Between two questions. */
const ASK_EVERY = 30_000;

/** What the issuer has confirmed. */
export interface Confirmed {
  readonly claims: Claims;
  /** With which it is asked again; `undefined` = it gives none. */
  readonly refreshToken: string | undefined;
}

/** `refused` = it takes the login back; `unknown` = it says nothing of the caller; `away` = it could not be asked. */
export type Renewal = Confirmed | 'refused' | 'unknown' | 'away';

/** Asks the issuer again, by a refresh token. Never rejects. */
type Renew = (ctx: Context, refreshToken: string) => Promise<Renewal>;

/** A logout that the issuer tells of: of a session there, or of all those of a user. */
export interface IssuerLogout {
  readonly sid: string | undefined;
  readonly sub: string | undefined;
}

export class OidcProof implements Proof {
  readonly identity: string;
  readonly isShared = false;
  readonly #key: string;
  readonly #sub: unknown;
  readonly #sid: unknown;
  readonly #renew: Renew;
  /** `undefined` = the issuer has taken it back. */
  #caller: Caller | undefined;
  #refreshToken: string | undefined;
  #confirmedAt = Date.now();
  #askedAt = 0;
  #asking: Promise<void> | undefined;

  constructor(caller: Caller, { claims, refreshToken }: Confirmed, options: OidcOptions, renew: Renew) {
    this.identity = caller.identity;
    this.#key = keyOf(options);
    this.#sub = claims.sub;
    this.#sid = claims.sid;
    this.#renew = renew;
    this.#caller = caller;
    this.#refreshToken = refreshToken;
  }

  /** Also `undefined` when `[oidc]` has changed, or when nothing was confirmed for too long. */
  async owner(ctx: Context): Promise<Caller | undefined> {
    const options = oidcOptionsOf(ctx);
    if (keyOf(options) !== this.#key) {
      return undefined;
    }
    if (!this.#isConfirmedFor(LONGEST)) {
      await this.#asking;
    }
    if (!this.#isConfirmedFor(LONGEST)) {
      await this.#ask(ctx, options);
    } else if (!this.#isConfirmedFor(ASK_AFTER) && !this.#wasAskedNow) {
      void this.#ask(ctx, options);
    }
    return this.#isConfirmedFor(LONGEST) ? this.#caller : undefined;
  }

  /** Whether the session is one of those that the issuer has ended. */
  isEndedBy({ sid, sub }: IssuerLogout): boolean {
    const isOfUser = sub === undefined || sub === this.#sub;
    // Without a session that both sides name, all those of the user are meant.
    const isOfSession = sid === undefined || this.#sid === undefined ? sub !== undefined : sid === this.#sid;
    return isOfUser && isOfSession;
  }

  /** A clock that was set back makes nothing last longer. */
  #isConfirmedFor(milliseconds: number): boolean {
    const age = Date.now() - this.#confirmedAt;
    return age >= 0 && age < milliseconds;
  }

  get #wasAskedNow(): boolean {
    const age = Date.now() - this.#askedAt;
    return age >= 0 && age < ASK_EVERY;
  }

  /** One question at a time: a refresh token may count only once. */
  #ask(ctx: Context, options: OidcOptions): Promise<void> {
    const token = this.#refreshToken;
    if (this.#asking === undefined && token !== undefined) {
      const now = Date.now();
      this.#askedAt = now;
      this.#asking = this.#renew(ctx, token).then((renewal) => {
        this.#asking = undefined;
        this.#take(renewal, options, now);
      });
    }
    return this.#asking ?? Promise.resolve();
  }

  #take(renewal: Renewal, options: OidcOptions, askedAt: number): void {
    if (renewal === 'refused') {
      this.#caller = undefined;
    } else if (renewal === 'unknown') {
      this.#refreshToken = undefined;
    } else if (renewal !== 'away') {
      const caller = oidcCaller(renewal.claims, options);
      const isSame = renewal.claims.sub === this.#sub && caller?.identity === this.identity;
      this.#caller = isSame ? caller : undefined;
      this.#refreshToken = renewal.refreshToken ?? this.#refreshToken;
      this.#confirmedAt = askedAt;
    }
  }
}

/** Of the current configuration; without `issuer` there is no such login. */
export function oidcOptionsOf(ctx: Context): OidcOptions {
  return sectionOf(stateOf(ctx).generation.configuration, oidcSection);
}

/** A digest, since the options may hold a secret. */
export function keyOf(options: OidcOptions): string {
  return hash('sha256', JSON.stringify(options));
}

/** Of the ID token, and perhaps of the userinfo endpoint. */
export type Claims = Readonly<Record<string, unknown>>;

/** More are left out: nobody has so many. */
const MAX_VALUES = 10_000;
const MAX_LENGTH = 255;

const list = z.array(z.unknown());
const object = z.record(z.string(), z.unknown());

/** `undefined` = nobody here: the claims name no user, or give neither a role nor a project. */
export function oidcCaller(claims: Claims, options: OidcOptions): Caller | undefined {
  const id = textAt(claims, options.user_claim);
  if (id === undefined) {
    return undefined;
  }
  const name = textAt(claims, options.name_claim) ?? id;
  const who = whoOf({ name, id });
  const base = { provenBy: 'oidc', identity: `oidc ${id}`, who, name, userId: id } as const;
  const roles = textsAt(claims, options.roles_claim);
  const has = (values: readonly string[]) => roles.some((role) => values.includes(role));
  if (has(options.operator_values)) {
    return { ...base, kind: 'operator', memberships: [] };
  }
  if (has(options.reader_values)) {
    return { ...base, kind: 'reader', memberships: [] };
  }
  const memberships = membershipsOf(textsAt(claims, options.projects_claim), options);
  return memberships.length === 0 ? undefined : { ...base, kind: 'member', memberships };
}

function membershipsOf(values: readonly string[], options: OidcOptions): readonly Membership[] {
  const { manager_values, member_values, project_ids, project_pattern } = options;
  const pattern = patternOf(project_pattern);
  const byId = new Map<string, Membership>();
  for (const value of values) {
    const { project, role } = pattern.exec(value)?.groups ?? {};
    const isManager = role !== undefined && manager_values.includes(role);
    const isMember =
      !project_pattern.includes('{role}') || (role !== undefined && member_values.includes(role));
    const isNamed = project !== undefined && Object.hasOwn(project_ids, project);
    const projectId = (isNamed ? project_ids[project] : undefined) ?? project;
    // No database would take the others.
    if (projectId !== undefined && textMistake(projectId) === undefined && (isManager || isMember)) {
      const known = byId.get(projectId);
      byId.set(projectId, {
        projectId,
        ...(isNamed && { name: project }),
        isManager: isManager || known?.isManager === true,
      });
    }
  }
  return [...byId.values()];
}

/** `/projects/{project}/{role}`, with anything but a slash for the names. */
function patternOf(pattern: string): RegExp {
  const parts = pattern.split(/(\{project\}|\{role\})/);
  const seen = new Set<string>();
  const source = parts.map((part) => {
    const name = /^\{(project|role)\}$/.exec(part)?.[1];
    if (name === undefined) {
      return part.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&');
    }
    if (seen.has(name)) {
      return `\\k<${name}>`;
    }
    seen.add(name);
    return `(?<${name}>[^/]+)`;
  });
  return new RegExp(`^${source.join('')}$`, 'u');
}

/** One text that can be recorded. An id that is a number counts as one, unless it is so large that others are read as the same. */
function textAt(claims: Claims, path: string): string | undefined {
  const found = valueAt(claims, path);
  const text = typeof found === 'number' && Number.isSafeInteger(found) ? String(found) : found;
  return typeof text === 'string' && text !== '' && textMistake(text, MAX_LENGTH) === undefined
    ? text
    : undefined;
}

/** All texts of a claim that is a text or a list. */
function textsAt(claims: Claims, path: string): readonly string[] {
  const found = valueAt(claims, path);
  const all = list.safeParse(found).data ?? [found];
  return all
    .slice(0, MAX_VALUES)
    .filter((value): value is string => typeof value === 'string' && value.length <= MAX_LENGTH);
}

/** A claim of this very name, or along the dots of it. */
function valueAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) {
    return claims[path];
  }
  let found: unknown = claims;
  for (const name of path.split('.')) {
    const inside = object.safeParse(found).data;
    found = inside !== undefined && Object.hasOwn(inside, name) ? inside[name] : undefined;
  }
  return found;
}
