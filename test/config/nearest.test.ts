import { expect, it } from 'vitest';
import { nearestName } from '../../src/config/nearest.ts';

it('names the right name that is nearest', () => {
  const names = ['enabled_filters', 'audit_filters', 'max_lease_duration'];
  expect(nearestName('enabled_filter', names)).toBe('; the nearest right name is "enabled_filters"');
  expect(nearestName('max_reservation_length', names)).toBe(
    '; the nearest right name is "max_lease_duration"',
  );
  expect(nearestName('Audit_Filters', names)).toBe('; the nearest right name is "audit_filters"');
});

it('names what is meant by names that real configurations had, though others are nearer', () => {
  const filters = ['MaxReservationSizeFilter', 'MaxLeaseDurationFilter'];
  expect(nearestName('MaxReservationLengthFilter', filters)).toBe(
    '; the nearest right name is "MaxLeaseDurationFilter"',
  );
  expect(nearestName('max_reservation_length', ['max_reservation_size', 'max_lease_duration'])).toBe(
    '; the nearest right name is "max_lease_duration"',
  );
  expect(nearestName('max_reservation_length', ['max_reservation_size'])).toContain('max_reservation_size');
  expect(nearestName('constructor', ['construct'])).toContain('"construct"');
});

it('says nothing where there is no name', () => {
  expect(nearestName('enabled_filter', [])).toBe('');
});
