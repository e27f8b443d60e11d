/** What users of Blazar do to it, by a seed: what is usual, what fails, and what is meant to. */
import type { BlazarLease, RealBlazar } from './blazar.ts';
import { generator, shuffled } from './seeded.ts';

export interface Action {
  readonly kind: string;
  readonly who: string;
  readonly body?: unknown;
  readonly outcome?: Outcome;
  do(blazar: RealBlazar): Promise<Outcome>;
}

/** The status of the answer, or what a action did that is no request of a user. */
export type Outcome = number | string;

export interface Scene {
  /** Those that are there, as far as their users know. */
  readonly leases: Map<string, { readonly who: string; lease: BlazarLease }>;
  /** Id of a reservation → who has asked for it; `undefined` = others may have asked for a lease with its id, too. */
  readonly owners: Map<string, string | undefined>;
  /** Called before a new lease is known to other callers. */
  look?(): Promise<void>;
}

const DAY = 86_400_000;
const HOUR = 3_600_000;
const MINUTE = 60_000;

/**
 * `ranges`: whether a new lease may ask for from `min` to `max` hosts. Of these, Blazar may find more than it has said, if another lease ends
 * between its question and its search.
 */
export function* randomActions(seed: number, steps: number, scene: Scene, ranges = true): Generator<Action> {
  const random = generator(seed);
  const below = (most: number) => Math.floor(random() * most);
  const one = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item;
  const begin = beginOfLeases();

  const hosts = () => {
    const min = 1 + below(2);
    return {
      resource_type: 'physical:host',
      min,
      max: min + (ranges ? below(4) : 0),
      hypervisor_properties: '',
      resource_properties: one(['', '["<=", "$vcpus", "48"]']),
    };
  };
  const instances = () => ({
    resource_type: 'virtual:instance',
    amount: 1 + below(4),
    vcpus: 4,
    memory_mb: 4096,
    disk_gb: 10,
    affinity: one([null, null, null, null, false]),
    resource_properties: '',
  });
  const floatingIps = () => ({
    resource_type: 'virtual:floatingip',
    network_id: 'net1',
    amount: 1 + below(2),
  });
  const dates = () => {
    const start = one([begin, begin, begin + DAY, begin + 2 * DAY]);
    return { start_date: date(start), end_date: date(start + one([6, 12, 12, 24, 48]) * HOUR) };
  };

  const single = () => one([hosts, hosts, hosts, instances])();
  const several = () =>
    one([
      [hosts, instances],
      [hosts, floatingIps],
      [hosts, instances, floatingIps],
      [hosts, hosts],
    ]).map((make) => make());
  const create = (kind: string, when: () => object, reservations: () => object[]): Action => {
    const who = one(['climate/alice', 'climate/alice', 'climate/bob']);
    // Blazar takes the id of whoever asks.
    const own = below(8) === 0 ? { id: `own-${below(6)}` } : {};
    const body = { name: one(['run', 'test']), ...when(), reservations: reservations(), ...own };
    return {
      kind,
      who,
      body,
      async do(blazar) {
        const { status, lease } = await blazar.ask('POST', '/v1/leases', who, body);
        for (const { id } of lease?.reservations ?? []) {
          scene.owners.set(id, 'id' in body ? undefined : who);
        }
        await scene.look?.();
        if (lease !== undefined) {
          scene.leases.set(lease.id, { who, lease });
        }
        return status;
      },
    };
  };
  const now = () => ({
    start_date: 'now',
    end_date: date(
      one([Date.now() + 2 * MINUTE, Date.now() + HOUR, Date.now() + 3 * HOUR, begin + 6 * HOUR]),
    ),
  });

  const isRunning = ({ start_date, end_date }: BlazarLease) =>
    time(start_date) <= Date.now() && Date.now() < time(end_date);
  /** `undefined` = there is none. */
  const someLease = (isMeant: (lease: BlazarLease) => boolean) => {
    const known = [...scene.leases].filter(([, { lease }]) => isMeant(lease));
    return known.length === 0 ? undefined : one(known);
  };

  const change = (
    kind: string,
    of: (lease: BlazarLease) => unknown,
    isMeant = (_: BlazarLease) => true,
  ): Action => {
    const chosen = someLease(isMeant);
    if (chosen === undefined) {
      return create('begin now', now, () => [hosts()]);
    }
    const [id, found] = chosen;
    const { who, lease } = found;
    const body = of(lease);
    return {
      kind,
      who,
      body: [id, body],
      async do(blazar) {
        const answer = await blazar.ask('PUT', `/v1/leases/${id}`, who, body);
        const { lease: now } = await blazar.ask('GET', `/v1/leases/${id}`, who);
        if (now !== undefined) {
          found.lease = now;
        }
        return answer.status;
      },
    };
  };

  const shifted = (text: string, hours: number) => date(time(text) + hours * HOUR);
  const newCounts = (lease: BlazarLease) =>
    lease.reservations.map(({ id, resource_type }) => {
      const min = 1 + below(2);
      const max = min + below(5);
      return resource_type === 'physical:host'
        ? {
            id,
            ...one([
              { min, max },
              { max },
              { min },
              { max: String(max) },
              { min: max + 1, max: min },
              { resource_properties: '' },
            ]),
          }
        : { id, ...one([{ amount: max }, { amount: String(max) }, { vcpus: 8 }]) };
    });
  const changes: readonly (() => Action)[] = [
    () =>
      change(
        'prolong a running',
        ({ end_date }) => ({ end_date: shifted(end_date, one([1, 2])) }),
        isRunning,
      ),
    () => change('prolong a running', ({ end_date }) => ({ end_date: shifted(end_date, 3) }), isRunning),
    () =>
      change('shorten a running', () => ({ end_date: date(Date.now() + one([2, 10]) * MINUTE) }), isRunning),
    () => change('counts of a running', (lease) => ({ reservations: newCounts(lease) }), isRunning),
    () => change('extend', ({ end_date }) => ({ end_date: shifted(end_date, one([1, 6, 24])) })),
    () => change('shorten', ({ end_date }) => ({ end_date: shifted(end_date, -one([1, 3, 6])) })),
    () =>
      change('move', ({ start_date, end_date }) => {
        const hours = one([-24, -6, 6, 24, 72]);
        return { start_date: shifted(start_date, hours), end_date: shifted(end_date, hours) };
      }),
    () => change('counts', (lease) => ({ reservations: newCounts(lease) })),
    () =>
      change('counts and dates', (lease) => ({
        reservations: newCounts(lease),
        end_date: shifted(lease.end_date, one([-6, -3, 3, 6])),
      })),
    () =>
      change('first reservation', (lease) => ({
        reservations: newCounts(lease).slice(0, 1),
        end_date: shifted(lease.end_date, one([-3, 3])),
      })),
    // Blazar changes the reservations, and then can't write the lease.
    () =>
      change('fail half way', (lease) => ({
        name: { not: 'a text' },
        reservations: newCounts(lease),
        end_date: shifted(lease.end_date, one([-6, -3, 3])),
      })),
    // The same, after Blazar has moved the event that ends a lease.
    () =>
      change(
        'fail to prolong a running',
        ({ end_date }) => ({ name: { not: 'a text' }, end_date: shifted(end_date, one([2, 24])) }),
        isRunning,
      ),
    // Blazar refuses this when it comes to the last reservation.
    () =>
      change('change a type', ({ reservations }) => ({
        reservations: reservations.map(({ id, resource_type }, index) =>
          index === reservations.length - 1 && index > 0
            ? { id, resource_type: reservations[0]?.resource_type, amount: 1 }
            : { id, ...(resource_type === 'physical:host' ? { min: 1, max: 6 } : { amount: 3 }) },
        ),
      })),
    // The second reservation can't be had, the first is changed by then.
    () =>
      change('fail at the last', (lease) => ({
        end_date: shifted(lease.end_date, one([-6, 1])),
        reservations: lease.reservations.map(({ id, resource_type }, index) =>
          index === lease.reservations.length - 1 && index > 0
            ? { id, ...(resource_type === 'physical:host' ? { min: 6, max: 6 } : { amount: 10_000 }) }
            : { id, ...(resource_type === 'physical:host' ? { min: 1, max: 5 } : { amount: 3 }) },
        ),
      })),
    () => change('rename', () => ({ name: one(['run', 'test', 'other']) })),
    () => change('rename', () => ({ name: one(['run', 'test', 'other']) })),
    // Blazar lets its users write whose a lease is.
    () =>
      change('give away', ({ end_date }) => ({
        ...one([{ user_id: 'bob' }, { user_id: 'alice' }, { project_id: 'ocean' }]),
        end_date: shifted(end_date, one([-1, 1])),
      })),
    () =>
      change('rename and extend', ({ end_date }) => ({
        name: one(['run', 'test']),
        end_date: shifted(end_date, 1),
      })),
  ];
  const remove = (kind: string, isMeant = (_: BlazarLease) => true): Action => {
    const chosen = someLease(isMeant);
    if (chosen === undefined) {
      return create('begin now', now, () => [hosts()]);
    }
    const [id, { who }] = chosen;
    return {
      kind,
      who,
      body: id,
      async do(blazar) {
        const { status } = await blazar.ask('DELETE', `/v1/leases/${id}`, who);
        const { status: still } = await blazar.ask('GET', `/v1/leases/${id}`, who);
        if (still === 404) {
          scene.leases.delete(id);
        }
        return status;
      },
    };
  };
  const byAdmin = (kind: string, act: (blazar: RealBlazar) => Promise<Outcome>): Action => ({
    kind,
    who: 'admin',
    do: act,
  });
  const nova = (fails: boolean) =>
    byAdmin(fails ? 'nova fails' : 'nova works', async (blazar) => {
      await blazar.failNova(fails);
      return 200;
    });
  const tick = () =>
    byAdmin('tick', async (blazar) => {
      await blazar.tick();
      return 200;
    });
  const heal = () => {
    const count = one([1, 2, 12]);
    return byAdmin('heal', async (blazar) => {
      await blazar.tick();
      const changed = await blazar.heal(count);
      return ['resources_changed', 'missing_resources'].find((one) => changed.includes(one)) ?? 'nothing';
    });
  };

  const deck: readonly (() => Action)[] = [
    ...times(12, () => create('create', dates, () => [single()])),
    ...times(2, () =>
      create('create oddly', dates, () => {
        const max = one(['2', 1.5, 0, -1, 2, 3, 4, 5]);
        return [{ ...hosts(), max, ...(ranges ? {} : { min: max }) }];
      }),
    ),
    ...times(4, () => create('several types', dates, several)),
    ...times(5, () => create('begin now', now, () => [single()])),
    ...times(2, () => create('begin now with several types', now, several)),
    ...changes,
    ...times(7, () => remove('delete')),
    ...times(3, () => remove('end early', isRunning)),
    ...times(4, tick),
    ...times(3, heal),
    () => nova(true),
    ...times(3, () => nova(false)),
  ];
  for (let step = 0; step < steps; ) {
    for (const make of shuffled(deck, below).slice(0, steps - step)) {
      step += 1;
      yield make();
    }
  }
}

/** When most leases begin: not while a test runs. */
export function beginOfLeases(): number {
  return Math.ceil((Date.now() + 2 * HOUR) / DAY) * DAY;
}

function times<Item>(count: number, item: Item): Item[] {
  return Array.from({ length: count }, () => item);
}

/** Of a date of Blazar, in milliseconds. */
function time(text: string): number {
  return Date.parse(`${text.slice(0, 19).replace(' ', 'T')}Z`);
}

function date(milliseconds: number): string {
  return new Date(milliseconds).toISOString().slice(0, 16).replace('T', ' ');
}
