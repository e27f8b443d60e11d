/**
 * Identifies the lease of a request by owner and id; Blazar sends no id with a new lease. Also defines the
 * texts that the ledger stores, which are the same on both databases.
 */
import { hash } from 'node:crypto';
import type { LeaseRequest } from '../filter/services.ts';
import type { Context, Lease } from '../lease/lease.ts';

export interface LeaseIdentity {
  /** `null` = the request has no id. */
  readonly leaseId: string | null;
  /** Empty = the request names no region. */
  readonly region: string;
  readonly projectId: string;
  readonly userId: string;
}

/** Takes each value from the first lease that has it. */
export function identityOf(context: Context, leases: readonly [Lease, Lease]): LeaseIdentity {
  return {
    leaseId: firstText(leases[0].id, leases[1].id) || null,
    region: firstText(context.region_name),
    projectId: wellFormed(context.project_id),
    userId: wellFormed(context.user_id),
  };
}

export function nameOf(leases: readonly [Lease, Lease]): string {
  const name = firstText(leases[0].name, leases[1].name);
  return name.length <= LONGEST_NAME ? name : wellFormed(`${name.slice(0, LONGEST_NAME)} ${digest(name)}`);
}

/** Blazar's own names are shorter, and an index of PostgreSQL holds about 2,700 bytes. */
const LONGEST_NAME = 200;

function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}

function firstText(...values: readonly unknown[]): string {
  return wellFormed(values.find((value): value is string => typeof value === 'string') ?? '');
}

/** Replaces unpaired surrogates, which databases do not store: a lookup must find what was stored. */
function wellFormed(text: string): string {
  return text.toWellFormed();
}

/** The name of an account in a form that every database stores; different names stay different. */
export function accountName(name: string): string {
  const isKept = name.length <= LONGEST_ACCOUNT && name.isWellFormed() && !name.includes('\0');
  return isKept ? name : `${kept(name.slice(0, LONGEST_NAME))} ${digest(JSON.stringify(name))}`;
}

/** Short enough for an index together with the project. */
const LONGEST_ACCOUNT = 600;

/** OpenStack's own ids and names are shorter, and an index of PostgreSQL holds about 2,700 bytes. */
const LONGEST = 255;

/** Why a text cannot be stored, as a message for the sender; `undefined` = it can. */
export function textMistake(text: string, longest = LONGEST): string | undefined {
  if (text.length > longest) {
    return `expected at most ${longest} characters, got ${text.length}`;
  }
  // PostgreSQL stores no NUL, and no database stores unpaired surrogates. Replacing them would make different
  // texts equal.
  return text.includes('\0') || !text.isWellFormed()
    ? 'expected a text without NUL and without halves of surrogate pairs'
    : undefined;
}

/** Names the first text of a request that cannot be stored: `lease.name: expected …`. */
export function requestMistake({ context, currentLease, lease }: LeaseRequest): string | undefined {
  return (
    fieldMistake('context.', 'project_id', context.project_id) ??
    fieldMistake('context.', 'user_id', context.user_id) ??
    fieldMistake('context.', 'region_name', context.region_name) ??
    leaseMistake('lease.', lease) ??
    (currentLease && leaseMistake('current_lease.', currentLease))
  );
}

function leaseMistake(place: string, { id, name, reservations }: Lease): string | undefined {
  const mistake =
    fieldMistake(place, 'id', id) ??
    // A long name is stored as its beginning and a digest.
    fieldMistake(place, 'name', name, Number.POSITIVE_INFINITY);
  for (let index = 0; mistake === undefined && index < (reservations?.length ?? 0); index += 1) {
    const type: unknown = reservations?.[index]?.resource_type;
    const found = typeof type === 'string' ? textMistake(type) : undefined;
    if (found !== undefined) {
      return `${place}reservations[${index}].resource_type: ${found}`;
    }
  }
  return mistake;
}

function fieldMistake(place: string, field: string, text: unknown, longest?: number): string | undefined {
  const mistake = typeof text === 'string' ? textMistake(text, longest) : undefined;
  return mistake === undefined ? undefined : `${place}${field}: ${mistake}`;
}

/** A text in a form that every database stores; different texts may become equal. */
export function kept(text: string): string {
  return wellFormed(text).replaceAll('\0', '\ufffd');
}

/** The name of an existing lease in a form that can be stored: it cannot be refused for its name. */
export function keptName(name: string): string {
  const lease = { name: kept(name) };
  return nameOf([lease, lease]);
}
