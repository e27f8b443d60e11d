/** Captured requests of a real Blazar, parsed anew for each caller. */
import { readFileSync } from 'node:fs';
import type { CreateRequest, EndRequest, Lease, UpdateRequest } from '../../src/index.ts';

/** The text of a file in test/fixtures/blazar-wire. */
export function capturedText(name: string): string {
  return readFileSync(new URL(`../fixtures/blazar-wire/${name}`, import.meta.url), 'utf8');
}

/** Each path of Blazar's protocol with a captured body that fits it. */
export const CAPTURED_POSTS: readonly (readonly [path: string, body: string])[] = [
  ...['/check-create', '/v1/check-create', '/commit-create', '/v1/commit-create'].map(
    (path) => [path, capturedText('check-create-physical-host.json')] as const,
  ),
  ...['/check-update', '/v1/check-update', '/commit-update', '/v1/commit-update'].map(
    (path) => [path, capturedText('check-update-extend.json')] as const,
  ),
  ...['/on-end', '/v1/on-end'].map((path) => [path, capturedText('on-end-active.json')] as const),
];

/** A captured text with the lease 28 years later, on the same weekday: for tests with the real clock. */
export function inManyYears(text: string): string {
  return text.replaceAll(/"2026-12-(\d\dT)/g, '"2054-12-$1');
}

/** Two hosts for two days, 2026-12-01T09:00 to 2026-12-03T09:00. */
export function createPhysicalHost(): CreateRequest {
  return JSON.parse(capturedText('check-create-physical-host.json')) as CreateRequest;
}

/** A GPU host and a floating IP for nine days. */
export function createGpuAndFloatingIp(): CreateRequest {
  return JSON.parse(capturedText('check-create-gpu-and-floating-ip.json')) as CreateRequest;
}

/** Extends the lease of two days by two days; `currentLease` as in the library. */
export function updateExtend(): UpdateRequest {
  const { context, current_lease, lease } = JSON.parse(capturedText('check-update-extend.json'));
  return { context, currentLease: current_lease, lease };
}

/** The same of a lease that has not started: it may start at another time. */
export function updatePending(): UpdateRequest {
  const text = capturedText('check-update-extend.json').replaceAll('"active"', '"pending"');
  const { context, current_lease, lease } = JSON.parse(text);
  return { context, currentLease: current_lease, lease };
}

export function endActive(): EndRequest {
  return JSON.parse(capturedText('on-end-active.json')) as EndRequest;
}

/** The project of the captured leases. */
export const PROJECT = createPhysicalHost().context.project_id;
export const USER = createPhysicalHost().context.user_id;

/** A lease of this duration in seconds, many years ahead, for a user and a project. */
export function createLasting(
  seconds: number,
  context: { user_id?: string; project_id?: string } = {},
): CreateRequest {
  const start = Date.UTC(2054, 11, 1, 9);
  return {
    context: { user_id: 'alice', project_id: 'climate', ...context },
    lease: {
      start_date: new Date(start).toISOString(),
      end_date: new Date(start + seconds * 1000).toISOString(),
      reservations: [],
    },
  };
}

/** A host for a day, 2026-12-01 09:00 to 2026-12-02 09:00, for alice in the project climate. */
export function createHost(lease: Lease = {}): CreateRequest {
  return {
    context: { user_id: 'alice', project_id: 'climate' },
    lease: {
      name: 'run',
      start_date: '2026-12-01 09:00',
      end_date: '2026-12-02 09:00',
      reservations: [{ resource_type: 'physical:host', min: 1, max: 1 }],
      ...lease,
    },
  };
}

/** Freezes a value to the bottom: whoever writes to it throws. */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) {
      deepFreeze(part);
    }
    Object.freeze(value);
  }
  return value;
}
