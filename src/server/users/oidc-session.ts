/** Keeps a session of OpenID Connect valid: claims of the issuer, renewed periodically. */
import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import createError from 'http-errors';
import type { Context } from 'koa';
import { z } from 'zod';
import { sectionOf } from '../../enforcement/configuration.ts';
import { textMistake } from '../../ledger/identity.ts';
import { stateOf } from '../request-state.ts';
import { type Caller, type Membership, whoOf } from './caller.ts';
import { type OidcOptions, oidcSection } from './oidc-options.ts';
import type { HeldSession } from './sessions/sessions.ts';
import type { StoredOidc } from './sessions/stored-session.ts';

/** In milliseconds: a session is not used for longer without confirmation by the issuer. */
const LONGEST = 900_000;
/** Age for a renewal in the background: the issuer may be away for a third of `LONGEST`. */
const ASK_AFTER = 600_000;
/** Minimum time between two renewals. */
const ASK_EVERY = 30_000;
/** Polling interval while another request renews. */
const LOOK_EVERY = 100;
/** Attempts to store a renewal if the database does not answer. */
const KEEPING_ATTEMPTS = 5;
const KEEPING_PAUSE = 1000;

/** Claims that the issuer has confirmed. */
export interface Confirmed {
  readonly claims: Claims;
  /** For the next renewal; `undefined` = the issuer provides none. */
  readonly refreshToken: string | undefined;
}

/** `refused` = the issuer has revoked it; `unknown` = it sent no claims; `away` = it could not be called. */
export type Renewal = Confirmed | 'refused' | 'unknown' | 'away';

/** Renews at the issuer with a refresh token. Never rejects. */
export type Renew = (ctx: Context, refreshToken: string) => Promise<Renewal>;

/** A logout at the issuer: of one session there, or of all sessions of a user. */
export interface IssuerLogout {
  readonly sid: string | undefined;
  readonly sub: string | undefined;
  /** To be called if the sessions could not be ended: the issuer may send its token again. */
  giveBack(): void;
}

/** The stored proof of a user whom the issuer has just confirmed. */
export function oidcSession(
  caller: Caller,
  { claims: { sub, sid }, refreshToken }: Confirmed,
  options: OidcOptions,
): StoredOidc {
  return {
    kind: 'oidc',
    key: keyOf(options),
    sub: String(sub),
    sid: typeof sid === 'string' ? sid : undefined,
    caller,
    refreshToken,
    askedAt: 0,
    askingUntil: 0,
  };
}

/** `undefined` also if `[oidc]` has changed, or the last confirmation is too old. */
export async function oidcOwner(
  ctx: Context,
  kept: StoredOidc,
  held: HeldSession,
  renew: Renew,
): Promise<Caller | undefined> {
  const { generation } = stateOf(ctx);
  if (keyOf(oidcOptionsOf(ctx)) !== kept.key) {
    return undefined;
  }
  if (!isConfirmedFor(LONGEST, kept, held)) {
    return confirmed(ctx, held, renew);
  }
  const wasAskedNow = isWithin(ASK_EVERY, kept.askedAt, held.now);
  if (!isConfirmedFor(ASK_AFTER, kept, held) && !wasAskedNow && !isAsking(ctx, kept, held)) {
    // In the background; the generation stays open meanwhile.
    generation.enter();
    void ask(ctx, kept, held, renew)
      // Already logged: the database is unavailable.
      .catch(() => undefined)
      .finally(() => generation.leave());
  }
  return kept.caller;
}

/** Waits for the issuer, or for another request that is renewing. */
async function confirmed(ctx: Context, first: HeldSession, renew: Renew): Promise<Caller | undefined> {
  const until = performance.now() + 1000 * stateOf(ctx).generation.options.deadline;
  for (let held: HeldSession | undefined = first; held?.kept.kind === 'oidc'; held = await held.again()) {
    const kept: StoredOidc = held.kept;
    if (isConfirmedFor(LONGEST, kept, held)) {
      return kept.caller;
    }
    if (isAsking(ctx, kept, held)) {
      if (performance.now() > until) {
        throw createError(503, 'the identity provider does not answer now', { expose: true });
      }
      await pause(LOOK_EVERY);
      continue;
    }
    const asked = await ask(ctx, kept, held, renew);
    if (asked !== 'overtaken') {
      return asked?.kept.kind === 'oidc' && isConfirmedFor(LONGEST, asked.kept, asked)
        ? asked.kept.caller
        : undefined;
    }
  }
  return undefined;
}

/**
 * One renewal at a time across all replicas: a refresh token may be single-use. `overtaken` = another request
 * was first, or the session has ended; `undefined` = the issuer has ended it.
 */
async function ask(
  ctx: Context,
  kept: StoredOidc,
  held: HeldSession,
  renew: Renew,
): Promise<HeldSession | 'overtaken' | undefined> {
  if (kept.refreshToken === undefined) {
    return held;
  }
  const { now } = held;
  const asking = await held.keep({ ...kept, askedAt: now, askingUntil: now + patienceOf(ctx) });
  if (asking === undefined) {
    return 'overtaken';
  }
  const renewed = renewedBy(await renew(ctx, kept.refreshToken), kept, oidcOptionsOf(ctx), now);
  if (renewed === undefined) {
    await asking.end();
    return undefined;
  }
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await asking.keep(renewed);
    } catch (thrown) {
      // The issuer may have replaced the refresh token: a short outage of the database must not lose it.
      if (attempt === KEEPING_ATTEMPTS) {
        throw thrown;
      }
      await pause(KEEPING_PAUSE);
    }
  }
}

/** `undefined` = the session ends. */
function renewedBy(
  renewal: Renewal,
  kept: StoredOidc,
  options: OidcOptions,
  askedAt: number,
): StoredOidc | undefined {
  const asked = { ...kept, askedAt, askingUntil: 0 };
  if (renewal === 'refused') {
    return undefined;
  }
  if (renewal === 'unknown') {
    return { ...asked, refreshToken: undefined };
  }
  if (renewal === 'away') {
    return asked;
  }
  const caller = oidcCaller(renewal.claims, options);
  if (caller?.identity !== kept.caller.identity || renewal.claims.sub !== kept.sub) {
    return undefined;
  }
  return {
    ...oidcSession(caller, { ...renewal, refreshToken: renewal.refreshToken ?? kept.refreshToken }, options),
    sid: kept.sid,
    askedAt,
    confirmedAt: askedAt,
  };
}

function isConfirmedFor(
  milliseconds: number,
  { confirmedAt }: StoredOidc,
  { since, now }: HeldSession,
): boolean {
  return isWithin(milliseconds, confirmedAt ?? since, now);
}

/** If a clock was set back, nothing lasts longer. */
function isWithin(milliseconds: number, since: number, now: number): boolean {
  return now >= since && now < since + milliseconds;
}

/** The renewing process may have been killed. */
function isAsking(ctx: Context, { askingUntil }: StoredOidc, { now }: HeldSession): boolean {
  return now < askingUntil && askingUntil <= now + patienceOf(ctx);
}

/** In milliseconds: a renewal takes no longer than the deadline of the service. */
function patienceOf(ctx: Context): number {
  const { deadline } = stateOf(ctx).generation.options;
  return Math.max(ASK_EVERY, 1000 * deadline) + KEEPING_ATTEMPTS * KEEPING_PAUSE;
}

/** From the current configuration; without `issuer`, this login is off. */
export function oidcOptionsOf(ctx: Context): OidcOptions {
  return sectionOf(stateOf(ctx).generation.configuration, oidcSection);
}

/** A digest, since the options may hold a secret. */
export function keyOf(options: OidcOptions): string {
  return hash('sha256', JSON.stringify(options));
}

/** From the ID token, and optionally from the userinfo endpoint. */
export type Claims = Readonly<Record<string, unknown>>;

/** Maximum number of values; further ones are ignored. */
const MAX_VALUES = 10_000;
const MAX_LENGTH = 255;

const list = z.array(z.unknown());
const object = z.record(z.string(), z.unknown());

/** `undefined` = no rights here: the claims have no user, or neither a role nor a project. */
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
    // Databases would reject the others.
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

/** `/projects/{project}/{role}`: names match anything but slashes. */
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

/** One text that can be recorded. Numeric ids are accepted up to the largest safe integer. */
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

/** The claim of exactly this name, or else a nested one along its dots. */
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
