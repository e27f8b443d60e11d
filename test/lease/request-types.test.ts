import { describe, expect, it } from 'vitest';
import { refuseTypeless } from '../../src/lease/request.ts';
import { runService } from '../support/running-service.ts';

const HOSTS = { resource_type: 'physical:host', min: 1, max: 1 };
const context = { user_id: 'alice', project_id: 'climate' };
const dates = { start_date: '2026-12-01 09:00', end_date: '2026-12-02 09:00' };

const LIMITED = {
  enforcement: {
    enabled_filters: ['MaxReservationSizeFilter'],
    max_reservation_size: { 'physical:host': 2 },
  },
};

describe('a reservation without resource_type', () => {
  const noType = 'expected the type of what is reserved, such as physical:host, got none';

  it.for([[{ max: 99 }], [{ resource_type: '', max: 99 }], [{ resource_type: ' \t', max: 99 }]])(
    'is refused in a create, at any position: %j',
    async ([one]) => {
      const { post } = await runService(LIMITED);
      const create = (...reservations: unknown[]) =>
        post('/check-create', { context, lease: { ...dates, reservations } });
      expect(await create(HOSTS)).toMatchObject({ status: 204 });
      expect(await create(HOSTS, one)).toMatchObject({
        status: 400,
        json: { message: expect.stringContaining(`lease.reservations.1.resource_type: ${noType}`) },
      });
    },
  );

  it('is refused in an update, unless the current lease has a type for its id', async () => {
    const { post } = await runService(LIMITED);
    const update = (one: object, current: object[] = [{ id: 'h', ...HOSTS }]) =>
      post('/check-update', {
        context,
        current_lease: { ...dates, reservations: current },
        lease: { ...dates, reservations: [one] },
      });
    const wrong = {
      status: 400,
      json: { message: expect.stringContaining(`lease.reservations.0.resource_type: ${noType}`) },
    };
    expect(await update({ id: 'h', max: 2 })).toMatchObject({ status: 204 });
    expect(await update({ id: 'h', max: 3 })).toMatchObject({ status: 403 });
    for (const id of [undefined, 'other', null, 7, '__proto__', '', ['h'], {}]) {
      expect(await update({ id, max: 1 }), String(id)).toMatchObject(wrong);
    }
    // An invalid type is not the same as a missing one.
    expect(await update({ id: 'h', resource_type: '', max: 1 })).toMatchObject(wrong);
    expect(await update({ id: 'h', max: 1 }, [{ id: 'h', max: 1 }])).toMatchObject({
      status: 400,
      json: { message: expect.stringContaining(`current_lease.reservations.0.resource_type: ${noType}`) },
    });
  });

  it('is accepted in an end, which grants nothing', async () => {
    const { post } = await runService(LIMITED);
    expect(await post('/on-end', { context, lease: { ...dates, reservations: [{}] } })).toMatchObject({
      status: 204,
    });
  });
});

it('the check of many reservations takes linear time', () => {
  const reservations = Array.from({ length: 100_000 }, (_, index) => ({ id: `${index}`, ...HOSTS }));
  const wanted = reservations.map(({ id }) => ({ id }));
  const started = performance.now();
  refuseTypeless({ reservations: wanted }, { reservations });
  expect(performance.now() - started).toBeLessThan(200_000);
});
