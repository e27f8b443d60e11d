/** What is kept, sealed, of a session: what has opened it, and keeps it open at any replica. */
import { createHmac } from 'node:crypto';
import { z } from 'zod';
import type { ProviderMarks } from './session-store.ts';

const membership = z.object({
  projectId: z.string(),
  name: z.string().optional(),
  domain: z.string().optional(),
  isManager: z.boolean(),
});

const caller = z.object({
  kind: z.enum(['operator', 'reader', 'member']),
  provenBy: z.literal('oidc'),
  identity: z.string(),
  who: z.string(),
  name: z.string(),
  userId: z.string().nullable(),
  memberships: z.array(membership),
});

/** A token of the configuration. The session ends when it is removed. */
const fixed = z.object({ kind: z.literal('token'), identity: z.string(), key: z.string() });

/** A token of Keystone. The session ends when it expires or is revoked, or when its user loses the roles that count here. */
const keystone = z.object({
  kind: z.literal('keystone'),
  userId: z.string(),
  /** For a project or the system. */
  scoped: z.string(),
  /** Without a scope: for switching to another project. `undefined` = the caller has logged in with a token. */
  unscoped: z.string().optional(),
});

/** Times are milliseconds of the epoch, by the clock of the store. */
const oidc = z.object({
  kind: z.literal('oidc'),
  /** Of the options with which it was opened. */
  key: z.string(),
  sub: z.string(),
  sid: z.string().optional(),
  caller,
  /** With which the issuer is asked again; `undefined` = it gives none. */
  refreshToken: z.string().optional(),
  /** When the issuer has last confirmed it; `undefined` = when the session was opened. */
  confirmedAt: z.number().optional(),
  /** When the issuer was last asked. */
  askedAt: z.number(),
  /** Until then one request, of any replica, may be asking it. */
  askingUntil: z.number(),
});

const storedProof = z.discriminatedUnion('kind', [fixed, keystone, oidc]);

export type StoredProof = z.infer<typeof storedProof>;
export type StoredKeystone = z.infer<typeof keystone>;
export type StoredOidc = z.infer<typeof oidc>;

/** All that is sealed. `csrf`: what forms of the session must send back. */
export const storedSession = z.object({ csrf: z.string(), proof: storedProof });
export type StoredSession = z.infer<typeof storedSession>;

/** Whose a session is, as in `Caller`; whether many may have the identity, such as a token; and by which a provider ends it. */
export function bindingOf(proof: StoredProof): ProviderMarks & { identity: string; isShared: boolean } {
  const marks = { sub: null, sid: null };
  switch (proof.kind) {
    case 'token':
      return { identity: proof.identity, isShared: true, ...marks };
    case 'keystone':
      return { identity: `keystone ${proof.userId}`, isShared: false, ...marks };
    case 'oidc':
      return { identity: proof.caller.identity, isShared: false, ...marksOf(proof.key, proof) };
  }
}

/** For the rows of sessions: they tell nobody who the user is. */
export function marksOf(
  key: string,
  { sub, sid }: { readonly sub?: string | undefined; readonly sid?: string | undefined },
): ProviderMarks {
  const mark = (kind: string, text: string | undefined) =>
    text === undefined ? null : createHmac('sha256', key).update(`${kind} ${text}`).digest('base64');
  return { sub: mark('sub', sub), sid: mark('sid', sid) };
}
