/** Options that the files of users and projects may not set. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { enforcementOptions, readConfiguration } from '../../src/enforcement/configuration.ts';
import { filterFolder, temporaryFolder } from '../support/filter-folder.ts';
import { type ClientSources, configFile, effective, readAsClient, service, shown } from './helpers.ts';

const SERVER = '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 60\n';

/** Sources with these texts for the user, the project and the server. */
function sources(user: string, project: string, server = SERVER): ClientSources {
  const home = temporaryFolder();
  const projectFolder = temporaryFolder();
  const own = join(home, '.config', 'blazar-enforcement');
  mkdirSync(own, { recursive: true });
  configFile(user, 'user.yaml', own);
  configFile(project, '.blazar-enforcement.conf', projectFolder);
  return { configFiles: [configFile(server)], projectFolder, environment: { HOME: home } };
}

const read = (all: ClientSources) => readAsClient(all, [service]);

/** Without the folders of the files. */
const short = (texts: readonly string[]) => texts.map((text) => text.replaceAll(/\/[^ ,()]*\//g, ''));

describe('files of users and projects', () => {
  it('set the options that are not reserved for the server', async () => {
    const configuration = await read(
      sources(
        '{enforcement: {max_lease_duration: 30}}',
        '[enforcement]\nmax_lease_duration_user_limits = a:5\n',
      ),
    );
    expect(short(shown(configuration.problems))).toEqual([
      '2 options come from a file that serve does not read: [enforcement] max_lease_duration (user.yaml:1), [enforcement] max_lease_duration_user_limits (.blazar-enforcement.conf:2)',
    ]);
    expect(effective(configuration, 'max_lease_duration')).toBe(30);
    expect(effective(configuration, 'max_lease_duration_user_limits')).toEqual({ a: 5 });
  });

  it('do not set any other option of any section, with one warning that lists them', async () => {
    const configuration = await read(
      sources(
        'enforcement:\n  enabled_filters: []\n  external_service_token: sEcReT\nservice:\n  port: 1\nDEFAULT:\n  x: 1\n',
        '[enforcement]\nexempt_projects = all\n[keystone]\npassword = sEcReT\n',
      ),
    );
    expect(short(shown(configuration.problems))).toEqual([
      "6 options that only the server's files may set are ignored: [enforcement] enabled_filters (user.yaml:2), [enforcement] external_service_token (user.yaml:3), [service] port (user.yaml:5), [default] x (user.yaml:7), [enforcement] exempt_projects (.blazar-enforcement.conf:2), [keystone] password (.blazar-enforcement.conf:4)",
    ]);
    expect(configuration.problems.map(({ severity }) => severity)).toEqual(['warning']);
    expect(configuration.filters).toHaveLength(1);
    expect(configuration.exemptProjects).toEqual([]);
    expect(effective(configuration, 'port', 'service')).toBe(8642);
  });

  it('load no code through filters_path or enabled_filters', async () => {
    const folder = filterFolder({ 'evil-filter.js': 'globalThis.evilFilterWasLoaded = true;' });
    const text = `enforcement: {filters_path: [${folder}], enabled_filters: [EvilFilter], audit_filters: ["evil#EvilFilter"]}`;
    const { catalog } = await read(sources(text, `[enforcement]\nfilters_path = ${folder}\n`));
    expect([...catalog.filters.keys()].filter((name) => name.startsWith('Evil'))).toEqual([]);
    expect(Reflect.get(globalThis, 'evilFilterWasLoaded')).toBeUndefined();
  });

  it.each([
    ['of [DEFAULT]', '$mine', '[DEFAULT]\nmine = theirs\n'],
    ['of another section', `\${elsewhere.mine}`, '[elsewhere]\nmine = theirs\n'],
    ["of one of the server's", '$external_service_token', '[enforcement]\nexternal_service_token = theirs\n'],
  ])("do not change the server's values through the $name %s", async (_, reference, project) => {
    const elsewhere = '[DEFAULT]\nmine = ours\n[elsewhere]\nmine = ours\n';
    const server = `${elsewhere}${SERVER}external_service_token = ours\nexempt_projects = ${reference}\n`;
    const yaml =
      '{DEFAULT: {mine: theirs}, elsewhere: {mine: theirs}, enforcement: {external_service_token: theirs}}';
    const { exemptProjects } = await read(sources(yaml, project, server));
    expect(exemptProjects).toEqual(['ours']);
  });

  it('cannot reach a section by capitals or spaces in its name', async () => {
    const { exemptProjects, problems } = await read(
      sources('{" Enforcement ": {exempt_projects: [a]}}', '[ENFORCEMENT]\nexempt_projects = b\n'),
    );
    expect(exemptProjects).toEqual([]);
    expect(shown(problems)).toEqual([expect.stringMatching(/^2 options that only the server's files/)]);
  });

  it('show no value that is joined to its name', async () => {
    const { problems } = await read(
      sources(
        '{service: {"tokens=sEcReT": , "tokens:sEcReT": }, enforcement: {external_service_token:sEcReT}}',
        '[service]\ntokens sEcReT==\n',
      ),
    );
    expect(problems).not.toEqual([]);
    expect(shown(problems).join('\n')).not.toContain('sEcReT');
    expect(shown(problems).join('\n')).toContain('[service] tokens … (');
  });
});

it('the options that are not reserved for the server are these', async () => {
  const { settings } = await readConfiguration({ configFiles: [], environment: {} });
  const left = settings.filter(({ option }) => !option.serverOnly).map(({ option }) => option.name);
  expect(left).toEqual([
    ...['lease_dates_earliest_start', 'lease_dates_latest_end', 'max_lease_duration'],
    ...['max_lease_duration_project_limits', 'max_lease_duration_tag_limits'],
    ...['max_lease_duration_user_limits'],
    ...['max_lease_duration_extension_window', 'max_leases_per_project', 'max_leases_per_user'],
    ...['max_leases_per_project_by_type', 'max_leases_per_user_by_type', 'max_leases_project_limits'],
    ...['max_leases_tag_limits', 'max_leases_user_limits'],
    ...['max_reservation_size', 'max_reservation_size_project_limits'],
    ...['max_reservation_size_tag_limits', 'max_reservation_size_user_limits'],
    ...['usage_budget_unit', 'usage_budget_rates'],
    ...['usage_budget_flavor_rates', 'usage_budget_rate_attribute', 'usage_budget_rate_attribute_max'],
    ...['usage_budget_required'],
  ]);
  expect(
    Object.values(enforcementOptions.shape).every((one) => z.toJSONSchema(one).serverOnly === true),
  ).toBe(true);
});
