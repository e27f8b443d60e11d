import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nearest, nearestName } from '../../src/config/nearest.ts';

const OPTIONS = ['enabled_filters', 'audit_filters', 'max_lease_duration'];

it.each([
  ['enabled_filter', OPTIONS, 'enabled_filters'],
  ['Audit_Filters', OPTIONS, 'audit_filters'],
  // Wrong names from real configurations mean these, although others are nearer.
  ['max_reservation_length', ['max_reservation_size', 'max_lease_duration'], 'max_lease_duration'],
  ['constructor', ['construct'], 'construct'],
  ['shpo', ['dev', 'shop'], 'shop'],
  ['affinities', ['tolerations', 'affinity'], 'affinity'],
  ['max_lease', ['max_leases', 'max_lease_duration'], 'max_leases'],
  ['max_lease', ['max_lease_duration_exempt', 'max_lease_duration'], 'max_lease_duration'],
  ['project', ['amount', 'project_id'], 'project_id'],
])('suggests the nearest right name for %s of %j: %s', (name, names, right) => {
  expect(nearestName(name, names)).toBe(`; the nearest right name is "${right}"`);
});

describe('nothing is suggested', () => {
  it.each([
    ['lab_a100_max', ['add_volumes', 'max_price', 'lab']],
    ['x', ['allowed', 'y']],
    ['max', ['max_price']],
    ['__proto__', ['rate', 'audit_filters']],
    ['enabled_filter', []],
    ['', ['a']],
    ['enabled_filters'.repeat(1000), ['enabled_filters']],
  ])('for %s of %j', (name, names) => {
    expect(nearestName(name, names)).toBe('');
  });

  it('that differs by more than a third of the letters, unless it only goes on', () => {
    const word = fc.stringMatching(/^[a-z_]{0,12}$/);
    fc.assert(
      fc.property(word, fc.array(word), (written, names) => {
        const found = nearest(written, names);
        const bare = (name: string) => name.replaceAll('_', '');
        expect(found === undefined || names.includes(found)).toBe(true);
        if (found !== undefined && !bare(found).startsWith(bare(written))) {
          const common = [...bare(written)].filter((letter) => bare(found).includes(letter)).length;
          expect(common * 3).toBeGreaterThanOrEqual(bare(written).length * 2);
        }
      }),
    );
  });
});
