import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { CreateRequest, Lease } from '../src/index.ts';

/** The folder of package.json, from `bench/` and from `dist/bench/`. */
export const ROOT = dirname(createRequire(import.meta.url).resolve('blazar-enforcement/package.json'));

/** The common request: a lease of two days on two hosts. */
export const CAPTURED_FILE = join(ROOT, 'test/fixtures/blazar-wire/check-create-physical-host.json');

/** The length of its lease. */
export const CAPTURED_SECONDS = 172_800;

/** Requests differ in their dates, like in production, so that caching the last one has no effect. */
const VARIANTS = 64;
const DAY = 86_400_000;

/** The captured text, unchanged apart from the dates. */
export function capturedTexts(): string[] {
  const text = readFileSync(CAPTURED_FILE, 'utf8');
  return Array.from({ length: VARIANTS }, (_, day) =>
    text.replace(
      /("(?:start|end)_date": ")([^"]+)/g,
      (_match, name: string, date: string) => name + onDay(date, day),
    ),
  );
}

export function capturedRequests(): CreateRequest[] {
  return capturedTexts().map((text) => JSON.parse(text) as CreateRequest);
}

/** The captured request with this many allocations, which all variants share. */
export function requestsWithAllocations(count: number): CreateRequest[] {
  const requests = capturedRequests();
  const [reservation] = requests[0]?.lease.reservations ?? [];
  const [host] = reservation?.allocations ?? [];
  const allocations = Array.from({ length: count }, (_, index) => ({ ...host, id: String(index) }));
  return requests.map(({ context, lease }) => ({
    context,
    lease: { ...lease, reservations: [{ ...reservation, allocations }] },
  }));
}

export function withLease(request: CreateRequest, lease: Lease): CreateRequest {
  return { ...request, lease: { ...request.lease, ...lease } };
}

function onDay(date: string, day: number): string {
  return new Date(Date.parse(`${date}Z`) + day * DAY).toISOString().slice(0, date.length);
}
