import { describe, expect, it } from 'vitest';
import { createLeases, type Fields, resources } from '../../src/conformance/leases.ts';
import { parseCreateRequest, parseEndRequest, parseUpdateRequest } from '../../src/lease/request.ts';
import { capturedText } from '../support/requests.ts';

const NOW = new Date('2026-11-21T15:37:41.123Z');
const leases = createLeases(NOW);

/** As it is on the wire. */
const sent = (body: unknown) => JSON.parse(JSON.stringify(body));
const captured = (name: string) => JSON.parse(capturedText(`${name}.json`));
const keys = (fields: Fields | undefined) => Object.keys(fields ?? {}).sort();

/** Names of all attributes, down to those of an allocation. */
function attributes(lease: { reservations: { allocations: Fields[] }[] } & Fields) {
  const [reservation] = lease.reservations;
  return {
    lease: keys(lease),
    reservation: keys(reservation),
    allocation: keys(reservation?.allocations[0]),
  };
}

describe('a lease of the run has the attributes that a real Blazar sends', () => {
  it('in a check-create', () => {
    const body = sent(leases.make().create);
    const real = captured('check-create-physical-host');
    expect(keys(body)).toEqual(keys(real));
    expect(keys(body.context)).toEqual(keys(real.context));
    expect(attributes(body.lease)).toEqual(attributes(real.lease));
  });

  it('in a check-create of a floating IP', () => {
    const body = sent(leases.make({ reservations: [resources['virtual:floatingip']] }).create);
    const { lease } = captured('check-create-gpu-and-floating-ip');
    lease.reservations.shift();
    expect(attributes(body.lease)).toEqual(attributes(lease));
  });

  it('in a check-update', () => {
    const lease = leases.make();
    const { start_date, end_date, reservations } = lease.current;
    const body = sent(lease.update({ start_date, end_date, reservations }));
    const real = captured('check-update-extend');
    expect(keys(body)).toEqual(keys(real));
    expect(attributes(body.current_lease)).toEqual(attributes(real.current_lease));
    expect(attributes(body.lease)).toEqual(attributes(real.lease));
  });

  it('in an on-end', () => {
    const body = sent(leases.make().end());
    const real = captured('on-end-active');
    expect(keys(body)).toEqual(keys(real));
    expect(attributes(body.lease)).toEqual(attributes(real.lease));
    expect(keys(body.lease.events[0])).toEqual(keys(real.lease.events[0]));
  });
});

it.for(Object.entries(resources))(
  'a lease of the type %s is a request in each form',
  ([type, reservation]) => {
    const lease = leases.make({ reservations: [reservation] });
    expect(reservation.resource_type).toBe(type);
    parseCreateRequest(sent(lease.create));
    parseUpdateRequest(sent(lease.update(lease.current)));
    parseEndRequest(sent(lease.end()));
  },
);

it('leases begin a week from now and take a day', () => {
  expect(leases.make().create.lease).toMatchObject({
    start_date: '2026-11-28T09:00:00',
    end_date: '2026-11-29T09:00:00',
  });
});

it('each lease has a name and an id of its own, also in another run', () => {
  const made = [leases.make(), leases.make(), createLeases(NOW).make()];
  expect(new Set(made.map(({ create }) => create.lease.name)).size).toBe(3);
  expect(new Set(made.map(({ id }) => id)).size).toBe(3);
});

it('the id is told in updates and ends, not where a lease is asked for', () => {
  const lease = leases.make();
  expect(lease.create.lease).not.toHaveProperty('id');
  expect(sent(lease.update({})).current_lease.id).toBe(lease.id);
  expect(sent(lease.end({ end_date: '2026-12-05T09:00:00' })).lease).toMatchObject({
    id: lease.id,
    end_date: '2026-12-05T09:00:00',
  });
});
