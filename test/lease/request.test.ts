import { describe, expect, it } from 'vitest';
import { InvalidRequestError } from '../../src/index.ts';
import { parseCreateRequest, parseEndRequest, parseUpdateRequest } from '../../src/lease/request.ts';

const context = { user_id: 'alice', project_id: 'climate' };
const lease = { start_date: '2026-12-01', end_date: '2026-12-02' };

/** In code, a lease may have no end. */
const loop: Record<string, unknown> = { resource_type: 'physical:host' };
loop.x = loop;

describe('a request', () => {
  const contextWith = (attributes: object) => ({ context: { ...context, ...attributes }, lease });
  const leaseWith = (attributes: object) => ({ context, lease: { ...lease, ...attributes } });
  const reserving = (one: unknown) => leaseWith({ reservations: [one] });
  it.each<[what: unknown, error: string]>([
    [undefined, 'expected an object, got nothing'],
    ['x', 'expected an object, got "x"'],
    [[], 'expected an object, got a list'],
    [{ lease }, 'context: expected an object, got nothing'],
    [{ context: { user_id: 'u' }, lease }, 'context.project_id: expected a text, got nothing'],
    [contextWith({ project_id: 1 }), 'context.project_id: expected a text, got 1'],
    [contextWith({ project_id: '' }), 'context.project_id: expected a text that is not empty, got ""'],
    [{ context }, 'lease: expected an object, got nothing'],
    [leaseWith({ start_date: undefined }), 'lease.start_date: expected an ISO 8601 date, got nothing'],
    [leaseWith({ end_date: null }), 'lease.end_date: expected an ISO 8601 date, got null'],
    [leaseWith({ end_date: 'soon' }), 'lease.end_date: expected an ISO 8601 date, got "soon"'],
    [
      leaseWith({ end_date: '2026-11-01' }),
      'lease.end_date: expected a date that is not before start_date, got "2026-11-01"',
    ],
    [
      leaseWith({ end_date: new Date('2026-11-01') }),
      'lease.end_date: expected a date that is not before start_date, got 2026-11-01T00:00:00Z',
    ],
    [leaseWith({ reservations: {} }), 'lease.reservations: expected a list, got an object'],
    [reserving(loop), 'lease.reservations.0: expected at most 100 levels of nesting, got more'],
    [reserving('x'), 'lease.reservations.0: expected an object, got "x"'],
    [reserving({ allocations: 5 }), 'lease.reservations.0.allocations: expected a list, got 5'],
  ])('is refused with the first invalid field: %j', (request, error) => {
    expect(() => parseCreateRequest(request)).toThrow(InvalidRequestError);
    expect(() => parseCreateRequest(request)).toThrow(expect.objectContaining({ message: error }));
  });

  it('keeps only its context and lease: a create has no current lease', () => {
    const request = { context, lease, currentLease: lease, adopts: true };
    for (const parse of [parseCreateRequest, parseEndRequest]) {
      expect(parse(request)).toEqual({ context, lease });
      expect(parse(request).lease).toBe(lease);
    }
  });
});

describe('an update', () => {
  const event = (time: string) => ({ event_type: 'end_lease', status: 'UNDONE', time });
  const currentLease = { ...lease, trust_id: 'a', events: [event('2026-12-02')] };
  const update = (change: object) => () => parseUpdateRequest({ context, currentLease, lease: change });

  it.each<[object, string]>([
    [{ events: [] }, 'events: expected what the current lease has, because Blazar could not end the lease'],
    [{ events: null }, 'events'],
    [{ events: [event('2026-12-03')] }, 'events'],
    [{ trust_id: 'b' }, 'trust_id'],
    [{ trust_id: null }, 'trust_id'],
  ])('is refused if Blazar could not end the lease any more: %j', (change, error) => {
    expect(update(change)).toThrow(InvalidRequestError);
    expect(update(change)).toThrow(`lease.${error}`);
  });

  it.each([{ user_id: 'prof' }, { user_id: null }, { project_id: 'physics' }, { id: 'B' }])(
    'is refused if limits of others would apply to the lease then: %j',
    (change) => {
      const [field] = Object.keys(change);
      const owned = { ...currentLease, ...context, id: 'A' };
      const error = `lease.${field}: expected what the current lease has, because a lease stays with its owner`;
      expect(() => parseUpdateRequest({ context, currentLease: owned, lease: change })).toThrow(error);
    },
  );

  it('keeps the owner of the context if the current lease names none', () => {
    expect(update({ user_id: 'prof' })).toThrow('lease.user_id');
    expect(update({ ...context, id: 'A' })).not.toThrow();
  });

  it.each(['active', 'error'])('may move the start of a lease only until it has started: %s', (status) => {
    const parse = (change: object, ...states: string[]) => {
      const reservations = states.map((state) => ({ resource_type: 'physical:host', status: state }));
      return () => parseUpdateRequest({ context, current_lease: { ...lease, reservations }, lease: change });
    };
    const later = { start_date: '2026-12-05', end_date: '2026-12-06' };
    expect(parse(later, 'pending', 'pending')).not.toThrow();
    expect(parse({ ...later, start_date: '2026-12-01T00:00' }, 'pending', status)).not.toThrow();
    expect(parse({ end_date: '2026-12-06' }, status)).not.toThrow();
    expect(parse(later, 'pending', status)).toThrow(
      'lease.start_date: expected what the current lease has, because it has started, got "2026-12-05"',
    );
    expect(parse(lease, status, 'deleted')).toThrow(
      'current_lease.reservations.1.status: expected one of a lease that has not ended, got "deleted"',
    );
  });

  it.each<[string, unknown]>([
    ['resource_properties', []],
    ['resource_properties', {}],
    ['hypervisor_properties', ['==', '$vcpus', '4']],
    ['hypervisor_properties', false],
  ])('is refused if Blazar could not write %s as %j after it has reserved hosts', (field, written) => {
    const reservations = [{ id: 'r', resource_type: 'physical:host', max: 5, [field]: written }];
    expect(update({ reservations })).toThrow(`lease.reservations.0.${field}: expected a text`);
    const as = parseUpdateRequest({
      context,
      currentLease: { ...currentLease, reservations },
      lease: { reservations },
    });
    expect(as.lease.reservations).toBe(reservations);
  });

  it('may have all that the current lease has', () => {
    expect(update({ ...currentLease, end_date: '2026-12-03', events: [event('2026-12-02')] })).not.toThrow();
  });
});

describe('the current lease of an update', () => {
  it.each(['currentLease', 'current_lease'])('is %s, and so are errors in it', (name) => {
    const parse = (current: unknown) => () => parseUpdateRequest({ context, lease, [name]: current });
    expect(parse(lease)()).toEqual({ context, lease, currentLease: lease });
    expect(parse(undefined)).toThrow(`${name}: expected an object, got nothing`);
    expect(parse({ ...lease, end_date: 'soon' })).toThrow(`${name}.end_date: expected an ISO 8601 date`);
    expect(parse({ ...lease, reservations: [7] })).toThrow(`${name}.reservations.0: expected an object`);
    expect(parse({ ...lease, reservations: [{ max: 1 }] })).toThrow(`${name}.reservations.0.resource_type:`);
    expect(parse({ ...lease, name: 'x'.repeat(70_000) })).toThrow(`${name}.name: expected a text of at most`);
  });

  it('is current_lease if the request has both, or neither', () => {
    const both = { context, lease, current_lease: { ...lease, name: 'wire' }, currentLease: { name: 'x' } };
    expect(parseUpdateRequest(both).currentLease.name).toBe('wire');
    expect(() => parseUpdateRequest({ ...both, current_lease: 1 })).toThrow('current_lease: expected an');
    expect(() => parseUpdateRequest({ context, lease })).toThrow('current_lease: expected an object, got');
  });

  it('supplies the dates that the new lease lacks', () => {
    const update = (current: object, next: object) => () =>
      parseUpdateRequest({ context, currentLease: current, lease: next });
    expect(update({}, {})).toThrow('lease.start_date: expected');
    expect(update(lease, {})()).toEqual({ context, currentLease: lease, lease: {} });
    expect(update(lease, { end_date: '2026-11-30' })).toThrow('lease.end_date: expected a date that is not');
  });
});
