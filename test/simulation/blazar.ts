/** What a Blazar really has allocated, in seconds of its own clock, and what its API answers. */
import type { Lease } from '../../src/index.ts';
import { MAKING } from '../../src/lease/lease.ts';
import { ENDING } from '../../src/ledger/reconciliation/plan.ts';

export const PROJECT = 'climate';

/** So many hosts, from then until then, in seconds of the epoch. */
interface Use {
  readonly user: string;
  readonly hosts: number;
  readonly from: number;
  readonly until: number;
}

/** Of one user, or of all. */
export interface Window {
  readonly user: string | null;
  readonly from: number;
  readonly until: number;
}

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
  readonly status: 'PENDING' | 'CREATING' | 'UPDATING' | 'DELETING' | 'ERROR';
  /** By its own clock. */
  readonly createdAt: number;
  /** When it began, if that was before its start: its user had asked for that. */
  readonly begunAt?: number;
  /** Blazar could not end it at its end: it keeps its hosts. */
  readonly isOverdue?: boolean;
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
  /** Lease → when a complete comparison that has seen it began. */
  readonly #seenAt = new Map<string, number>();
  /** Lease that began early → since when no complete comparison has seen that it is in use. */
  readonly #earlySince = new Map<string, number>();
  /** In host-seconds: what leases that are gone used outside their dates, and no comparison has seen. */
  #unseen = 0;
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
    if (before.begunAt !== undefined && (isOther || change.status === 'UPDATING')) {
      // The next comparison charges it since it was last asked for.
      const since = this.#earlySince.get(id) ?? before.begunAt;
      this.#unseen += since === SEEN ? 0 : before.hosts * Math.max(0, Math.min(now, before.start) - since);
      this.#earlySince.set(id, now);
    }
    if (isOther) {
      this.#use(before, now);
    }
    this.leases.set(id, after);
    if (isOther && beginOf(before) < now) {
      this.#begins.set(id, now);
    }
  }

  /** From `now` on it uses nothing; it stays listed until `remove`. */
  stop(id: string, now: number): void {
    const lease = this.leases.get(id);
    if (lease !== undefined) {
      this.#use(lease, now);
      this.#unseen += this.#unseenOf(lease, now);
      this.#stopped.add(id);
    }
  }

  remove(id: string): void {
    this.leases.delete(id);
    this.#begins.delete(id);
    this.#stopped.delete(id);
    this.#seenAt.delete(id);
    this.#earlySince.delete(id);
  }

  /** A complete comparison has seen these leases as they are. `from`: when it began; `until`: when Blazar answered. */
  see(leases: Iterable<Held>, from: number, until: number): void {
    for (const lease of leases) {
      const isStable = lease.status === 'PENDING' || lease.status === 'ERROR';
      // The ledger may not know the id of one that was not seen before its end.
      const isKnown = lease.isOverdue !== true || this.#seenAt.has(lease.id);
      if (isStable && isKnown && this.leases.get(lease.id) === lease) {
        this.#seenAt.set(lease.id, from);
        // While Blazar may be making a change, the lease stays charged as it was asked for.
        const isLeft = until < (this.#earlySince.get(lease.id) ?? Number.NEGATIVE_INFINITY) + CHANGING;
        if (!isLeft && lease.begunAt !== undefined && lease.begunAt <= from && until + EARLY < lease.start) {
          this.#earlySince.set(lease.id, SEEN);
        }
      }
    }
  }

  /** In host-seconds, at most: what leases use outside their dates, and no comparison can have charged. */
  unseen(now: number): number {
    return this.live.reduce((sum, lease) => sum + this.#unseenOf(lease, now), this.#unseen);
  }

  #unseenOf({ id, hosts, start, end, begunAt, isOverdue }: Held, now: number): number {
    const seenAt = this.#seenAt.get(id) ?? Number.NEGATIVE_INFINITY;
    const early = begunAt === undefined ? 0 : Math.max(0, start - (this.#earlySince.get(id) ?? begunAt));
    const late = isOverdue === true ? now - Math.max(end, seenAt - LATE) : 0;
    return hosts * (early + late);
  }

  /** Those that use something, or will. */
  get live(): Held[] {
    return [...this.leases.values()].filter(({ id }) => !this.#stopped.has(id));
  }

  /** In host-seconds: what was used within the window by `now`, and what the leases that are there will use. */
  cost(window: Window, now: number): number {
    const rest = this.live.map((lease) => ({
      user: lease.user,
      hosts: lease.hosts,
      until: endOf(lease, now),
      from: this.#usesFrom(lease),
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
  answer(path: string, now: number): string {
    const leases = [ANCHOR, ...this.leases.values()];
    if (path.endsWith('/leases')) {
      const statusOf = (lease: Held) =>
        this.#stopped.has(lease.id) ? 'deleted' : beginOf(lease) > now ? 'pending' : 'active';
      return JSON.stringify({ leases: leases.map((lease) => listed(lease, statusOf(lease))) });
    }
    if (path.endsWith('/os-hosts/allocations')) {
      // Those of later leases alone.
      const shares = leases
        .filter(({ end }) => end > now)
        .flatMap(({ id, hosts }) =>
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

  /** Those that were changed while they ran: when. */
  readonly #begins = new Map<string, number>();
  readonly #stopped = new Set<string>();

  /** From when on what a lease uses is not in `#used` yet. */
  #usesFrom(lease: Held): number {
    return Math.max(beginOf(lease), this.#begins.get(lease.id) ?? Number.NEGATIVE_INFINITY);
  }

  #use(lease: Held, now: number): void {
    const { id, user, hosts } = lease;
    const from = this.#usesFrom(lease);
    const until = Math.min(now, endOf(lease, now));
    if (from < until && !this.#stopped.has(id)) {
      this.#used.push({ user, hosts, from, until });
    }
  }
}

const SEEN = Number.POSITIVE_INFINITY;
/** So long after a change was asked for, the ledger waits for it, in seconds. */
const CHANGING = Number(MAKING / 1_000_000n);
/** A lease in use so shortly before its start is not charged for that, in seconds; clocks differ by some. */
export const EARLY = 65;
/** A lease that Blazar does not end is charged every half an hour, in seconds. */
const LATE = Number(ENDING / 1_000_000n);

/** When a lease began, or will. */
export function beginOf({ start, begunAt = start }: Held): number {
  return Math.min(start, begunAt);
}

/** When a lease ends, or has not ended yet. */
function endOf({ end, isOverdue }: Held, now: number): number {
  return isOverdue === true ? Math.max(end, now) : end;
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

function listed({ id, user, min, max, start, end, status, createdAt }: Held, reservationStatus: string) {
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
        status: reservationStatus,
        min,
        max,
        missing_resources: false,
        resources_changed: false,
      },
    ],
  };
}
