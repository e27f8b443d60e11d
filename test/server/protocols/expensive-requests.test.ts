/** What would be dear is refused by its size, before its parts are looked at, and in a sentence. */
import { describe, expect, it } from 'vitest';
import { reservationsAfterUpdate } from '../../../src/index.ts';
import { createLasting } from '../../support/requests.ts';
import { runService } from '../../support/running-service.ts';

const LEASE = { start_date: '2030-01-01 09:00', end_date: '2030-01-02 09:00' };
const CONTEXT = { user_id: 'u', project_id: 'p' };
const create = (lease: object) => JSON.stringify({ context: CONTEXT, lease: { ...LEASE, ...lease } });
const many = <Item>(count: number, item: (index: number) => Item) =>
  Array.from({ length: count }, (_, i) => item(i));

const HOST = { resource_type: 'physical:host', min: 1, max: 1 };

/** What is sent, and what is said to it. */
const DEAR: readonly (readonly [string, string, string])[] = [
  [
    'a million reservations',
    create({ reservations: Array(140_000).fill(1) }),
    'lease.reservations: expected a list of at most 500 reservations, got a list',
  ],
  [
    'too many allocations together',
    create({ reservations: many(3, () => ({ ...HOST, allocations: many(7000, () => ({})) })) }),
    'lease.reservations.2.allocations: expected at most 20000 allocations in all reservations of a lease, got more',
  ],
  [
    'a reservation twice',
    create({
      reservations: [
        { ...HOST, id: 'a' },
        { ...HOST, id: 'a' },
      ],
    }),
    'lease.reservations.1.id: expected an id that no other reservation of the lease has, got one twice',
  ],
  ['too many values', create({ x: Array(300_000).fill(1) }), 'expected at most 300000 values in the body'],
  [
    'too many levels in a short body',
    create({ x: 'DEEP' }).replace('"DEEP"', '['.repeat(10_000) + ']'.repeat(10_000)),
    'expected a body that is nested no deeper than 100 levels',
  ],
  [
    'long reservations',
    create({ reservations: many(3, () => ({ ...HOST, x: ['x'.repeat(100_000)] })) }),
    'lease.reservations.2: expected reservations of at most 262144 characters together, without their allocations, got more',
  ],
  [
    'a long project',
    JSON.stringify({ context: { ...CONTEXT, project_id: 'p'.repeat(65_537) }, lease: LEASE }),
    `context.project_id: expected a text of at most 65536 characters, got "${'p'.repeat(40)}…"`,
  ],
];

describe('a request that would be dear', () => {
  it.each(DEAR)('is refused in a sentence: %s', async (_, body, message) => {
    const { post, logger } = await runService();
    const [{ status, json }, other] = await Promise.all([
      post('/check-create', body),
      post('/check-create', JSON.stringify(createLasting(60))),
    ]);
    expect({ status, json }).toMatchObject({ status: 400, json: { message } });
    expect(other.status).toBe(204);
    expect(logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('is one of as much as there may be, which is judged', async () => {
    const { post } = await runService({
      enforcement: {
        enabled_filters: ['MaxReservationSizeFilter'],
        max_reservation_size: { 'physical:host': 499 },
      },
    });
    const reservations = many(500, (id) => ({ ...HOST, id: `${id}`, allocations: many(20, () => ({})) }));
    expect(await post('/check-create', create({ reservations }))).toMatchObject({
      status: 403,
      json: {
        message: 'The lease reserves up to 500 of physical:host; the most allowed for any lease is 499.',
      },
    });
  });
});

describe('an update of many reservations', () => {
  it('looks each of them up once', () => {
    let reads = 0;
    const counted = (id: string) => ({
      get id() {
        reads += 1;
        return id;
      },
      resource_type: 'physical:host',
    });
    const count = 500;
    const current = { reservations: many(count, (index) => counted(`c${index}`)) };
    const next = { reservations: many(count, (index) => counted(`n${index}`)) };
    expect(reservationsAfterUpdate(current, next)).toHaveLength(2 * count);
    expect(reads).toBeLessThan(10 * count);
  });
});
