import fc from 'fast-check';
import { DateTime } from 'luxon';
import { describe, expect, it } from 'vitest';
import { ID_LENGTH, MAX_RESERVATIONS } from '../../src/lease/lease.ts';
import { isContext, isCreate, isUpdate } from '../../src/lease/request.ts';
import { requestSchemas } from '../../src/lease/request-schemas.ts';

/** Good and bad values for any attribute. */
const VALUES: readonly unknown[] = [
  ...[undefined, null, '', 'x', ' ', 0, 1.5, true, Number.NaN, {}],
  ...[[], [[]], [{}], [null], [undefined], new Array(1)],
  ...['2026-12-01', '2026-12-01 09:00', '2026-12-01T09:00:00.000001+01:00', '2026-W49-2'],
  ...['2026-02-30', 'soon'],
  ...[new Date(0), new Date(Number.NaN), DateTime.utc(2026), new Map(), () => 1, Object.create(null)],
  ...['x'.repeat(ID_LENGTH), 'x'.repeat(ID_LENGTH + 1)],
  ...[new Array(MAX_RESERVATIONS).fill({}), new Array(MAX_RESERVATIONS + 1).fill({})],
];
const value = fc.constantFrom(...VALUES);

/** An object with the attributes of a schema, each good or not, or missing. */
function objectOf(schema: { readonly shape: object }, good: Readonly<Record<string, fc.Arbitrary<unknown>>>) {
  const attributes = Object.keys(schema.shape).map((name) => [
    name,
    fc.oneof({ arbitrary: good[name] ?? value, weight: 6 }, value),
  ]);
  return fc.oneof(
    { arbitrary: fc.record(Object.fromEntries(attributes), { requiredKeys: [] }), weight: 8 },
    value,
  );
}

const { Context, Lease, Reservation, CreateRequest, UpdateRequest, EndRequest } = requestSchemas;
const date = fc.constantFrom(undefined, null, '2026-12-01 09:00', new Date(0));
const context = objectOf(Context, { user_id: fc.constant('alice'), project_id: fc.constant('climate') });
const reservation = objectOf(Reservation, {
  resource_type: fc.constantFrom(undefined, 'physical:host'),
  allocations: fc.constantFrom(undefined, null, [], [1]),
});
const lease = objectOf(Lease, {
  start_date: date,
  end_date: date,
  end_time: date,
  reservations: fc.oneof(
    fc.constantFrom(undefined, null, new Array(1)),
    fc.array(reservation, { maxLength: 3 }),
  ),
});

describe('a request is well formed if and only if its schema accepts it:', () => {
  const parts = { context, lease, current_lease: lease };
  it.each([
    ['a context', Context, isContext, context],
    ['a create', CreateRequest, isCreate, objectOf(CreateRequest, parts)],
    ['an update', UpdateRequest, isUpdate, objectOf(UpdateRequest, parts)],
    ['an end', EndRequest, isCreate, objectOf(EndRequest, parts)],
  ] as const)('%s', (_, schema, isWellFormed, requests) => {
    const seen = { true: 0, false: 0 };
    fc.assert(
      fc.property(requests, (request) => {
        const accepted = schema.safeParse(request).success;
        seen[`${accepted}`] += 1;
        expect(isWellFormed(request)).toBe(accepted);
      }),
      { numRuns: 1000 },
    );
    expect(Math.min(seen.true, seen.false)).toBeGreaterThan(20);
  });
});
