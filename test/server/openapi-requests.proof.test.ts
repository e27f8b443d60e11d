/** What /openapi.json says of a request is what the service makes of it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mistakes, operations, resolved, type Schema } from '../support/api-description.ts';
import { runService } from '../support/running-service.ts';

/** Those that ask for a lease: the API's have tests of their own. */
const requests = operations.filter(
  ({ method, operation }) => method === 'post' && !operation.tags.includes('users'),
);

const GOOD_DATES = [
  '2026-12-01T09:00:00',
  '2026-12-02 09:00',
  '2026-12-02',
  '2026-12-01T09:00:00.123456+01:00',
  '2026-336',
];
const BAD_DATES = [
  '',
  'now',
  '2026',
  '2026-13-01',
  '2026-12-01T9:00',
  '2026-12-01T09:00:00 UTC',
  1_796_115_600,
];
const JUNK: fc.Arbitrary<unknown> = fc.constantFrom(undefined, null, '', 'x', 0, true, [], {}, [1]);

/** Mostly right, so that requests are wrong in one place or nowhere. */
const mostly = <Value>(right: fc.Arbitrary<Value>, wrong: fc.Arbitrary<unknown> = JUNK) =>
  fc.oneof({ weight: 12, arbitrary: right }, { weight: 1, arbitrary: wrong });

const unknownAttributes = { color: fc.jsonValue({ maxDepth: 2 }) };
const date = mostly(
  fc.constantFrom(null, ...GOOD_DATES, ...GOOD_DATES),
  fc.constantFrom(...BAD_DATES, {}, []),
);
const id = mostly(fc.string({ minLength: 1 }));
const context = mostly(fc.record({ user_id: id, project_id: id, ...unknownAttributes }));
const reservation = mostly(
  fc.record(
    {
      resource_type: mostly(fc.constantFrom('physical:host', 'network', '')),
      // Lists of objects only: what is in the list is not looked at, and anything else would be let through.
      allocations: mostly(fc.constantFrom(null, [], [{ id: '1' }]), fc.constantFrom('all', 1, {})),
      ...unknownAttributes,
    },
    { requiredKeys: [] },
  ),
);
const lease = mostly(
  fc.record(
    {
      start_date: date,
      end_date: date,
      end_time: date,
      reservations: mostly(fc.oneof(fc.constant(null), fc.array(reservation, { maxLength: 2 }))),
      ...unknownAttributes,
    },
    { requiredKeys: [] },
  ),
);

/** `currentLease`, which is read where there is no `current_lease`, is for code that embeds the library. */
const bodies = fc.oneof(
  { weight: 20, arbitrary: fc.record({ context, lease, current_lease: lease, ...unknownAttributes }) },
  { weight: 1, arbitrary: fc.record({ context, lease }) },
  { weight: 1, arbitrary: fc.jsonValue() },
);

describe('the schema of a request', () => {
  it('accepts what the service judges, and refuses what the service does not', async () => {
    const { post } = await runService({ enforcement: { enabled_filters: [] } });
    const seen = { judged: 0, refused: 0, outOfOrder: 0 };
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...requests), bodies, async ({ path, operation }, value) => {
        const body = JSON.parse(JSON.stringify(value)) as unknown;
        const { schema = {} } = operation.requestBody?.content['application/json'] ?? {};
        const wrong = mistakes(schema, body);
        const { status, json } = await post(path, JSON.stringify(body));
        const { message } = (json ?? {}) as { message?: string };
        // The one thing that a schema can't say: which of two dates is later. It is said before what is wrong with types.
        const outOfOrder = message?.includes('a date that is not before start_date') === true;
        seen[outOfOrder ? 'outOfOrder' : status === 204 ? 'judged' : 'refused'] += 1;
        expect({ path, body, status, message, wrong }).toMatchObject(
          wrong.length === 0 && !outOfOrder ? { status: 204 } : { status: 400 },
        );
      }),
      { numRuns: 400 },
    );
    expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).toBeGreaterThan(5);
  });
});

describe('the schema of X-Openstack-Request-Id', () => {
  it('accepts the ids that the service takes over, and no other', async () => {
    const { request } = await runService();
    const { schema } = resolved({ $ref: '#/components/parameters/RequestId' }) as { schema: Schema };
    const uuid = fc.uuid().map((text) => `req-${text}`);
    const ids = fc.oneof(
      uuid,
      uuid.map((text) => text.toUpperCase()),
      uuid.chain((text) => fc.nat(39).map((at) => text.slice(0, at) + text.slice(at + 1))),
      uuid.chain((text) => fc.nat(39).map((at) => `${text.slice(0, at)}g${text.slice(at + 1)}`)),
      fc.string({ unit: fc.constantFrom(...'req-0af'), minLength: 1 }),
    );
    await fc.assert(
      fc.asyncProperty(ids, async (id) => {
        const { headers } = await request('/healthz', { headers: { 'X-Openstack-Request-Id': id } });
        const kept = headers.get('X-Openstack-Request-Id') === id;
        expect({ id, kept }).toEqual({
          id,
          kept: mistakes(schema, id).length === 0,
        });
      }),
    );
  });
});
