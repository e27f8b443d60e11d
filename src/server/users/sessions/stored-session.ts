/** The content of a session: its proof, which keeps it valid at any replica, encrypted. */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { callerSchema } from '../caller.ts';
import type { ProviderMarks } from './session-store.ts';

/** A configured token. The session ends when the token is removed. */
const fixed = z.object({ kind: z.literal('token'), identity: z.string(), key: z.string() });

/** A Keystone token. The session ends when it expires or is revoked, or its user loses the roles here. */
const keystone = z.object({
  kind: z.literal('keystone'),
  userId: z.string(),
  /** A token for a project or the system. */
  scoped: z.string(),
  /** An unscoped token, for switching projects. `undefined` = the user logged in with a token. */
  unscoped: z.string().optional(),
});

/** Times are milliseconds of the epoch, by the clock of the store. */
const oidc = z.object({
  kind: z.literal('oidc'),
  /** Digest of the options with which it was opened. */
  key: z.string(),
  sub: z.string(),
  sid: z.string().optional(),
  caller: callerSchema,
  /** For renewals; `undefined` = the issuer provides none. */
  refreshToken: z.string().optional(),
  /** When the issuer last confirmed it; `undefined` = when the session was opened. */
  confirmedAt: z.number().optional(),
  /** When the last renewal began. */
  askedAt: z.number(),
  /** Until then, one request of any replica may be renewing it. */
  askingUntil: z.number(),
});

const storedProof = z.discriminatedUnion('kind', [fixed, keystone, oidc]);

export type StoredProof = z.infer<typeof storedProof>;
export type StoredKeystone = z.infer<typeof keystone>;
export type StoredOidc = z.infer<typeof oidc>;

/** The sealed content. `csrf`: the token that forms of the session must send. */
export const storedSession = z.object({ csrf: z.string(), proof: storedProof });
export type StoredSession = z.infer<typeof storedSession>;

/** The owner of a session, as in `Caller`; whether many may share it, like a token; the provider's hashes. */
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

/** Hashes for the rows of sessions, which do not reveal the user. */
export function marksOf(
  key: string,
  { sub, sid }: { readonly sub?: string | undefined; readonly sid?: string | undefined },
): ProviderMarks {
  const mark = (kind: string, text: string | undefined) =>
    text === undefined ? null : createHmac('sha256', key).update(`${kind} ${text}`).digest('base64');
  return { sub: mark('sub', sub), sid: mark('sid', sid) };
}

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** `purpose`: the same secret gives another key for another purpose. */
export function sealingKey(secret: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `blazar-enforcement ${purpose}`, KEY_BYTES));
}

export function seal(value: unknown, key: Buffer): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv);
  const sealed = [cipher.update(JSON.stringify(value), 'utf8'), cipher.final()];
  return Buffer.concat([iv, cipher.getAuthTag(), ...sealed]).toString('base64url');
}

/** `undefined` = sealed with another key, or changed. */
export function unseal(sealed: string, key: Buffer): unknown {
  const bytes = Buffer.from(sealed, 'base64url');
  if (bytes.length <= IV_BYTES + TAG_BYTES) {
    return undefined;
  }
  try {
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    const opened = [decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()];
    return JSON.parse(Buffer.concat(opened).toString());
  } catch {
    return undefined;
  }
}

/** 256 bits. */
export function randomText(): string {
  return randomBytes(KEY_BYTES).toString('base64url');
}

export function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}
