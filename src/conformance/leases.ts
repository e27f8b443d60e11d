/**
 * The leases of a run, as they are sent. Their attributes are from requests of a real Blazar
 * (test/fixtures/blazar-wire), and from Blazar's plug-ins for resource types that are missing there.
 */
import { randomUUID } from 'node:crypto';

export type Fields = Readonly<Record<string, unknown>>;

/** All leases have the same test user and test project, in every run. */
export const USER_ID = 'e4f1d1c6a2b94c0f8d57c0a1b9e6f302';
export const PROJECT_ID = '5c0f3a7be89d4f16a1d2c47790be5e13';

const DAY_MS = 86_400_000;
/** As Blazar's database writes it. */
const CREATED_AT = '2026-11-21 01:52:26.671983';

export interface LeaseParts {
  readonly reservations: readonly Fields[];
  /** Override the attributes of the lease; `undefined` omits one. */
  readonly lease: Fields;
  readonly context: Fields;
  /** Further attributes of the `check-create`. Default: none. */
  readonly further?: Fields;
}

/** Of a `check-create`; the owner is in its lease, too, as Blazar sends it. */
export function partsOf(create: string): LeaseParts {
  const { context, lease } = JSON.parse(create) as Record<'context' | 'lease', Fields>;
  const { user_id, project_id } = context;
  const { reservations, ...asked }: Fields = { user_id, project_id, ...lease };
  return { context, lease: asked, reservations: reservations as readonly Fields[] };
}

/** The requests for one lease, from `check-create` to `on-end`. */
export interface TestLease {
  /** Blazar assigns it after `check-create`, so it is only in updates and ends. */
  readonly id: string;
  /** The body of a `check-create`. */
  readonly create: { readonly context: Fields; readonly lease: Fields };
  /** The body of a `commit-create`: the lease is built, and has its id. */
  readonly commit: { readonly context: Fields; readonly lease: Fields };
  /** The lease in Blazar's database. */
  readonly current: Fields & { readonly reservations: readonly Fields[] };
  /** The body of a `check-update`, and of a following `on-end`. */
  update(lease: Fields): Fields;
  /** The body of an `on-end`, with the changes of an update. */
  end(changes?: Fields): Fields;
}

export interface Leases {
  /** Default start and end of leases: one day, a week from now. */
  readonly start: Date;
  readonly end: Date;
  /** Of a lease of one host for a day. */
  readonly parts: LeaseParts;
  /** A lease with a unique name; by default of `parts`. */
  make(parts?: Partial<LeaseParts>): TestLease;
}

export function createLeases(now: Date): Leases {
  const run = randomUUID().slice(0, 8);
  const start = new Date(Math.floor(now.getTime() / DAY_MS) * DAY_MS + 7 * DAY_MS + 9 * 3_600_000);
  const end = new Date(start.getTime() + DAY_MS);
  let made = 0;
  const dates = { start_date: isoText(start), end_date: isoText(end) };
  const parts = { context: {}, lease: dates, reservations: [resources['physical:host']] };
  return {
    start,
    end,
    parts,
    make({ reservations = parts.reservations, lease = {}, context = {}, further = {} } = {}) {
      made += 1;
      return testLease(
        {
          user_id: USER_ID,
          project_id: PROJECT_ID,
          auth_url: 'https://keystone.example.org:5000/v3',
          region_name: 'RegionOne',
          ...context,
        },
        {
          name: `conformance-${run}-${made}`,
          ...dates,
          status: 'CREATING',
          user_id: USER_ID,
          project_id: PROJECT_ID,
          before_end_date: '',
          ...lease,
        },
        reservations,
        further,
      );
    },
  };
}

function testLease(
  context: Fields,
  asked: Fields,
  reservations: readonly Fields[],
  further: Fields,
): TestLease {
  const id = randomUUID();
  const { before_end_date: _, ...lasting } = asked;
  const current = {
    created_at: CREATED_AT,
    updated_at: null,
    id,
    ...lasting,
    trust_id: 'e3b0c44298fc1c149afbf4c8996fb924',
    status: 'ACTIVE',
    degraded: false,
    reservations: reservations.map((reservation) => ({
      created_at: CREATED_AT,
      updated_at: null,
      id: randomUUID(),
      lease_id: id,
      resource_id: randomUUID(),
      status: 'active',
      missing_resources: false,
      resources_changed: false,
      before_end: 'default',
      ...reservation,
    })),
    events: [
      { ...event(id), event_type: 'start_lease', time: asked.start_date, status: 'DONE' },
      { ...event(id), event_type: 'end_lease', time: asked.end_date, status: 'UNDONE' },
    ],
  };
  return {
    id,
    create: { context, lease: { ...asked, reservations }, ...further },
    commit: { context, lease: { id, ...asked, reservations } },
    current,
    update: (lease) => ({ context, current_lease: current, lease }),
    end: (changes = {}) => ({ context, lease: { ...current, ...changes } }),
  };
}

function event(lease_id: string): Fields {
  return { created_at: CREATED_AT, updated_at: null, id: randomUUID(), lease_id };
}

/** `2026-12-01T09:00:00`: no offset, no fraction. */
export function isoText(date: Date): string {
  return date.toISOString().slice(0, 19);
}

/** A host in an allocation, with the capabilities that a site sets. */
export function host(number: number): Fields {
  return {
    created_at: CREATED_AT,
    updated_at: null,
    id: String(number),
    vcpus: 48,
    cpu_info:
      '{"arch": "x86_64", "model": "Cascadelake-Server", "topology": {"cores": 12, "threads": 2, "sockets": 2}}',
    hypervisor_type: 'QEMU',
    hypervisor_version: 6_002_000,
    hypervisor_hostname: `32af5a7a-e7a3-4883-a643-${String(number).padStart(12, '0')}`,
    service_name: `compute-${number}`,
    memory_mb: 192_000,
    local_gb: 480,
    status: null,
    availability_zone: 'az1',
    trust_id: 't1',
    reservable: true,
    node_type: 'compute_cascadelake_r',
    gpu: 'False',
    su_factor: '2.5',
  };
}

/** A reservation of `count` hosts, all allocated. */
export function hosts(count: number): Fields {
  return {
    resource_type: 'physical:host',
    min: 1,
    max: count,
    hypervisor_properties: '',
    resource_properties: '["==", "$node_type", "compute_cascadelake_r"]',
    allocations: Array.from({ length: count }, (_, index) => host(index + 1)),
  };
}

const FLOATING_NETWORK = '7a5b9d0c-1b1f-4a0b-8c64-1d0b3c2f4e11';

/** One reservation of each resource type. */
export const resources = {
  'physical:host': hosts(1),
  'virtual:instance': {
    resource_type: 'virtual:instance',
    vcpus: 2,
    memory_mb: 4096,
    disk_gb: 20,
    amount: 2,
    affinity: false,
    resource_properties: '',
    allocations: [host(1), host(2)],
  },
  // A host is listed once per instance on it.
  'flavor:instance': {
    resource_type: 'flavor:instance',
    flavor_id: '0f3d2c1b-77aa-4f0e-9d59-2b8b1b5b6a11',
    amount: 2,
    affinity: null,
    allocations: [host(1), host(1)],
  },
  'virtual:floatingip': {
    resource_type: 'virtual:floatingip',
    network_id: FLOATING_NETWORK,
    amount: 1,
    required_floatingips: [],
    allocations: [
      {
        id: '7375755f-717e-4883-91c1-06ceba2da96e',
        floating_network_id: FLOATING_NETWORK,
        subnet_id: '4b1c6e2a-6a7e-4d1e-9a5c-0f7d4e5b6a77',
        floating_ip_address: '203.0.113.42',
        reservable: true,
        created_at: '2026-03-01T08:15:30',
        updated_at: null,
      },
    ],
  },
  network: {
    resource_type: 'network',
    network_name: 'climate-net',
    network_description: '',
    network_properties: '',
    resource_properties: '["==", "$physical_network", "physnet1"]',
    allocations: [
      {
        created_at: CREATED_AT,
        updated_at: null,
        id: 'c1b9f0de-4f0f-4c52-8f6e-1f4d3f6c2a55',
        network_type: 'vlan',
        physical_network: 'physnet1',
        segment_id: 1234,
        reservable: true,
      },
    ],
  },
} as const satisfies Readonly<Record<string, Fields>>;

export type ResourceType = keyof typeof resources;
