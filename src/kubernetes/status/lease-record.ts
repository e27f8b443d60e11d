/** The Lease that replicas elect their leader by. Source: Kubernetes API, coordination.k8s.io/v1. */
import { z } from 'zod';

const leaseSchema = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string().min(1) }),
  spec: z
    .looseObject({
      holderIdentity: z.string().nullish(),
      leaseDurationSeconds: z.number().nullish(),
      acquireTime: z.string().nullish(),
      leaseTransitions: z.number().nullish(),
    })
    .nullish(),
});

/** With all its further members, which go back as they came. */
export type Lease = z.infer<typeof leaseSchema>;

/** Somebody who may change the Lease can hold it anyway; but a slip of the pen must not stop everybody for years. In seconds. */
const LONGEST = 300;

/** @throws Error if it is no Lease */
export function parseLease(object: unknown): Lease {
  const parsed = leaseSchema.safeParse(object);
  if (!parsed.success) {
    throw new Error('the API server answered with something that is not a Lease');
  }
  return parsed.data;
}

/** `undefined` = nobody: it was released. */
export function holderOf({ spec }: Lease): string | undefined {
  return spec?.holderIdentity || undefined;
}

/** How long its holder may be silent, in milliseconds. */
export function durationOf({ spec }: Lease, defaultSeconds: number): number {
  const seconds = spec?.leaseDurationSeconds ?? defaultSeconds;
  return Math.min(Math.max(seconds, 1), LONGEST) * 1000;
}

/** One that nobody has had before. */
export function newLease(name: string, namespace: string, holder: string, seconds: number): object {
  const now = microTime();
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace },
    spec: {
      holderIdentity: holder,
      leaseDurationSeconds: seconds,
      acquireTime: now,
      renewTime: now,
      leaseTransitions: 0,
    },
  };
}

/** Taken or renewed. `resourceVersion` goes back too: the API server refuses if anybody has changed it since. */
export function heldLease(lease: Lease, holder: string, seconds: number): object {
  const now = microTime();
  const isRenewal = holderOf(lease) === holder;
  const { acquireTime, leaseTransitions } = lease.spec ?? {};
  return {
    ...lease,
    spec: {
      ...lease.spec,
      holderIdentity: holder,
      leaseDurationSeconds: seconds,
      renewTime: now,
      acquireTime: isRenewal ? (acquireTime ?? now) : now,
      leaseTransitions: (leaseTransitions ?? 0) + (isRenewal ? 0 : 1),
    },
  };
}

/** Given back, so that the next one need not wait. */
export function releasedLease(lease: Lease): object {
  const now = microTime();
  return {
    ...lease,
    spec: {
      ...lease.spec,
      holderIdentity: '',
      leaseDurationSeconds: 1,
      renewTime: now,
      acquireTime: now,
    },
  };
}

/** For people: no replica compares it with its own clock. */
function microTime(): string {
  return new Date().toISOString().replace('Z', '000Z');
}
