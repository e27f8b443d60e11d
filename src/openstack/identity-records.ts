/** Keystone's projects, users and domains: by id, by `name@domain`, and from the cache. */

import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { errorText } from '../base/errors.ts';
import { jsonIn } from '../base/yaml/tree.ts';
import type { Clock } from '../filter/services.ts';
import type { HttpAnswer } from '../http/contract.ts';
import { type Keystone, KeystoneError, unusableAnswer } from './contract.ts';
import { isKeystoneError } from './own-token.ts';

export const IDENTITY_KINDS = ['project', 'user', 'domain'] as const;
export type IdentityKind = (typeof IDENTITY_KINDS)[number];

interface IdentityRecord {
  readonly name: string;
  /** For a project or user; a domain has none. */
  readonly domainId: string | undefined;
  /** For a project. */
  readonly tags: readonly string[];
}

/**
 * Why there is no record:
 * - `implausible`: not the form of a Keystone id; Keystone was not called
 * - `unknown`: Keystone has nothing with this id
 * - `forbidden`: our account may not read it
 * - `unusable`: the answer is not from Keystone, or not about this id
 * - `unavailable`: there was no answer, or not in time
 */
export type MissingReason = 'implausible' | 'unknown' | 'forbidden' | 'unusable' | 'unavailable';

export interface Missing {
  readonly missing: MissingReason;
  /** For the log. */
  readonly error: string;
}

/**
 * Keystone ids have at most 64 characters. WSGI servers decode `%2F` before routing, so encoding alone does
 * not stop an id from being another path.
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

export function isPlausible(id: string): boolean {
  return PLAUSIBLE_ID.test(id);
}

/** Reads one record, by a plausible id. Never throws. */
export async function readRecord(
  keystone: Pick<Keystone, 'getIdentity'>,
  kind: IdentityKind,
  id: string,
): Promise<IdentityRecord | Missing> {
  try {
    const { status, body } = await keystone.getIdentity(`/${kind}s/${encodeURIComponent(id)}`);
    if (status === 200) {
      return recordOf(kind, id, jsonIn(body));
    }
    const error = `Keystone answers ${status} for GET /v3/${kind}s/ID`;
    // A proxy has its own pages for these.
    const isItsOwn = isKeystoneError({ status, body });
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
    return { missing: 'unusable', error: `the answer for GET /v3/${kind}s/ID is not an answer of Keystone` };
  }
  const found = Object.values(parsed.data)[0] as z.infer<typeof ANSWERS.user>['user'] & {
    readonly tags?: readonly string[];
  };
  // A case-insensitive database finds any spelling of an id, but a project is charged by the request's spelling.
  if (found.id !== id) {
    return { missing: 'unusable', error: `the answer for GET /v3/${kind}s/ID is about another id` };
  }
  return { name: found.name, domainId: found.domain_id, tags: Object.freeze(found.tags ?? []) };
}

const listed = z.array(
  z.object({ id: z.string().min(1), name: z.string(), domain_id: z.string().nullish() }),
);

/**
 * The id of a project or user: `text` itself if Keystone has such an id, else that of the `name@domain`.
 * `undefined` = none. @throws KeystoneError, HttpCallError if Keystone gives no answer
 */
export async function accountIdOf(
  keystone: Pick<Keystone, 'getIdentity'>,
  kind: 'project' | 'user',
  text: string,
): Promise<string | undefined> {
  if (isPlausible(text) && !('missing' in (await readRecord(keystone, kind, text)))) {
    return text;
  }
  const at = text.lastIndexOf('@');
  const name = text.slice(0, at);
  const domain = text.slice(at + 1);
  if (at < 1 || domain === '') {
    return undefined;
  }
  const domainId = await idIn(keystone, `/domains?name=${encodeURIComponent(domain)}`, 'domains', domain);
  const query = `name=${encodeURIComponent(name)}&domain_id=${encodeURIComponent(domainId ?? '')}`;
  return domainId === undefined
    ? undefined
    : idIn(keystone, `/${kind}s?${query}`, `${kind}s`, name, domainId);
}

/** A case-insensitive database lists more than the requested name. */
async function idIn(
  keystone: Pick<Keystone, 'getIdentity'>,
  path: string,
  key: string,
  name: string,
  domainId?: string,
): Promise<string | undefined> {
  const answer = await keystone.getIdentity(path);
  const fitting = entriesOf(answer, key).filter(
    (one) => one.name === name && (domainId === undefined || one.domain_id === domainId),
  );
  if (fitting.length > 1) {
    throw unusableAnswer(`Keystone has several ${key} of this name; give the id`);
  }
  return fitting[0]?.id;
}

function entriesOf({ status, body }: HttpAnswer, key: string): z.infer<typeof listed> {
  if (status === 403) {
    throw new KeystoneError('forbidden', `the account of [keystone] may not list ${key} (403); give the id`);
  }
  const parsed = z.object({ [key]: listed }).safeParse(jsonIn(body));
  const entries = parsed.data?.[key];
  if (status !== 200 || entries === undefined) {
    throw unusableAnswer(`GET /v3/${key}: the answer (${status}) is not an answer of Keystone`);
  }
  return entries;
}

interface CacheTimes {
  /** In milliseconds. Older records are used only if Keystone does not answer. */
  readonly cacheMs: number;
  /** In milliseconds. Older records are not used. */
  readonly maxAgeMs: number;
}

interface Kept {
  readonly record: IdentityRecord;
  readonly askedAt: number;
}

/** Limits of the records and their characters: some 10 MB. */
const MAX_KEPT = 10_000;
const MAX_CHARACTERS = 4_000_000;
/** Concurrent requests. Further records count as unavailable. */
const MAX_UNDER_WAY = 128;
/** How long no request waits after a late answer, and a record is not requested again after a failure. */
const PAUSE_MS = 5_000;
/** Keystone's other replicas may get a new project this much later. */
const UNKNOWN_MS = 30_000;

const IMPLAUSIBLE: Missing = { missing: 'implausible', error: 'it does not look like an id of Keystone' };
const BUSY: Missing = { missing: 'unavailable', error: 'too many names are being asked for' };
const LATE: Missing = { missing: 'unavailable', error: 'Keystone has not answered in time' };

function newRecords(): LRUCache<string, Kept> {
  return new LRUCache({
    max: MAX_KEPT,
    maxSize: MAX_CHARACTERS,
    sizeCalculation: ({ record: { name, tags } }, id) =>
      tags.reduce((size, tag) => size + 20 + tag.length, 100 + id.length + name.length),
  });
}

export class IdentityCache {
  readonly #ask: (id: string) => Promise<IdentityRecord | Missing>;
  readonly #clock: Clock;
  readonly #times: CacheTimes;
  readonly #kept: LRUCache<string, Kept>;
  /** Separate from the records, so that random ids do not evict them. */
  readonly #missing = new LRUCache<string, Missing & { readonly until: number }>({ max: MAX_KEPT });
  readonly #underWay = new Map<string, Promise<void>>();
  #noWaitUntil = Number.NEGATIVE_INFINITY;

  /** `earlier`: shares its records with this cache. */
  constructor(
    ask: (id: string) => Promise<IdentityRecord | Missing>,
    clock: Clock,
    times: CacheTimes,
    earlier?: IdentityCache,
  ) {
    this.#ask = ask;
    this.#clock = clock;
    this.#times = times;
    this.#kept = earlier === undefined ? newRecords() : earlier.#kept;
  }

  /** The current record, up to the maximum age. Sends no request. */
  get(id: string): IdentityRecord | Missing {
    const kept = this.#kept.get(id);
    if (kept !== undefined && this.#age(kept) < this.#times.maxAgeMs) {
      return kept.record;
    }
    return isPlausible(id) ? (this.#missing.get(id) ?? (this.#underWay.has(id) ? LATE : BUSY)) : IMPLAUSIBLE;
  }

  /**
   * Requests a record if it is unknown or old. Returns a promise only if it is worth waiting for: it resolves
   * when `get` has more. Records are renewed after half of their time, so that requests never wait for one in
   * use.
   */
  refresh(id: string): Promise<void> | undefined {
    const kept = this.#kept.get(id);
    const age = kept === undefined ? Number.POSITIVE_INFINITY : this.#age(kept);
    // If the clock was set back, the record counts as old.
    if (age >= 0 && age < this.#times.cacheMs / 2) {
      return undefined;
    }
    if (kept === undefined && !isPlausible(id)) {
      return undefined;
    }
    const now = this.#clock.now().getTime();
    const missing = this.#missing.get(id);
    if (missing !== undefined && now < missing.until && missing.until <= now + this.#longest()) {
      return undefined;
    }
    const asked = this.#askOnce(id);
    return (age >= 0 && age < this.#times.cacheMs) || this.#isLate(now) ? undefined : asked;
  }

  isUnderWay(id: string): boolean {
    return this.#underWay.has(id);
  }

  /** An answer was late: for a while, no request waits. */
  late(): void {
    this.#noWaitUntil = this.#clock.now().getTime() + PAUSE_MS;
  }

  #isLate(now: number): boolean {
    return now < this.#noWaitUntil && this.#noWaitUntil <= now + PAUSE_MS;
  }

  #age({ askedAt }: Kept): number {
    return this.#clock.now().getTime() - askedAt;
  }

  #longest(): number {
    return Math.max(UNKNOWN_MS, this.#times.cacheMs);
  }

  #askOnce(id: string): Promise<void> | undefined {
    const underWay = this.#underWay.get(id);
    if (underWay !== undefined || this.#underWay.size >= MAX_UNDER_WAY) {
      return underWay;
    }
    const askedAt = this.#clock.now().getTime();
    const asked = this.#ask(id)
      .then((answer) => this.#keep(id, answer, askedAt))
      .finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, asked);
    return asked;
  }

  #keep(id: string, answer: IdentityRecord | Missing, askedAt: number): void {
    if (!('missing' in answer)) {
      this.#kept.set(id, { record: answer, askedAt });
      this.#missing.delete(id);
      return;
    }
    if (answer.missing === 'unknown') {
      this.#kept.delete(id);
    }
    this.#missing.set(id, {
      ...answer,
      until: this.#clock.now().getTime() + this.#pauseAfter(answer.missing),
    });
  }

  #pauseAfter(reason: MissingReason): number {
    switch (reason) {
      case 'forbidden':
        return this.#times.cacheMs;
      case 'unknown':
        return Math.min(UNKNOWN_MS, this.#times.cacheMs);
      default:
        return PAUSE_MS;
    }
  }
}
