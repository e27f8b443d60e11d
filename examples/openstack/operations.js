/** What users of a Blazar do to it: they create, change, rename, resize and delete leases of equal names, and Nova fails. */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** @typedef {import('./cloud.js').Cloud} Cloud */
/** @typedef {{ kind: string, user: string, run: (cloud: Cloud) => Promise<number> }} Operation */

/**
 * All leases begin tomorrow or later, so that nothing of them is used yet.
 * @param {number} seed the same operations for the same seed
 * @param {number} steps
 * @returns {Generator<Operation>}
 */
export function* randomOperations(seed, steps) {
  const random = generator(seed);
  const below = (/** @type {number} */ most) => Math.floor(random() * most);
  /** @template T @param {readonly T[]} items @returns {T} */
  const one = (items) => /** @type {T} */ (items[below(items.length)]);
  const begin = Math.ceil(Date.now() / DAY) * DAY + DAY;
  /** Id → its owner, and what Blazar said of it last. @type {Map<string, { user: string, lease: any }>} */
  const leases = new Map();

  const hosts = () => {
    const min = 1 + below(2);
    const properties = { hypervisor_properties: '', resource_properties: '' };
    return { resource_type: 'physical:host', min, max: min + below(4), ...properties };
  };
  const instances = () => ({
    resource_type: 'virtual:instance',
    amount: 1 + below(4),
    vcpus: 4,
    memory_mb: 4096,
    disk_gb: 10,
    affinity: null,
    resource_properties: '',
  });
  /** @returns {Operation} */
  const create = () => {
    const user = one(['alice', 'alice', 'bob']);
    const start = begin + below(3) * DAY;
    const body = {
      name: one(['run', 'test']),
      start_date: date(start),
      end_date: date(start + one([6, 12, 24]) * HOUR),
      reservations: one([
        () => [hosts()],
        () => [hosts()],
        () => [instances()],
        () => [hosts(), instances()],
      ])(),
    };
    return {
      kind: 'create',
      user,
      async run(cloud) {
        const { status, body: answer } = await cloud.ask(user, 'POST', '/leases', body);
        if (answer.lease !== undefined) {
          leases.set(answer.lease.id, { user, lease: answer.lease });
        }
        return status;
      },
    };
  };
  /** @param {string} kind @param {(lease: any) => unknown} of @returns {Operation} */
  const change = (kind, of) => {
    const id = one([...leases.keys()]);
    const known = leases.get(id);
    if (known === undefined) {
      return create();
    }
    const { user } = known;
    const body = of(known.lease);
    return {
      kind,
      user,
      async run(cloud) {
        const { status } = await cloud.ask(user, 'PUT', `/leases/${id}`, body);
        const { body: now } = await cloud.ask(user, 'GET', `/leases/${id}`);
        known.lease = now.lease ?? known.lease;
        return status;
      },
    };
  };
  const resized = (/** @type {any} */ lease) =>
    lease.reservations.map((/** @type {any} */ { id, resource_type }) => {
      const min = 1 + below(2);
      return resource_type === 'physical:host'
        ? { id, min, max: min + below(5) }
        : { id, amount: 1 + below(4) };
    });
  const moved = (/** @type {string} */ text, /** @type {number} */ hours) =>
    date(Date.parse(`${text.slice(0, 19).replace(' ', 'T')}Z`) + hours * HOUR);
  const changes = [
    () => change('extend', ({ end_date }) => ({ end_date: moved(end_date, one([1, 6, 24])) })),
    () => change('shorten', ({ end_date }) => ({ end_date: moved(end_date, -one([1, 3])) })),
    () => change('resize', (lease) => ({ reservations: resized(lease) })),
    () =>
      change('resize and extend', (lease) => ({
        reservations: resized(lease),
        end_date: moved(lease.end_date, one([-3, 3, 6])),
      })),
    // Blazar changes the reservations, and then cannot write the lease.
    () =>
      change('fail half way', (lease) => ({
        name: { not: 'a text' },
        reservations: resized(lease),
        end_date: moved(lease.end_date, one([-3, 3])),
      })),
    () => change('rename', () => ({ name: one(['run', 'test', 'other']) })),
  ];
  /** @returns {Operation} */
  const remove = () => {
    const id = one([...leases.keys()]);
    const user = leases.get(id)?.user ?? 'alice';
    return {
      kind: 'delete',
      user,
      async run(cloud) {
        const { status } = await cloud.ask(user, 'DELETE', `/leases/${id}`);
        if ((await cloud.ask(user, 'GET', `/leases/${id}`)).status === 404) {
          leases.delete(id);
        }
        return status;
      },
    };
  };
  let fails = false;
  /** @returns {Operation} */
  const nova = () => {
    fails = !fails && below(2) === 0;
    const now = fails;
    return {
      kind: now ? 'Nova fails' : 'Nova works',
      user: 'admin',
      async run(cloud) {
        await cloud.failNova(now);
        return 200;
      },
    };
  };

  for (let step = 0; step < steps; step += 1) {
    const dice = below(100);
    if (dice < 5) {
      yield nova();
    } else if (dice < 45 || leases.size === 0) {
      yield create();
    } else {
      yield dice < 85 ? one(changes)() : remove();
    }
  }
}

function date(/** @type {number} */ milliseconds) {
  return new Date(milliseconds).toISOString().slice(0, 16).replace('T', ' ');
}

/** Numbers from 0 to 1. Source: mulberry32, in the public domain. */
function generator(/** @type {number} */ seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
