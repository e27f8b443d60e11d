/**
 * Roles and bindings of the cluster, followed by watch. They say for which policies it is worth to create a review, and whose answers
 * are no longer to be trusted. They never decide: a review does.
 */
import type { Account } from '../../policies/access.ts';
import type { ApiObject } from '../api/contract.ts';
import { elapsed } from '../api/timing.ts';
import type { Followed, ObjectListener } from './contract.ts';
import {
  RBAC_KINDS,
  type RbacKind,
  roleId,
  subjectsOf,
  UseGrants,
  useBindingOf,
  useGrantOf,
} from './use-grants.ts';

/** Longer than any answer is kept. */
const KEPT_MILLISECONDS = 15_000;
/** With more changes than these at once, everything counts as changed. */
const MOST = 10_000;

export class RecentChanges {
  /** In the order of their times. */
  readonly #times = new Map<string, number>();
  readonly #most: number;
  #everythingAt = Number.NEGATIVE_INFINITY;

  constructor(most = MOST) {
    this.#most = most;
  }

  get size(): number {
    return this.#times.size;
  }

  /** `now`: never before the time of an earlier call. */
  add(name: string, now: number): void {
    this.#times.delete(name);
    this.#times.set(name, now);
    for (const [old, at] of this.#times) {
      if (at > now - KEPT_MILLISECONDS) {
        break;
      }
      this.#times.delete(old);
    }
    if (this.#times.size > this.#most) {
      this.#times.clear();
      this.#everythingAt = now;
    }
  }

  /** When one of these names changed last; `-Infinity` = not lately. */
  latest(names: Iterable<string>): number {
    let latest = this.#everythingAt;
    for (const name of names) {
      latest = Math.max(latest, this.#times.get(name) ?? latest);
    }
    return latest;
  }
}

/** What is used of it where reviews are created. */
export interface UseHint {
  /** Grows with each change of what somebody may use. */
  readonly version: number;
  /** Of these names, those that the account may use by roles and bindings. `undefined` = it cannot be told: any of them. */
  candidates(account: Account, names: readonly string[]): readonly string[] | undefined;
  /** When that changed last for an account, as `elapsed()`; `-Infinity` = not lately. */
  changedAt(account: Account): number;
}

/** A watch that broke is usually back sooner. */
const GRACE_MILLISECONDS = 3000;
/** A watch proves at least every 10 s that nothing is missing. After this it is silent, which it will find out itself later. */
const SILENT_MILLISECONDS = 12_000;

export class RbacHint implements UseHint {
  /** One for each kind, for who lists and watches it. */
  readonly listeners: Readonly<Record<RbacKind, ObjectListener>>;
  readonly #now: () => number;
  readonly #changes = new RecentChanges();
  readonly #grants: UseGrants;
  readonly #followed = new Map<RbacKind, Pick<Followed, 'following'>>();
  /** Objects that could not be read: while there is one, nothing can be told. */
  readonly #unreadable = new Set<string>();
  #version = 0;

  /** `now`: a monotonic clock in milliseconds. */
  constructor({ now = elapsed }: { readonly now?: () => number } = {}) {
    this.#now = now;
    this.#grants = new UseGrants((subject) => {
      this.#version += 1;
      this.#changes.add(subject, this.#now());
    });
    this.listeners = {
      roles: this.#listener('roles'),
      clusterroles: this.#listener('clusterroles'),
      rolebindings: this.#listener('rolebindings'),
      clusterrolebindings: this.#listener('clusterrolebindings'),
    };
  }

  get version(): number {
    return this.#version;
  }

  get size(): UseGrants['size'] {
    return this.#grants.size;
  }

  /** Why nothing can be told, for the log; `undefined` = it can. */
  get problem(): string | undefined {
    for (const kind of RBAC_KINDS) {
      const following = this.#followed.get(kind)?.following;
      if (following === undefined || !following.hasList) {
        return `${kind} are not listed${following?.problem === undefined ? '' : `: ${following.problem}`}`;
      }
      const { problem, currentAt = Number.NEGATIVE_INFINITY } = following;
      const age = this.#now() - currentAt;
      if (age > SILENT_MILLISECONDS || (problem !== undefined && age > GRACE_MILLISECONDS)) {
        return `${kind} are not followed: ${problem ?? 'the watch is silent'}`;
      }
    }
    const [unreadable] = this.#unreadable;
    return unreadable === undefined ? undefined : `${unreadable.replaceAll('\n', ' ')} cannot be read`;
  }

  follow(kind: RbacKind, followed: Pick<Followed, 'following'>): void {
    this.#followed.set(kind, followed);
  }

  candidates(account: Account, names: readonly string[]): readonly string[] | undefined {
    if (this.problem !== undefined) {
      return undefined;
    }
    const granted = this.#grants.of(account);
    return granted === 'all' ? names : names.filter((name) => granted.has(name));
  }

  changedAt(account: Account): number {
    return this.#changes.latest(subjectsOf(account));
  }

  #listener(kind: RbacKind): ObjectListener {
    const isRole = kind === 'roles' || kind === 'clusterroles';
    let known = new Set<string>();
    const remove = (id: string) => {
      this.#unreadable.delete(id);
      known.delete(id);
      if (isRole) {
        this.#grants.removeRole(id);
      } else {
        this.#grants.removeBinding(id);
      }
    };
    const set = (object: ApiObject) => {
      const id = roleId(kind, object.metadata);
      try {
        if (isRole) {
          this.#grants.setRole(id, useGrantOf(object));
        } else {
          this.#grants.setBinding(id, useBindingOf(kind, object));
        }
        this.#unreadable.delete(id);
      } catch {
        remove(id);
        this.#unreadable.add(id);
      }
      known.add(id);
    };
    return {
      changed: set,
      removed: ({ metadata }) => remove(roleId(kind, metadata)),
      replaced: (objects) => {
        const gone = known;
        known = new Set();
        for (const object of objects) {
          gone.delete(roleId(kind, object.metadata));
          set(object);
        }
        for (const id of gone) {
          remove(id);
        }
      },
    };
  }
}
