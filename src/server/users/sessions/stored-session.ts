/** What is kept, sealed, of a session: what has opened it, and opens it again at any replica. */
import { z } from 'zod';

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

const fixed = z.object({ kind: z.literal('token'), identity: z.string(), key: z.string() });

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
export type StoredFixed = z.infer<typeof fixed>;
export type StoredKeystone = z.infer<typeof keystone>;
export type StoredOidc = z.infer<typeof oidc>;

/** All that is sealed. `csrf`: what forms of the session must send back. */
export const storedSession = z.object({ csrf: z.string(), proof: storedProof });
export type StoredSession = z.infer<typeof storedSession>;
