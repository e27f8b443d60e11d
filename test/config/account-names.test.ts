/** Where an id may stand, name@domain may; tags have options of their own. */
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../src/base/errors.ts';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { keystoneSection } from '../../src/openstack/options.ts';
import { confFile } from '../support/files.ts';

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
    ['two words@Default:60', { 'two words@Default': 60 }],
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
    ['climate@ Default:60', 'a blank beside its "@"'],
    ['climate*@Default:60', 'wildcards are not supported'],
    ['*@Default:60', 'wildcards are not supported'],
    ['cli\u200bmate@Default:60', 'an invisible character'],
    ['cli\u00a0mate@Default:60', 'an invisible character'],
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
  it.each([
    [
      'hpc:60, lease-days=14:120, a b:5, x:y:7, x@y:8',
      { hpc: 60, 'lease-days=14': 120, 'a b': 5, 'x:y': 7, 'x@y': 8 },
    ],
  ])('may be any that Keystone accepts: %s', async (text, expected) => {
    const { value, problems } = await read(`max_lease_duration_tag_limits = ${text}`);
    expect(problems).toEqual([]);
    expect(value).toEqual(expected);
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
