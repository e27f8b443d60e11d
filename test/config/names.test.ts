/** Ids and resource types that cannot exist are mistakes in any source. */
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../src/base/errors.ts';
import { RESOURCE_TYPES } from '../../src/config/names.ts';
import { confFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { configFile, readAsClient } from './helpers.ts';

const errorsOf = async (configFiles: string[], values = {}) => {
  const { problems } = await readAsClient({ environment: {}, configFiles, values });
  return problems.filter(({ severity }) => severity === 'error').map(formatProblem);
};
const conf = (line: string) => errorsOf([confFile(`[enforcement]\n${line}\n`)]);

describe('a resource type', () => {
  it.for([
    ['usage_budget_rates', 'physical_host:1', 'physical_host', 'physical:host'],
    ['max_reservation_size', 'physical:hosts:1', 'physical:hosts', 'physical:host'],
    ['max_reservation_size', 'Physical:Host:1', 'Physical:Host', 'physical:host'],
    ['max_reservation_size', 'host:1', 'host', 'physical:host'],
    ['max_reservation_size', 'hosts:1', 'hosts', 'physical:host'],
    ['max_reservation_size', '*:1', '*', undefined],
    ['max_reservation_size', '__Proto__:1', '__Proto__', undefined],
    ['max_reservation_size', 'constructor:1', 'constructor', undefined],
    ['max_reservation_size_project_limits', 'a/b/physical:hst:1', 'a/b/physical:hst', 'physical:host'],
    ['max_reservation_size_user_limits', 'alice/networks:1', 'alice/networks', 'network'],
    ['max_leases_per_project_by_type', 'floatingip:1', 'floatingip', 'virtual:floatingip'],
    ['max_leases_per_user_by_type', 'virtual:instances:1', 'virtual:instances', 'virtual:instance'],
    ['max_leases_project_limits', 'climate/flavor:1', 'climate/flavor', 'flavor:instance'],
    ['max_leases_user_limits', 'alice/devices:1', 'alice/devices', 'device'],
  ])(
    'that does not exist is a mistake at its line: %s = %s',
    async ([option = '', text = '', name, nearest]) => {
      const [problem, ...others] = await conf(`${option} = ${text}`);
      expect(others).toEqual([]);
      expect(problem).toMatch(new RegExp(`:2: \\[enforcement\\] ${option}: expected `));
      expect(problem).toContain(`"${name}" is not a resource type`);
      expect(problem).toContain('[enforcement] resource_types');
      if (nearest !== undefined) {
        expect(problem).toContain(`the nearest right name is "${nearest}"`);
      }
    },
  );

  it('may be one of Blazar, one of resource_types, or * for rates', async () => {
    const all = RESOURCE_TYPES.map((type) => `${type}:1`).join();
    expect(await conf(`max_reservation_size = ${all}\nusage_budget_rates = ${all},*:0.5`)).toEqual([]);
    expect(await conf('max_reservation_size = fpga:1\nresource_types = fpga, my:thing')).toEqual([]);
    expect(await conf('max_reservation_size = fgpa:1\nresource_types = fpga')).toEqual([
      expect.stringContaining('the nearest right name is "fpga"'),
    ]);
  });

  it('in resource_types contains no blank, slash or wildcard', async () => {
    for (const wrong of ['my thing', 'a/b', '*', 'a*']) {
      expect(await conf(`resource_types = ${wrong}`), wrong).toHaveLength(1);
    }
  });

  it('is reported with all the others, at its own line in YAML, and from code', async () => {
    expect(await conf('max_reservation_size = hosts:1, physical:host:2, networks:3')).toEqual([
      expect.stringMatching(/"hosts" is not a resource type.*"networks" is not a resource type/),
    ]);
    const yaml = configFile('enforcement:\n  usage_budget_rates:\n    device: 1\n    hosts: 2\n', 'x.yaml');
    expect(await errorsOf([yaml])).toEqual([expect.stringMatching(/x\.yaml:4: /)]);
    const values = { enforcement: { enabled_filters: [], usage_budget_rates: { hosts: 1 } } };
    expect(await errorsOf([], values)).toEqual([
      expect.stringContaining('in code: [enforcement] usage_budget_rates'),
    ]);
  });
});

describe('an id', () => {
  it.for([
    ['exempt_projects', 'astro physics'],
    ['exempt_projects', 'astro\u00a0physics'],
    ['exempt_projects', 'astro\u200bphysics'],
    ['exempt_projects', '*'],
    ['max_lease_duration_exempt_project_ids', 'astro physics, climate'],
    ['max_lease_duration_project_limits', 'astro physics:60'],
    ['max_lease_duration_project_limits', '*:60'],
    ['max_lease_duration_user_limits', 'alice bob:60'],
    ['max_reservation_size_project_limits', 'astro physics/network:1'],
    ['max_leases_project_limits', 'astro physics:1'],
    ['max_leases_user_limits', 'alice bob/network:1'],
    ['usage_budget_flavor_rates', 'm1 large:1'],
  ])(
    'with a blank, an invisible character or a wildcard is a mistake: %s = %s',
    async ([option = '', text = '']) => {
      const [problem, ...others] = await conf(`${option} = ${text}`);
      expect(others).toEqual([]);
      expect(problem).toMatch(new RegExp(`:2: \\[enforcement\\] ${option}: expected .* is not an id: `));
    },
  );

  it('may be any other text', async () => {
    const ids = '__proto, constructor, a.b, 3d9b1f0c6a774f3fb1d5b0a1c2e4f697, ü, a/b, a:b';
    expect(await conf(`exempt_projects = ${ids}`)).toEqual([]);
  });
});

it('a default that its own schema refuses is a mistake of the filter', async () => {
  const withOptions = (schema: string) =>
    filterFolder({
      'mine-filter.js': `import { z } from 'zod';\n${filterSource('MineFilter', { extra: `static options = z.object({ mine: ${schema} });` })}`,
    });
  const problems = (schema: string) =>
    errorsOf([], { enforcement: { filters_path: [withOptions(schema)], enabled_filters: ['MineFilter'] } });
  for (const schema of [
    'z.int().min(10).default(3)',
    "z.enum(['a']).default('b')",
    "z.array(z.string().min(2)).default(['x'])",
    'z.record(z.string(), z.int()).default({ a: 0.5 })',
    'z.int().min(10).nullable().default(3)',
  ]) {
    const found = await problems(schema);
    expect(found, schema).toEqual([
      expect.stringContaining('option mine: its own schema refuses its default'),
    ]);
  }
  for (const schema of [
    'z.int().min(3).default(3)',
    'z.int().optional()',
    'z.string().transform((text) => text.length).default(3)',
    "z.string().default('')",
  ]) {
    expect(await problems(schema), schema).toEqual([]);
  }
});
