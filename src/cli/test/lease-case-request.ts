/** The request of a case: a body from Blazar, or one built from the short form. */
import { dirname, resolve } from 'node:path';
import { InvalidRequestError } from '../../base/errors.ts';
import { readTextFile, systemErrorText } from '../../config/read-file.ts';
import {
  formatInstant,
  type Instant,
  leaseEnd,
  leaseStart,
  MICROSECONDS_PER_SECOND,
} from '../../lease/dates.ts';
import type { Context, Lease, Reservation } from '../../lease/lease.ts';
import { parseCreateRequest, parseUpdateRequest } from '../../lease/request.ts';
import { CaseMistake, type ReadCase } from '../cases/case-files.ts';
import { parsedDocument } from '../common/requests.ts';
import { type LeaseCase, type ShortLease, type ShortReservation, timeOf } from './lease-case.ts';
import type { TriedRequest } from './lease-trial.ts';

/** The limit of the service. */
const MAX_BYTES = 16 * 1024 * 1024;

/** @throws CaseMistake */
export function requestOfCase(read: ReadCase<LeaseCase>, now: Instant): TriedRequest {
  const { request, lease, current } = read.case;
  const key = request === undefined ? 'lease' : 'request';
  const body = request === undefined ? shortBody(lease ?? {}, current, now) : capturedBody(read, request);
  const isUpdate =
    read.case.operation === undefined ? 'current_lease' in body : read.case.operation === 'update';
  try {
    return isUpdate
      ? { operation: 'update', ...parseUpdateRequest(body) }
      : { operation: 'create', ...parseCreateRequest(body) };
  } catch (thrown) {
    throw thrown instanceof InvalidRequestError
      ? CaseMistake.at(read, [key], `${key}: ${thrown.message}`)
      : thrown;
  }
}

function shortBody(short: ShortLease, current: ShortLease | undefined, now: Instant): object {
  const context = contextOf(short, current);
  if (current === undefined) {
    return { context, lease: wholeLease(short, now) };
  }
  const before = currentLease(current, now);
  return { context, current_lease: before, lease: changedLease(short, before, now) };
}

function capturedBody(read: ReadCase<LeaseCase>, request: string | object): object {
  if (typeof request !== 'string') {
    return request;
  }
  const file = resolve(dirname(read.file), request);
  let body: unknown;
  try {
    body = parsedDocument(readTextFile(file, MAX_BYTES));
  } catch (thrown) {
    const why = thrown instanceof SyntaxError ? 'expected JSON' : systemErrorText(thrown);
    throw CaseMistake.at(read, ['request'], `request: ${file}: ${why}`);
  }
  if (typeof body !== 'object' || body === null) {
    throw CaseMistake.at(read, ['request'], `request: ${file}: expected an object`);
  }
  return body;
}

const HOST = 'physical:host';
const PROJECT = 'project';
const USER = 'user';
/** The default duration in hours, short enough for any limit. */
const HOURS = 1;
const SECONDS_PER_HOUR = 3600;
const AUTH_URL = 'https://keystone.example.org/v3';
/** The default id of a lease before an update. */
const CURRENT_ID = '00000000-0000-4000-8000-000000000001';

/** The owner of the lease. `current`: the lease before an update. */
export function contextOf(short: ShortLease, current?: ShortLease): Context {
  return {
    user_id: idOf(short.user) ?? idOf(current?.user) ?? USER,
    project_id: idOf(short.project) ?? idOf(current?.project) ?? PROJECT,
    auth_url: AUTH_URL,
    region_name: short.region ?? current?.region ?? null,
  };
}

function idOf(account: string | { readonly id: string } | undefined): string | undefined {
  return typeof account === 'object' ? account.id : account;
}

/** A complete lease. Default: one host, for an hour from now. */
export function wholeLease(short: ShortLease, now: Instant): Lease {
  const start = timeOf(short.start ?? 'now', now);
  return {
    ...(short.id !== undefined && { id: short.id }),
    name: short.name ?? 'lease',
    start_date: dateOf(start),
    end_date: dateOf(endOf(short, start, now) ?? start + lasting(HOURS)),
    reservations: (short.reservations ?? [ownReservation(short)]).map((one) => reservationOf(one)),
    ...short.attributes,
  };
}

/** The lease after an update. Missing values stay. A new start without a new end keeps the end. */
function changedLease(short: ShortLease, current: Lease, now: Instant): Lease {
  const start = short.start === undefined ? leaseStart(current) : timeOf(short.start, now);
  const end = start === undefined ? leaseEnd(current) : (endOf(short, start, now) ?? leaseEnd(current));
  const own = ownReservation(short);
  const saysNothing = Object.values(own).every((one) => one === undefined);
  const wanted = short.reservations ?? (saysNothing ? undefined : [own]);
  const before = current.reservations ?? [];
  return {
    ...current,
    ...(short.id !== undefined && { id: short.id }),
    ...(short.name !== undefined && { name: short.name }),
    ...(start !== undefined && { start_date: dateOf(start) }),
    ...(end !== undefined && { end_date: dateOf(end) }),
    ...(wanted !== undefined && {
      reservations: wanted.map((one, index) => reservationOf(one, before[index])),
    }),
    ...short.attributes,
  };
}

/** The lease before an update: Blazar sends it with its own id and the ids of its reservations. */
function currentLease(short: ShortLease, now: Instant): Lease {
  const lease = wholeLease(short, now);
  return {
    id: CURRENT_ID,
    ...lease,
    reservations: (lease.reservations ?? []).map((one, index) => ({
      id: `reservation-${index + 1}`,
      ...one,
    })),
  };
}

function endOf({ end, hours, days }: ShortLease, start: Instant, now: Instant): Instant | undefined {
  const length = hours ?? (days === undefined ? undefined : days * 24);
  if (end !== undefined) {
    return timeOf(end, now);
  }
  return length === undefined ? undefined : start + lasting(length);
}

function lasting(hours: number): Instant {
  return BigInt(Math.round(hours * SECONDS_PER_HOUR)) * MICROSECONDS_PER_SECOND;
}

function dateOf(instant: Instant): string {
  return formatInstant(instant).replace(/Z$/, '');
}

/** The only reservation, if the lease itself describes it. */
function ownReservation({
  resource_type,
  hosts,
  size,
  properties,
  allocations,
}: ShortLease): ShortReservation {
  return { resource_type, hosts, size, properties, allocations };
}

/** `before`: the reservation before the change. */
function reservationOf(short: ShortReservation, before?: Reservation): Reservation {
  const { properties, allocations, attributes } = short;
  const type = short.resource_type ?? before?.resource_type ?? HOST;
  const size = short.hosts ?? short.size ?? (before === undefined ? 1 : undefined);
  return {
    ...before,
    resource_type: type,
    ...(size !== undefined && countsOf(type, size)),
    ...(properties !== undefined && { resource_properties: propertiesOf(properties) }),
    ...(allocations !== undefined && { allocations }),
    ...attributes,
  };
}

function countsOf(type: string, size: number | { readonly min?: number | undefined; readonly max: number }) {
  if (type === 'network') {
    return {};
  }
  const { min, max } = typeof size === 'number' ? { min: size, max: size } : size;
  return type === HOST ? { min: min ?? max, max } : { amount: max };
}

/** `["==", "$gpu", "True"]`, in Blazar's syntax. */
function propertiesOf(properties: NonNullable<ShortReservation['properties']>): string {
  if (typeof properties === 'string') {
    return properties;
  }
  const comparisons = Object.entries(properties).map(([name, value]) => ['==', `$${name}`, String(value)]);
  return comparisons.length === 0
    ? ''
    : JSON.stringify(comparisons.length === 1 ? comparisons[0] : ['and', ...comparisons]);
}
