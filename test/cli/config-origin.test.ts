import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confFile, temporaryFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { printed } from '../support/run-command.ts';

/** A filter with options that any source may set, and a secret dictionary. */
const SITE_FILTER = `import { z } from 'zod';
${filterSource('SiteFilter', {
  extra: `static options = z.object({
    site_colour: z.string().default('').meta({ description: 'A colour.' }),
    site_limits: z.record(z.string(), z.int()).default({}).meta({ description: 'Limits.' }),
    site_keys: z.record(z.string(), z.string()).default({}).meta({ description: 'Keys.', secret: true }),
  });`,
})}`;

const LIMITS = 'max_lease_duration_project_limits';

/** Two server files, the second of which overrides the first. */
function sources() {
  const base = confFile(
    `[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 1\n${LIMITS} = climate:1, physics:1\n[service]\nport = 1\n`,
  );
  const site = temporaryFile(
    'site.yaml',
    `enforcement:\n  max_lease_duration: 2\n  ${LIMITS}:\n    physics: 2\n    biology: 2\n`,
  );
  return { base, site, files: ['--config-file', base, '--config-file', site] };
}

const show = (...flags: string[]) => runProgramInProcess(['config', 'show', '--origin', ...flags]);

const cells = (stdout: string) => stdout.split('\n').map((row) => row.split(/ {2,}/));

describe('config show --origin', () => {
  it('shows the source of a value and those that it overrides, the last one first', async () => {
    const { base, site, files } = sources();
    const { code, stdout } = await runProgramInProcess(
      ['config', 'show', '--origin', ...files, '--config', 'enforcement.max_lease_duration=4'],
      { env: { OS_ENFORCEMENT__MAX_LEASE_DURATION: '3' } },
    );
    expect(code).toBe(0);
    expect(cells(stdout)[0]).toEqual(['SECTION', 'OPTION', 'TYPE', 'VALUE', 'ORIGIN']);
    expect(cells(stdout)).toContainEqual([
      'enforcement',
      'max_lease_duration',
      'integer',
      '4',
      `--config enforcement.max_lease_duration (over OS_ENFORCEMENT__MAX_LEASE_DURATION, ${site}:2, ${base}:3)`,
    ]);
    expect(cells(stdout)).toContainEqual(['service', 'port', 'integer', '1', `${base}:6`]);
    expect(cells(stdout)).toContainEqual([
      'enforcement',
      'max_lease_duration_extension_window',
      'integer',
      '(not set)',
      'default',
    ]);
  });

  it('shows them for each member of a dictionary from several sources', async () => {
    const { base, site, files } = sources();
    const { stdout } = await show(...files, '--config', `enforcement.${LIMITS}.climate=9`);
    const rows = cells(stdout).filter(([, option = '']) => option.startsWith(LIMITS));
    expect(
      rows.map(([, option, , value, origin]) => [option?.slice(LIMITS.length + 1), value, origin]),
    ).toEqual([
      ['climate', '9', `--config enforcement.${LIMITS}.climate (over ${base}:4)`],
      ['physics', '2', `${site}:4 (over ${base}:4)`],
      ['biology', '2', `${site}:5`],
    ]);
  });

  it('prints origin and beats of each value and each member as JSON', async () => {
    const { base, site, files } = sources();
    const { stdout } = await show(...files, '--format', 'json');
    const { enforcement, service } = JSON.parse(stdout);
    expect(enforcement.max_lease_duration).toEqual({ value: 2, origin: `${site}:2`, beats: [`${base}:3`] });
    expect(enforcement[LIMITS]).toEqual({
      value: { climate: 1, physics: 2, biology: 2 },
      origin: `${site}:3`,
      beats: [`${base}:4`],
      members: {
        climate: { origin: `${base}:4`, beats: [] },
        physics: { origin: `${site}:4`, beats: [`${base}:4`] },
        biology: { origin: `${site}:5`, beats: [] },
      },
    });
    expect(service.host).toEqual({ value: '127.0.0.1', origin: 'default', beats: [] });
  });

  it('prints them as comments of an INI file', async () => {
    const { base, site, files } = sources();
    const { stdout } = await show(...files, '--format', 'ini');
    expect(stdout).toContain(`\n# ${site}:2 (over ${base}:3)\nmax_lease_duration = 2\n`);
    expect(stdout).toContain(
      `\n# climate: ${base}:4\n# physics: ${site}:4 (over ${base}:4)\n# biology: ${site}:5\n${LIMITS} = climate:1,physics:2,biology:2\n`,
    );
  });

  it('shows the files of the user and of the project, which override those of the server', async () => {
    const folder = filterFolder({ 'site-filter.js': SITE_FILTER });
    const project = join(folder, '.blazar-enforcement.yaml');
    writeFileSync(project, 'enforcement:\n  site_colour: red\n  site_limits: {c: 3}\n');
    const user = temporaryFile('user.yaml', 'enforcement:\n  site_colour: green\n  site_limits: {b: 2}\n');
    const conf = confFile(
      `[enforcement]\nfilters_path = ${folder}\nenabled_filters = SiteFilter\nsite_colour = blue\nsite_limits = a:1,b:1\n`,
    );
    const { code, stdout } = await runProgramInProcess(
      ['config', 'show', '--origin', '--format', 'json', '--config-file', conf],
      { cwd: folder, env: { BLAZAR_ENFORCEMENT_USER_CONFIG: user } },
    );
    expect(code).toBe(0);
    const { enforcement } = JSON.parse(stdout);
    expect(enforcement.site_colour).toEqual({
      value: 'red',
      origin: `${project}:2`,
      beats: [`${user}:2`, `${conf}:4`],
    });
    expect(enforcement.site_limits.members).toEqual({
      a: { origin: `${conf}:5`, beats: [] },
      b: { origin: `${user}:3`, beats: [`${conf}:5`] },
      c: { origin: `${project}:3`, beats: [] },
    });
  });

  it('hides a whole dictionary of secrets', async () => {
    const folder = filterFolder({ 'site-filter.js': SITE_FILTER });
    const conf = confFile(`[enforcement]\nfilters_path = ${folder}\nenabled_filters = SiteFilter\n`);
    const one = temporaryFile('one.yaml', 'enforcement: {site_keys: {a: s3cret}}\n');
    const two = temporaryFile('two.yaml', 'enforcement: {site_keys: {b: s3cret}}\n');
    for (const format of ['table', 'json', 'ini']) {
      const files = [conf, one, two].flatMap((file) => ['--config-file', file]);
      const stdout = printed(await show(...files, '--format', format));
      expect(stdout).toContain('****');
      expect(stdout).not.toContain('s3cret');
    }
  });

  it('keeps a comment on one line, whatever the name of the file', async () => {
    const file = temporaryFile(
      'a\nport = 9\n.conf',
      '[enforcement]\nenabled_filters =\nmax_lease_duration = 1\n',
    );
    const { stdout } = await show('--config-file', file, '--format', 'ini');
    expect(stdout).toMatch(/^# .* port = 9 \.conf:3$/m);
    expect(stdout).not.toMatch(/^port = 9/m);
  });
});
