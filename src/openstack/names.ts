/** Keystone's names for the ids of requests. They never cause a refusal: unknown names are missing. */
import { setTimeout as pause } from 'node:timers/promises';
import { inTime, withinDeadline } from '../base/deadline.ts';
import type { Logger } from '../base/logger.ts';
import type { Clock } from '../filter/services.ts';
import type { Named, RequestNames } from '../filter/verdict.ts';
import type { Context } from '../lease/lease.ts';
import type { Keystone } from './contract.ts';
import {
  accountIdOf,
  IdentityCache,
  type IdentityKind,
  type Missing,
  type MissingReason,
  readRecord,
} from './identity-records.ts';
import type { KeystoneOptions } from './keystone-options.ts';

/** Notified of missing names, for metrics. It must not throw. */
export interface NamesObserver {
  nameMissing(kind: IdentityKind, reason: MissingReason): void;
}

export interface NamesParts {
  readonly logger: Logger;
  readonly clock: Clock;
  readonly observer?: NamesObserver | undefined;
}

type Ids = Pick<Context, 'project_id' | 'user_id'>;

/** How long a request waits for unknown names, in milliseconds. */
const MAX_WAIT_MS = 2_000;
/** Between two log lines of the same reason. */
const LOG_PAUSE_MS = 60_000;

/** How long a search waits for Keystone, in seconds. */
const SEARCH_WAIT = 1;

/** How many names of a long list are requested at once. */
const TURN = 50;

const CONSEQUENCE: Readonly<Record<IdentityKind, string>> = {
  project: 'limits and exemptions by name or tag do not apply to it, the general limits do',
  user: 'limits by name do not apply to it, others do',
  domain: 'limits and exemptions by name do not apply to its projects and users, others do',
};

interface Accounts {
  readonly projects?: readonly string[] | undefined;
  readonly users?: readonly string[] | undefined;
}

type Account = Named & { readonly tags: readonly string[] };

/** `[keystone] resolve_names`. Calls may run concurrently. */
export class Names {
  readonly #caches: Readonly<Record<IdentityKind, IdentityCache>>;
  readonly #keystone: Pick<Keystone, 'getIdentity'>;
  readonly #parts: NamesParts;
  readonly #authUrl: string | undefined;
  readonly #loggedAt = new Map<string, number>();

  /** `earlier`: those of another configuration; they are shared if they are of the same Keystone. */
  constructor(
    keystone: Pick<Keystone, 'getIdentity'>,
    options: Pick<KeystoneOptions, 'auth_url' | 'names_cache_time' | 'names_max_age'>,
    parts: NamesParts,
    earlier?: Names,
  ) {
    this.#keystone = keystone;
    this.#parts = parts;
    this.#authUrl = options.auth_url;
    const isSame = earlier !== undefined && earlier.#authUrl === options.auth_url;
    const shared = isSame ? earlier.#caches : undefined;
    const maxAgeMs = options.names_max_age * 1000;
    const times = { cacheMs: Math.min(options.names_cache_time * 1000, maxAgeMs), maxAgeMs };
    const cache = (kind: IdentityKind) =>
      new IdentityCache((id) => readRecord(keystone, kind, id), parts.clock, times, shared?.[kind]);
    this.#caches = { project: cache('project'), user: cache('user'), domain: cache('domain') };
  }

  /**
   * The names for a request that must be answered within `left`. A promise only if they are unknown: it
   * resolves after at most two seconds, or half of that time, with the names known then. Missing names are
   * logged and counted.
   */
  of(ids: Ids, left?: { readonly milliseconds: number }): RequestNames | Promise<RequestNames> {
    const asked = this.#refresh(ids);
    if (asked === undefined) {
      return this.#named(ids, true);
    }
    const waitMs = Math.min(MAX_WAIT_MS, (left?.milliseconds ?? Number.POSITIVE_INFINITY) / 2);
    return this.#within(waitMs, asked, ids).then(() => this.#named(ids, true));
  }

  /** The names that are known already. Sends no request. */
  known(ids: Ids): RequestNames {
    return this.#named(ids, false);
  }

  /** The reason for the first project without a name. */
  why(projectIds: Iterable<string>): string | undefined {
    for (const id of projectIds) {
      const record = this.#caches.project.get(id);
      if ('missing' in record) {
        return record.error;
      }
    }
    return undefined;
  }

  /** Requests the names of many ids in batches, so that `known` has them. Takes at most `waitMs`. */
  async learn(projectIds: Iterable<string>, userIds: Iterable<string>, waitMs = MAX_WAIT_MS): Promise<void> {
    const until = performance.now() + waitMs;
    const ids = [
      ...[...new Set(projectIds)].map((id) => ['project', id] as const),
      ...[...new Set(userIds)].map((id) => ['user', id] as const),
    ];
    for (let next = 0; next < ids.length && performance.now() < until; next += TURN) {
      const asked = ids.slice(next, next + TURN).map(([kind, id]) => this.#refreshAccount(kind, id));
      await this.#within(Math.max(0, until - performance.now()), Promise.all(asked));
    }
  }

  /**
   * To find all decisions of accounts under any earlier name: adds to each `name@domain` the id of the
   * account that now has this name. If Keystone does not answer in time, returns the input. Never fails.
   */
  async withIds<Asked extends Accounts>(asked: Asked): Promise<Asked> {
    const idsOf = async (kind: 'project' | 'user', texts: readonly string[] = []) => {
      const ids = texts.map(async (text) =>
        text.includes('@')
          ? withinDeadline(SEARCH_WAIT, (wait) => inTime(accountIdOf(this.#keystone, kind, text), wait))
          : undefined,
      );
      const told = await Promise.allSettled(ids);
      return told.flatMap((one) => (one.status === 'fulfilled' && one.value) || []);
    };
    const [projectIds, userIds] = await Promise.all([
      idsOf('project', asked.projects),
      idsOf('user', asked.users),
    ]);
    return {
      ...asked,
      projects: asked.projects && [...asked.projects, ...projectIds],
      users: asked.users && [...asked.users, ...userIds],
    };
  }

  /** A promise if there is something to wait for. */
  #refresh({ project_id, user_id }: Ids): Promise<unknown> | undefined {
    const project = this.#refreshAccount('project', project_id);
    const user = this.#refreshAccount('user', user_id);
    return project === undefined || user === undefined ? (project ?? user) : Promise.all([project, user]);
  }

  #refreshAccount(kind: 'project' | 'user', id: string): Promise<unknown> | undefined {
    return (
      this.#caches[kind].refresh(id)?.then(() => this.#refreshDomain(kind, id)) ??
      this.#refreshDomain(kind, id)
    );
  }

  #refreshDomain(kind: 'project' | 'user', id: string): Promise<void> | undefined {
    const record = this.#caches[kind].get(id);
    return 'missing' in record || record.domainId === undefined
      ? undefined
      : this.#caches.domain.refresh(record.domainId);
  }

  async #within(waitMs: number, asked: Promise<unknown>, ids?: Ids): Promise<void> {
    const done = new AbortController();
    const over = pause(waitMs, 'over', { signal: done.signal }).catch(() => undefined);
    const first = await Promise.race([asked, over]);
    done.abort();
    if (first === 'over' && ids !== undefined) {
      this.#late(ids);
    }
  }

  #late({ project_id, user_id }: Ids): void {
    for (const [kind, id] of [
      ['project', project_id],
      ['user', user_id],
    ] as const) {
      const cache = this.#caches[kind];
      if (cache.isUnderWay(id)) {
        cache.late();
      }
      const record = cache.get(id);
      const { domain } = this.#caches;
      if (!('missing' in record) && record.domainId !== undefined && domain.isUnderWay(record.domainId)) {
        domain.late();
      }
    }
  }

  #named({ project_id, user_id }: Ids, reports: boolean): RequestNames {
    return {
      project: this.#account('project', project_id, reports),
      user: this.#account('user', user_id, reports),
    };
  }

  #account(kind: 'project' | 'user', id: string, reports: boolean): Account | undefined {
    const record = this.#caches[kind].get(id);
    if ('missing' in record) {
      if (reports) {
        this.#report(kind, id, record);
      }
      return undefined;
    }
    const { name, domainId = '', tags } = record;
    const domain = this.#caches.domain.get(domainId);
    if ('missing' in domain && reports) {
      this.#report('domain', domainId, domain);
    }
    // Frozen: all filters share it. Project tags apply even if the domain's name is unknown.
    return Object.freeze({ name, domain: 'missing' in domain ? '' : domain.name, tags });
  }

  /** Missing permissions are logged once, other reasons with pauses. */
  #report(kind: IdentityKind, id: string, { missing, error }: Missing): void {
    const { logger, clock, observer } = this.#parts;
    observer?.nameMissing(kind, missing);
    const now = clock.now().getTime();
    const which = `${kind} ${missing}`;
    const loggedAt = this.#loggedAt.get(which);
    if (loggedAt !== undefined && (missing === 'forbidden' || Math.abs(now - loggedAt) < LOG_PAUSE_MS)) {
      return;
    }
    this.#loggedAt.set(which, now);
    logger.warn(
      { kind, id: id.slice(0, 255), reason: missing, error },
      `Keystone did not return the name of a ${kind}: ${CONSEQUENCE[kind]}`,
    );
  }
}
