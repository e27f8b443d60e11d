import { describe, expect, it } from 'vitest';
import { parseUpdateRequest } from '../../src/lease/parse-request.ts';

const context = { user_id: 'alice', project_id: 'climate' };
const lease = { start_date: '2026-12-01', end_date: '2026-12-02' };
const typeless = { ...lease, reservations: [{ max: 1 }] };
const longName = { ...lease, name: 'x'.repeat(70_000) };

describe('an error in the current lease', () => {
  it.each(['currentLease', 'current_lease'])('names the field as the request does: %s', (name) => {
    const parse = (current: unknown) => () => parseUpdateRequest({ context, lease, [name]: current });
    expect(parse(undefined)).toThrow(`${name}: expected an object, got nothing`);
    expect(parse({ ...lease, end_date: 'soon' })).toThrow(`${name}.end_date: expected an ISO 8601 date`);
    expect(parse({ ...lease, reservations: [7] })).toThrow(`${name}.reservations.0: expected an object`);
    expect(parse(typeless)).toThrow(`${name}.reservations.0.resource_type: expected the type`);
    expect(parse(longName)).toThrow(`${name}.name: expected a text of at most`);
  });

  it('names current_lease if the request has both, or neither', () => {
    expect(() => parseUpdateRequest({ context, lease, current_lease: 1, currentLease: lease })).toThrow(
      'current_lease: expected an object, got 1',
    );
    expect(() => parseUpdateRequest({ context, lease })).toThrow('current_lease: expected an object');
  });
});
