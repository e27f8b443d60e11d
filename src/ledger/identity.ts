/** Which lease a request is about: whose it is, and its id. Blazar sends no id with a new lease. */
import { hash } from 'node:crypto';
import type { Context, Lease } from '../lease/lease.ts';

export interface LeaseIdentity {
  /** `null` when the request has none. */
  readonly leaseId: string | null;
  /** Empty when the request names none. */
  readonly region: string;
  readonly projectId: string;
  readonly userId: string;
}

/** Takes each fact from the first lease that has it. */
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

/** Blazar's own names are shorter, and an index of PostgreSQL holds about 2,700 bytes. */
const LONGEST_NAME = 200;

function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}

function firstText(values: readonly unknown[]): string {
  return wellFormed(values.find((value): value is string => typeof value === 'string') ?? '');
}

/** Replaces unpaired surrogates, which databases do not store: a lookup must find what was stored. */
export function wellFormed(text: string): string {
  return text.toWellFormed();
}

/** The name of an account, in a form that every database stores; different names stay different. */
export function accountName(name: string): string {
  const isKept = name.length <= LONGEST_ACCOUNT && name.isWellFormed() && !name.includes('\0');
  return isKept
    ? name
    : `${wellFormed(name.slice(0, LONGEST_NAME)).replaceAll('\0', '\ufffd')} ${digest(JSON.stringify(name))}`;
}

/** Together with the project it fits into an index. */
const LONGEST_ACCOUNT = 600;
