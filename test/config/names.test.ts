/** Ids and resource types that cannot exist are mistakes in any source. */
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../src/base/errors.ts';
import { RESOURCE_TYPES } from '../../src/config/names.ts';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { keystoneSection } from '../../src/openstack/options.ts';
import { confFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { configFile, problemsOf, readAsClient } from './helpers.ts';

const errorsOf = async (configFiles: string[], values = {}) => {
  const { problems } = await readAsClient({ environment: {}, configFiles, values });
  return problems.filter(({ severity }) => severity === 'error').map(formatProblem);
};
const conf = (line: string) => errorsOf([confFile(`[enforcement]\n${line}\n`)]);

describe('a resource type', () => {
  it.for([
    ['usage_budget_rates', 'physical_host:1', 'physical_host', 'physical:host'],
    ['max_reservation_size', 'Physical:Host:1', 'Physical:Host', 'physical:host'],
    ['max_reservation_size', 'hosts:1', 'hosts', 'physical:host'],
    ['max_reservation_size', '*:1', '*', undefined],
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

  it.for(['exempt_projects = climate/device', 'max_lease_duration_project_limits = a@b/physical:host:60'])(
    'with a resource type is a mistake where limits are for all types: %s',
    async (line) => {
      expect(await conf(line)).toEqual([expect.stringContaining(' ends with a resource type, and this')]);
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

const RESOLVING =
  '\n[keystone]\nauth_url = http://keystone.example.org/v3\nusername = u\npassword = p\nproject_name = p\nresolve_names = true';

async function read(line: string, keystone = RESOLVING) {
  const file = confFile(
    `[enforcement]\n${line}\nenabled_filters = MaxLeaseDurationFilter, MaxLeasesFilter, MaxReservationSizeFilter\n${keystone}\n`,
  );
  const { settings, problems, exemptProjects } = await readConfiguration(
    { environment: {}, configFiles: [file] },
    [keystoneSection],
  );
  const name = line.split('=')[0]?.trim();
  return {
    value: settings.find(({ option }) => option.name === name)?.value,
    exemptProjects,
    problems: problems
      .filter(({ option }) => option === name)
      .map((problem) => `${problem.severity}: ${formatProblem(problem).replace(file, 'blazar.conf')}`),
  };
}

describe('a name@domain', () => {
  it.each([
    ['climate@Default:60', { 'climate@Default': 60 }],
    ['climate@Default:-1, 7b6e:60', { 'climate@Default': -1, '7b6e': 60 }],
    ['two words@My Domain:60', { 'two words@My Domain': 60 }],
    ['a.b-c_d@e@Default:60', { 'a.b-c_d@e@Default': 60 }],
    ['a:b@c:d:60', { 'a:b@c:d': 60 }],
    ['  Klima Süd@Default : 60', { 'Klima Süd@Default': 60 }],
    ['a:b c@Default:60', { 'a:b c@Default': 60 }],
  ])('may stand in a dictionary: %s', async (text, expected) => {
    const { value, problems } = await read(`max_lease_duration_project_limits = ${text}`);
    expect(problems).toEqual([]);
    expect(value).toEqual(expected);
  });

  it('may stand in a list, and before a resource type', async () => {
    expect(await read('exempt_projects = climate@Default, two words@other, 7b6e')).toMatchObject({
      problems: [],
      exemptProjects: ['climate@Default', 'two words@other', '7b6e'],
    });
    expect(
      await read('max_leases_project_limits = climate@Default:20, climate@Default/physical:host:8'),
    ).toMatchObject({
      problems: [],
      value: { 'climate@Default': 20, 'climate@Default/physical:host': 8 },
    });
    expect(await read('max_reservation_size_user_limits = alice b@Default/network:8')).toMatchObject({
      problems: [],
    });
  });

  it.each([
    ['@Default:60', 'a part is empty'],
    ['climate@:60', 'a part is empty'],
    ['climate @Default:60', 'a blank beside its "@"'],
    ['climate*@Default:60', 'wildcards are not supported'],
    ['cli\u200bmate@Default:60', 'an invisible character'],
    ['climate@Default:60 physics@Default:60', 'is a comma missing'],
    ['7b6e:60 physics@Default:60', 'is a comma missing'],
    ['two words:60', 'is not an id'],
  ])('is a mistake: %s', async (text, why) => {
    for (const option of ['max_lease_duration_project_limits', 'max_leases_user_limits']) {
      const { problems } = await read(`${option} = ${text}`);
      expect(problems).toEqual([
        expect.stringMatching(new RegExp(`^error: blazar\\.conf:2: \\[enforcement\\] ${option}: `)),
      ]);
      expect(problems[0]).toContain(why);
    }
  });

  it.each(['climate@Default physics@Default', 'climate@Default\n  physics@Default', '@Default', 'climate@'])(
    'is a mistake in a list: %j',
    async (text) => {
      for (const option of ['exempt_projects', 'max_lease_duration_exempt_project_ids']) {
        expect((await read(`${option} = ${text}`)).problems).toEqual([
          expect.stringMatching(
            new RegExp(
              `^error: blazar\\.conf:\\d: \\[enforcement\\] ${option}: .* is neither an id nor name@domain`,
            ),
          ),
        ]);
      }
    },
  );

  it('given twice is a mistake', async () => {
    expect((await read('max_lease_duration_project_limits = a@D:1, a@D:2')).problems).toHaveLength(1);
  });

  it('does not stand where only ids do', async () => {
    const { problems } = await read('usage_budget_flavor_rates = m1 large@Default:1');
    expect(problems).toContainEqual(expect.stringMatching(/^error: .* is not an id/));
  });
});

describe('a tag', () => {
  it('may be any that Keystone accepts', async () => {
    const text = 'hpc:60, lease-days=14:120, a b:5, x:y:7, x@y:8';
    expect(await read(`max_lease_duration_tag_limits = ${text}`)).toMatchObject({
      problems: [],
      value: { hpc: 60, 'lease-days=14': 120, 'a b': 5, 'x:y': 7, 'x@y': 8 },
    });
  });

  it.each(['h*:60', 'a/b:60', 'hpc:60 gpu:70', 'a\u200b:60', ':60', 'hpc'])(
    'is a mistake: %s',
    async (text) => {
      expect((await read(`max_lease_duration_tag_limits = ${text}`)).problems).toEqual([
        expect.stringMatching(/^error: blazar\.conf:2: \[enforcement\] max_lease_duration_tag_limits: /),
      ]);
    },
  );

  it('may stand before a resource type', async () => {
    expect((await read('max_leases_tag_limits = hpc:3, hpc/physical:host:1')).problems).toEqual([]);
    expect((await read('max_reservation_size_tag_limits = lease-days=14/network:1')).problems).toEqual([]);
    expect((await read('max_leases_tag_limits = hpc/hosts:1')).problems).toHaveLength(1);
    expect((await read('max_reservation_size_tag_limits = hpc:1')).problems).toHaveLength(1);
  });
});

describe('without resolve_names', () => {
  const OFF = ['', '\n[keystone]\nauth_url = http://keystone.example.org/v3\nresolve_names = false'];

  it.each(OFF)('a limit that could never apply is reported at its line (%j)', async (keystone) => {
    const need = 'need [keystone] resolve_names = true';
    const at = 'blazar.conf:2: [enforcement]';
    expect(
      (await read('max_lease_duration_project_limits = climate:1, climate@Default:60', keystone)).problems,
    ).toEqual([
      `warning: ${at} max_lease_duration_project_limits: "climate@Default" applies only if it is an id: names ${need}`,
    ]);
    expect((await read('max_leases_user_limits = alice b@Default/network:60', keystone)).problems).toEqual([
      `error: ${at} max_leases_user_limits: "alice b@Default/network" would never apply: names ${need}`,
    ]);
    expect((await read('exempt_projects = climate@Default', keystone)).problems).toEqual([
      `warning: ${at} exempt_projects: "climate@Default" applies only if it is an id: names ${need}`,
    ]);
    for (const option of ['max_lease_duration_tag_limits', 'max_leases_tag_limits']) {
      expect((await read(`${option} = hpc:60`, keystone)).problems).toEqual([
        `error: ${at} ${option}: "hpc" would never apply: tags ${need}`,
      ]);
    }
  });

  it.each(OFF)('ids are as they were (%j)', async (keystone) => {
    expect((await read('max_lease_duration_project_limits = climate:1', keystone)).problems).toEqual([]);
    expect((await read('max_lease_duration_tag_limits =', keystone)).problems).toEqual([]);
  });
});

const EXPECTED =
  'error: blazar.conf:2: [enforcement] enabled_filters: expected the name of a filter, such as MaxLeaseDurationFilter';

describe('the names of filters', () => {
  it('need commas between them, also on lines of their own', async () => {
    expect(await problemsOf('enabled_filters = MaxLeaseDurationFilter ExternalServiceFilter')).toEqual([
      `${EXPECTED}, got "MaxLeaseDurationFilter ExternalServiceFilter"; names are separated by commas`,
    ]);
    expect(await problemsOf('enabled_filters = MaxLeaseDurationFilter', '  ExternalServiceFilter')).toEqual([
      `${EXPECTED}, got "MaxLeaseDurationFilter" and the indented lines below it; names are separated by commas`,
    ]);
  });

  it.each(['enabled_filters', 'audit_filters'])(
    'may not be repeated in %s, whatever their package',
    async (option) => {
      const names = 'MaxLeaseDurationFilter, pkg#MaxLeaseDurationFilter';
      expect(await problemsOf(`${option} = ${names}`)).toContain(
        `error: blazar.conf:2: [enforcement] ${option}: MaxLeaseDurationFilter is named twice`,
      );
    },
  );

  it('of a package that is not installed are an error', async () => {
    const [problem] = await problemsOf('enabled_filters = no-such-package#XFilter');
    expect(problem).toMatch(
      /^error: blazar\.conf:2: \[enforcement\] enabled_filters: the filter "no-such-package#XFilter" cannot be used: /,
    );
  });
});
