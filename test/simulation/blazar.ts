/** What a Blazar really has allocated, in seconds of its own clock, and what its API answers. */
import type { Lease } from '../../src/index.ts';
import type { Use, Window } from '../ledger/plain-blazar.ts';

export const PROJECT = 'climate';

export interface Held {
  readonly id: string;
  readonly user: string;
  readonly min: number;
  readonly max: number;
  /** Seconds of the epoch, as everything here. */
  readonly start: number;
  readonly end: number;
  /** How many it was given, from `min` to `max`. */
  readonly hosts: number;
  /** As in its API: one that is being changed is neither PENDING nor ACTIVE. */
  readonly status: 'PENDING' | 'CREATING' | 'UPDATING' | 'DELETING';
  /** By its own clock. */
  readonly createdAt: number;
}

/** When histories begin, in seconds of the epoch. */
export const BEGIN = Date.UTC(2026, 11, 1) / 1000;

/** A lease of another project that is always there. */
export const ANCHOR_PROJECT = 'anchor';
export const ANCHOR: Held = {
  id: 'anchor',
  user: 'root',
  min: 1,
  max: 1,
  hosts: 1,
  status: 'PENDING',
  start: BEGIN - 7200,
  end: BEGIN + 365 * 86_400,
  createdAt: BEGIN - 7200,
};

export class Blazar {
  /** By how much its clock is ahead, in seconds. */
  ahead = 0;
  readonly leases = new Map<string, Held>();
  readonly #used: Use[] = [];
  #ids = 0;

  newId(): string {
    this.#ids += 1;
    return `lease-${this.#ids}`;
  }

  add(lease: Held): void {
    this.leases.set(lease.id, lease);
  }

  /** What was used by `now` stays used, whatever becomes of the lease. */
  change(id: string, now: number, change: Partial<Held>): void {
    const before = this.leases.get(id);
    if (before === undefined) {
      return;
    }
    const after = { ...before, ...change };
    const isOther = after.hosts !== before.hosts || after.start !== before.start || after.end !== before.end;
    if (isOther) {
      this.#use(before, before.start, Math.min(now, before.end));
    }
    this.leases.set(id, after);
    if (isOther && before.start < now) {
      this.#begins.set(id, now);
    }
  }

  /** From `now` on it uses nothing; it stays listed until `remove`. */
  stop(id: string, now: number): void {
    const lease = this.leases.get(id);
    if (lease !== undefined) {
      this.#use(lease, lease.start, Math.min(now, lease.end));
      this.#stopped.add(id);
    }
  }

  remove(id: string): void {
    this.leases.delete(id);
    this.#begins.delete(id);
    this.#stopped.delete(id);
  }

  /** Those that use something, or will. */
  get live(): Held[] {
    return [...this.leases.values()].filter(({ id }) => !this.#stopped.has(id));
  }

  /** In host-seconds: what was used within the window, and what the leases that are there will use. */
  cost(window: Window): number {
    const rest = this.live.map(({ id, user, hosts, start, end }) => ({
      user,
      hosts,
      until: end,
      from: Math.max(start, this.#begins.get(id) ?? start),
    }));
    return [...this.#used, ...rest]
      .filter(({ user }) => window.user === null || window.user === user)
      .map(
        ({ hosts, from, until }) =>
          hosts * Math.max(0, Math.min(until, window.until) - Math.max(from, window.from)),
      )
      .reduce((sum, one) => sum + one, 0);
  }

  /** The body of an answer of its API. */
  answer(path: string): string {
    if (path.endsWith('/leases')) {
      return JSON.stringify({ leases: [ANCHOR, ...this.leases.values()].map(listed) });
    }
    if (path.endsWith('/os-hosts/allocations')) {
      const shares = [ANCHOR, ...this.leases.values()].flatMap(({ id, hosts }) =>
        hostIds(hosts).map((host) => ({ host, share: { id: `r-${id}`, lease_id: id } })),
      );
      const allocations = hostIds(HOSTS).map((resource_id) => ({
        resource_id,
        reservations: shares.filter(({ host }) => host === resource_id).map(({ share }) => share),
      }));
      return JSON.stringify({ allocations });
    }
    return JSON.stringify({ hosts: hostIds(HOSTS).map((id) => ({ id })) });
  }

  /** From when on what a lease uses is not in `#used` yet. */
  readonly #begins = new Map<string, number>();
  readonly #stopped = new Set<string>();

  #use({ id, user, hosts }: Held, start: number, until: number): void {
    const from = Math.max(start, this.#begins.get(id) ?? start);
    if (from < until && !this.#stopped.has(id)) {
      this.#used.push({ user, hosts, from, until });
    }
  }
}

const HOSTS = 6;

export interface Asked {
  /** `undefined` = a stock Blazar gives a lease its id when it was allowed. */
  readonly id?: string | undefined;
  readonly min: number;
  readonly max: number;
  readonly start: number;
  readonly end: number;
}

/** As Blazar sends it, with the hosts that it has, or could get. */
export function asSent({ id, min, max, start, end }: Asked, hosts: readonly string[]): Lease {
  return {
    ...(id === undefined ? {} : { id }),
    name: 'run',
    start_date: dateOf(start),
    end_date: dateOf(end),
    reservations: [
      {
        id: `r-${id ?? ''}`,
        resource_type: 'physical:host',
        min,
        max,
        allocations: hosts.map((host) => ({ id: host })),
      },
    ],
  };
}

export function hostIds(count: number): string[] {
  return Array.from({ length: count }, (_, index) => String(index));
}

export function dateOf(second: number): string {
  return new Date(second * 1000).toISOString();
}

function listed({ id, user, min, max, start, end, status, createdAt }: Held) {
  return {
    id,
    name: 'run',
    project_id: id === ANCHOR.id ? ANCHOR_PROJECT : PROJECT,
    user_id: user,
    status,
    degraded: false,
    start_date: dateOf(start),
    end_date: dateOf(end),
    created_at: dateOf(createdAt),
    reservations: [
      {
        id: `r-${id}`,
        resource_type: 'physical:host',
        status: 'pending',
        min,
        max,
        missing_resources: false,
        resources_changed: false,
      },
    ],
  };
}
