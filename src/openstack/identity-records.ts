/** Projects, users and domains, as Keystone describes them by id. */
import { z } from 'zod';
import { errorText } from '../base/errors.ts';
import type { Keystone } from './contract.ts';

export const IDENTITY_KINDS = ['project', 'user', 'domain'] as const;
export type IdentityKind = (typeof IDENTITY_KINDS)[number];

/** What Keystone says about an id. */
export interface IdentityRecord {
  readonly name: string;
  /** Of a project or a user; a domain has none. */
  readonly domainId: string | undefined;
  /** Of a project. */
  readonly tags: readonly string[];
}

/**
 * Why there is no record:
 * - `implausible`: no id of Keystone looks like this; it was not asked
 * - `unknown`: Keystone has nothing with this id
 * - `forbidden`: our account may not read it
 * - `unusable`: the answer is none of Keystone, or not about this id
 * - `unavailable`: there was no answer, or not in time
 */
export type MissingReason = 'implausible' | 'unknown' | 'forbidden' | 'unusable' | 'unavailable';

export interface Missing {
  readonly missing: MissingReason;
  /** For the log. */
  readonly error: string;
}

/**
 * Ids of Keystone have at most 64 characters. WSGI servers decode `%2F` before they look at the path, so that encoding alone does not
 * keep an id from being another path.
 */
const PLAUSIBLE_ID = /^(?!\.{1,2}$)[\w.@+-]{1,64}$/;

/** Keystone allows 255 characters, and 80 tags. */
const text = z.string().min(1).max(255);
const common = { id: z.string(), name: text };
const ANSWERS = {
  project: z.object({
    project: z.object({
      ...common,
      domain_id: z.string().min(1),
      // Missing in versions before Queens.
      tags: z.array(text).max(1000).default([]),
    }),
  }),
  user: z.object({ user: z.object({ ...common, domain_id: z.string().min(1) }) }),
  domain: z.object({ domain: z.object(common) }),
} as const;

const keystoneError = (code: number) => z.object({ error: z.object({ code: z.literal(code) }) });

export function isPlausible(id: string): boolean {
  return PLAUSIBLE_ID.test(id);
}

/** Asks for one record, by a plausible id. Never throws. */
export async function readRecord(
  keystone: Pick<Keystone, 'getIdentity'>,
  kind: IdentityKind,
  id: string,
): Promise<IdentityRecord | Missing> {
  try {
    const { status, body } = await keystone.getIdentity(`/${kind}s/${encodeURIComponent(id)}`);
    const answer = jsonOf(body);
    if (status === 200) {
      return recordOf(kind, id, answer);
    }
    const error = `Keystone answers ${status} for GET /v3/${kind}s/ID`;
    // A proxy has pages of its own for these.
    const isItsOwn = keystoneError(status).safeParse(answer).success;
    if (isItsOwn && status === 404) {
      return { missing: 'unknown', error };
    }
    return { missing: isItsOwn && status === 403 ? 'forbidden' : 'unusable', error };
  } catch (thrown) {
    return { missing: 'unavailable', error: errorText(thrown) };
  }
}

function recordOf(kind: IdentityKind, id: string, answer: unknown): IdentityRecord | Missing {
  const parsed = ANSWERS[kind].safeParse(answer);
  if (!parsed.success) {
    return { missing: 'unusable', error: `the answer for GET /v3/${kind}s/ID is not that of Keystone` };
  }
  const found = Object.values(parsed.data)[0] as z.infer<typeof ANSWERS.user>['user'] & {
    readonly tags?: readonly string[];
  };
  // A database that ignores case finds an id in any spelling, and a project is charged by the one that came.
  if (found.id !== id) {
    return { missing: 'unusable', error: `the answer for GET /v3/${kind}s/ID is about another id` };
  }
  return { name: found.name, domainId: found.domain_id, tags: Object.freeze(found.tags ?? []) };
}

function jsonOf(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
