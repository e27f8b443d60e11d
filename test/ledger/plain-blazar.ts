/**
 * A Blazar as simple as it can be: it asks before it creates and changes leases, and then does so, or fails, or stops half way. It
 * renames leases and tells nobody, and its ends may get lost. What it has really costs what is counted here, by the second.
 */
import type { Lease } from '../../src/index.ts';

export interface HeldLease {
  readonly id: string;
  readonly user: string;
  name: string;
  min: number;
  max: number;
  /** In seconds of the epoch, as everything here. */
  start: number;
  end: number;
  /** How many it has got, from `min` to `max`. */
  hosts: number;
}

/** So many hosts, from then until then. */
export interface Use {
  readonly user: string;
  readonly hosts: number;
  readonly from: number;
  readonly until: number;
}

export interface Window {
  readonly user: string | null;
  readonly from: number;
  readonly until: number;
}

export class PlainBlazar {
  now: number;
  readonly leases: HeldLease[] = [];
  readonly #used: Use[] = [];
  #ids = 0;

  constructor(now: number) {
    this.now = now;
  }

  add(lease: Omit<HeldLease, 'id'>, id?: string): HeldLease {
    this.#ids += 1;
    const added = { ...lease, id: id ?? `lease-${this.#ids}` };
    this.leases.push(added);
    return added;
  }

  change(lease: HeldLease, change: Partial<HeldLease>): void {
    this.#close(lease);
    Object.assign(lease, change);
  }

  remove(lease: HeldLease): void {
    this.#close(lease);
    this.leases.splice(this.leases.indexOf(lease), 1);
  }

  /** What was used within the time, and what the leases that are there will use. */
  cost(window: Window): number {
    return [...this.#used, ...this.leases.map((lease) => this.#rest(lease))]
      .filter(({ user }) => window.user === null || window.user === user)
      .map(({ hosts, from, until }) => {
        const seconds = Math.min(until, window.until) - Math.max(from, window.from);
        return hosts * Math.max(0, seconds);
      })
      .reduce((sum, one) => sum + one, 0);
  }

  #rest({ user, hosts, start, end }: HeldLease): Use {
    return { user, hosts, from: start, until: end };
  }

  /** What it has used by now stays used, whatever becomes of it. */
  #close(lease: HeldLease): void {
    const { user, hosts, start, end } = lease;
    const until = Math.min(this.now, end);
    if (start < until) {
      this.#used.push({ user, hosts, from: start, until });
      lease.start = until;
    }
  }
}

/** As Blazar sends it: what is known of a lease, and how many hosts it has, or could get. */
export function asSent(
  { id, name, min, max, start, end }: Omit<HeldLease, 'user' | 'hosts'>,
  hosts: number,
): Lease {
  return {
    id,
    name,
    start_date: new Date(start * 1000).toISOString(),
    end_date: new Date(end * 1000).toISOString(),
    reservations: [{ id: 'r1', resource_type: 'physical:host', min, max, allocations: allocated(hosts) }],
  };
}

function allocated(hosts: number) {
  return Array.from({ length: hosts }, (_, index) => ({ id: String(index) }));
}

/** Hosts that a change could get. Those that the lease has are never among them: they are not free. */
export function candidateHosts(hosts: number) {
  return Array.from({ length: hosts }, (_, index) => ({ id: `free-${index}` }));
}
