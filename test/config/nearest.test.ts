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

it('says nothing where there is no name', () => {
  expect(nearestName('enabled_filter', [])).toBe('');
});
