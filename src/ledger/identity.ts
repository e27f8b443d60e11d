/** Whose lease a request is about, and by which id. Blazar sends none with a new lease. */
import { hash } from 'node:crypto';
import type { Context, Lease } from '../lease/lease.ts';

export interface LeaseIdentity {
  /** `null` where the request has none. */
  readonly leaseId: string | null;
  /** Empty where the request names none. */
  readonly region: string;
  readonly projectId: string;
  readonly userId: string;
}

/** What the first of the leases does not say, the second does. */
export function identityOf(context: Context, leases: readonly [Lease, Lease]): LeaseIdentity {
  return {
    leaseId: firstText(leases.map(({ id }) => id)) || null,
    region: firstText([context.region_name]),
    projectId: wellFormed(context.project_id),
    userId: wellFormed(context.user_id),
  };
}

export function nameOf(leases: readonly [Lease, Lease]): string {
  const name = firstText(leases.map((lease) => lease.name));
  return name.length <= LONGEST_NAME ? name : wellFormed(`${name.slice(0, LONGEST_NAME)} ${digest(name)}`);
}

/** Blazar's own are shorter, and an index of PostgreSQL holds no more than some 2,700 bytes. */
const LONGEST_NAME = 200;

function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}

function firstText(values: readonly unknown[]): string {
  return wellFormed(values.find((value): value is string => typeof value === 'string') ?? '');
}

/** Databases keep no half of a surrogate pair: what is found must be what was kept. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}

/** Of an account, so that every database keeps it, and two that differ are two. */
export function accountName(name: string): string {
  const isKept = name.length <= LONGEST_ACCOUNT && !/\0|\p{Surrogate}/u.test(name);
  return isKept
    ? name
    : `${wellFormed(name.slice(0, LONGEST_NAME)).replaceAll('\0', '\ufffd')} ${digest(JSON.stringify(name))}`;
}

/** With the project it is within what an index holds. */
const LONGEST_ACCOUNT = 600;
