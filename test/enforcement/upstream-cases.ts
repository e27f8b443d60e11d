/**
 * The cases of Blazar's own tests of enforcement (openstack/blazar acc44dc, blazar/tests/enforcement), each beside the name of its test: what
 * is asked, and what Blazar does.
 */
import type { Allocation, Lease, Reservation } from '../../src/index.ts';

/** `failed`: an exception that is not a denial. */
export type Outcome = 'allowed' | 'denied' | 'failed';
export type Way = 'library' | 'service';

export interface UpstreamCase {
  readonly test: string;
  readonly operation: 'create' | 'update' | 'end';
  readonly outcome: Outcome;
  /** Where ours is another: the row of "Where we differ from upstream Blazar" in docs/architecture.md. */
  readonly differs?: { readonly way: Way; readonly outcome: Outcome; readonly row: string };
}

/** Whose all leases are. */
export const OWNER = { user_id: '111', project_id: '222' };
export const AUTH_URL = 'https://fakeauth.com';
export const REGION = 'RegionOne';

export const RESERVATIONS: readonly Reservation[] = [
  { resource_id: '1234', resource_type: 'virtual:instance' },
];

/** One host with this id. */
export function allocationsOf(id: string): Record<string, readonly Allocation[]> {
  const host = { hypervisor_hostname: 'hypvsr1', service_name: 'compute1', cpu_info: 'foo' };
  const hypervisor = { hypervisor_type: 'xen', hypervisor_version: 1 };
  return { 'virtual:instance': [{ id, ...host, ...hypervisor, vcpus: 4, memory_mb: 8192, local_gb: 10 }] };
}

/** Begins at 01:23. */
export function leaseUntil(end: string): Lease {
  return {
    id: '1',
    name: 'lease_test',
    ...OWNER,
    events: [],
    action: null,
    status: null,
    status_reason: null,
    start_date: '2014-01-01T01:23:00',
    end_date: end,
    before_end_date: '2014-01-01T01:53:00',
  };
}

/** Times of 2014-01-01. */
export interface DurationCase extends UpstreamCase {
  readonly end: string;
  /** The end of the lease before an update. */
  readonly currentEnd?: string;
  readonly now?: string;
  readonly isExempt?: boolean;
}

const allowed = (test: string, operation: UpstreamCase['operation']) =>
  ({ test, operation, outcome: 'allowed' }) as const;
const denied = (test: string, operation: UpstreamCase['operation']) =>
  ({ test, operation, outcome: 'denied' }) as const;
const PENDING = { currentEnd: '02:22', now: '01:01' };

/** `MaxLeaseDurationTestCase`: leases may be an hour long. */
export const DURATION: readonly DurationCase[] = [
  { ...allowed('test_check_create_allowed_with_max_lease_duration', 'create'), end: '02:23' },
  { ...denied('test_check_create_denied_beyond_max_lease_duration', 'create'), end: '02:24' },
  { ...allowed('test_check_update_allowed', 'update'), ...PENDING, end: '02:23' },
  { ...denied('test_check_update_denied', 'update'), ...PENDING, end: '02:24' },
  {
    ...allowed('test_check_update_active_lease_allowed', 'update'),
    currentEnd: '01:53',
    end: '02:23',
    now: '01:50',
  },
  { ...allowed('test_check_create_exempt', 'create'), end: '02:24', isExempt: true },
  { ...allowed('test_check_update_exempt', 'update'), ...PENDING, end: '02:24', isExempt: true },
  { ...allowed('test_on_end', 'end'), end: '02:23' },
];

export interface ExternalCase extends UpstreamCase {
  /** What the external service answers. */
  readonly answer: { readonly status: number; readonly body?: string };
}

const NO_CONTENT = { status: 204 };
const HELLO = { status: 403, body: '{"message": "Hello!"}' };

/** `ExternalServiceFilterTestCase`: the base endpoint has no path. */
export const EXTERNAL: readonly ExternalCase[] = [
  { ...allowed('test_check_create_allowed', 'create'), answer: NO_CONTENT },
  { ...denied('test_check_create_denied', 'create'), answer: HELLO },
  { ...denied('test_check_create_failed', 'create'), answer: { status: 403, body: '{}' } },
  { ...allowed('test_check_update_allowed', 'update'), answer: NO_CONTENT },
  { ...denied('test_check_update_denied', 'update'), answer: HELLO },
  { ...denied('test_check_update_failed', 'update'), answer: { status: 403, body: 'NOT_JSON' } },
  { ...allowed('test_on_end_success', 'end'), answer: NO_CONTENT },
  {
    test: 'test_on_end_failure',
    operation: 'end',
    answer: { status: 500 },
    outcome: 'failed',
    differs: { way: 'service', outcome: 'allowed', row: '`on_end` raises what broke' },
  },
];

/** `ISODateTimeEncoderTestCase`: dates as the external service reads them. */
export const DATES = [
  { test: 'test_json_date', date: '2022-09-08T13:31:44.012345' },
  { test: 'test_json_with_tz', date: '2022-09-08T13:31:44.012345+02:00' },
] as const;

/** `ConfiguringExternalServiceFilterTestCase` */
export const CONFIGURED: readonly { test: string; option?: string; url?: string; isRefused?: boolean }[] = [
  { test: 'test_basic_misconfiguration', isRefused: true },
  { test: 'test_bad_url', option: 'base', url: 'this_url_cOuLDnOtBeWoRsE', isRefused: true },
  { test: 'test_check_create_endpoint_is_enough', option: 'check_create' },
  { test: 'test_check_updaye_endpoint_is_enough', option: 'check_update' },
  { test: 'test_on_end_endpoint_is_enough', option: 'on_end' },
];

export interface HookCase extends UpstreamCase {
  /** Whether the filter throws, or is called once with the context and the lease, or both leases. */
  readonly throws: boolean;
}

/** `EnforcementTestCase`, beside those of loading and formatting. The lease that is there has host 1, the one that is asked for host 2. */
export const HOOKS: readonly HookCase[] = [
  { ...allowed('test_check_create', 'create'), throws: false },
  { test: 'test_check_create_with_exception', operation: 'create', throws: true, outcome: 'failed' },
  { ...allowed('test_check_update', 'update'), throws: false },
  { test: 'test_check_update_with_exception', operation: 'update', throws: true, outcome: 'failed' },
  { ...allowed('test_on_end', 'end'), throws: false },
];
