import { expect, it } from 'vitest';
import { nearestName } from '../../src/config/nearest.ts';

const OPTIONS = ['enabled_filters', 'audit_filters', 'max_lease_duration'];

it.each([
  ['enabled_filter', OPTIONS, 'enabled_filters'],
  ['Audit_Filters', OPTIONS, 'audit_filters'],
  // Wrong names from real configurations mean these, although others are nearer.
  ['max_reservation_length', ['max_reservation_size', 'max_lease_duration'], 'max_lease_duration'],
  [
    'MaxReservationLengthFilter',
    ['MaxReservationSizeFilter', 'MaxLeaseDurationFilter'],
    'MaxLeaseDurationFilter',
  ],
  ['max_reservation_length', ['max_reservation_size'], 'max_reservation_size'],
  ['constructor', ['construct'], 'construct'],
])('suggests the nearest right name for %s of %j: %s', (name, names, nearest) => {
  expect(nearestName(name, names)).toBe(`; the nearest right name is "${nearest}"`);
});

it('suggests nothing when there are no names', () => {
  expect(nearestName('enabled_filter', [])).toBe('');
});
