/** What users of Blazar do to it, by a seed: what is usual, what fails, and what is meant to. */
import type { BlazarLease, RealBlazar } from './blazar.ts';

export interface Deed {
  readonly kind: string;
  readonly who: string;
  readonly body?: unknown;
  readonly status?: number;
  do(blazar: RealBlazar): Promise<number>;
}

/** Leases that are there, as far as their users know. */
export interface Scene {
  readonly leases: Map<string, { readonly who: string; lease: BlazarLease }>;
}

const DAY = 86_400_000;
const HOUR = 3_600_000;

export function* randomDeeds(seed: number, steps: number, scene: Scene): Generator<Deed> {
  const random = generator(seed);
  const below = (most: number) => Math.floor(random() * most);
  const one = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item;
  const begin = Math.ceil(Date.now() / DAY) * DAY;
  let nova = false;

  const hosts = () => {
    const min = 1 + below(2);
    return {
      resource_type: 'physical:host',
      min,
      max: min + below(4),
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
  const dates = () => {
    const start = one([begin, begin, begin + DAY, begin + 2 * DAY]);
    return { start_date: date(start), end_date: date(start + one([6, 12, 12, 24, 48]) * HOUR) };
  };

  const create = (): Deed => {
    const who = one(['climate/alice', 'climate/alice', 'climate/bob']);
    const reservations = one([
      () => [hosts()],
      () => [hosts()],
      () => [hosts()],
      () => [hosts(), hosts()],
      () => [instances()],
      () => [hosts(), instances()],
      () => [{ ...hosts(), max: one(['2', 1.5, 0, -1, 2, 3, 4, 5]) }],
    ])();
    const isNow = below(8) === 0;
    const ends = begin + one([6, 12]) * HOUR;
    const body = {
      name: one(['run', 'test']),
      ...(isNow ? { start_date: 'now', end_date: date(ends) } : dates()),
      reservations,
      // Blazar takes the id of whoever asks.
      ...(below(8) === 0 ? { id: `own-${below(6)}` } : {}),
    };
    return {
      kind: 'create',
      who,
      body,
      async do(blazar) {
        const { status, lease } = await blazar.ask('POST', '/v1/leases', who, body);
        if (lease !== undefined) {
          scene.leases.set(lease.id, { who, lease });
        }
        return status;
      },
    };
  };

  const change = (kind: string, of: (lease: BlazarLease) => unknown): Deed => {
    const known = [...scene.leases.keys()];
    const id = one(known);
    const found = scene.leases.get(id);
    if (found === undefined) {
      return create();
    }
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

  const shifted = (text: string, hours: number) =>
    date(Date.parse(`${text.slice(0, 19).replace(' ', 'T')}Z`) + hours * HOUR);
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
  const changes: readonly (() => Deed)[] = [
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
  const remove = (): Deed => {
    const id = one([...scene.leases.keys()]);
    const who = scene.leases.get(id)?.who ?? 'climate/alice';
    return {
      kind: 'delete',
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

  for (let step = 0; step < steps; step += 1) {
    const dice = below(100);
    if (dice < 3) {
      nova = !nova && below(3) === 0;
      const fails = nova;
      yield {
        kind: fails ? 'nova fails' : 'nova works',
        who: 'admin',
        async do(blazar) {
          await blazar.failNova(fails);
          return 200;
        },
      };
    } else if (dice < 6) {
      yield {
        kind: 'tick',
        who: 'admin',
        async do(blazar) {
          await blazar.tick();
          return 200;
        },
      };
    } else if (dice < 44 || scene.leases.size === 0) {
      yield create();
    } else if (dice < 84) {
      yield one(changes)();
    } else {
      yield remove();
    }
  }
}

function date(milliseconds: number): string {
  return new Date(milliseconds).toISOString().slice(0, 16).replace('T', ' ');
}

/** Numbers from 0 to 1, the same for the same seed. Source: mulberry32, in the public domain. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
