import { readFileSync, realpathSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { includedPolicies } from '../../src/skypilot/policies/included-policies.ts';
import { rows } from '../support/check-command.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confFile, projectFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { printed } from '../support/run-command.ts';

const SAMPLE = 'etc/blazar.conf.sample';
const text = readFileSync(projectFile(SAMPLE), 'utf8');

async function show(conf: string): Promise<Record<string, Record<string, unknown>>> {
  const flags = ['--format', 'json', '--config-file', conf];
  const { code, stdout, stderr } = await runProgramInProcess(['config', 'show', ...flags]);
  expect({ code, errors: stderr.match(/^error.*$/gm) }).toEqual({ code: 0, errors: null });
  return JSON.parse(stdout);
}

it('config sample prints etc/blazar.conf.sample, whatever the configuration of the machine', async () => {
  const env = { OS_ENFORCEMENT__MAX_LEASE_DURATION: '60', BLAZAR_ENFORCEMENT_CONFIG: '/nowhere' };
  const stdout = printed(await runProgramInProcess(['config', 'sample'], { env }));
  expect(stdout, `npm run build && node dist/src/cli/main.js config sample > ${SAMPLE}`).toBe(text);
});

it('the sample is a valid configuration, and with every default uncommented it sets the defaults', async () => {
  const defaults = await show(confFile('[enforcement]\n'));
  expect(await show(projectFile(SAMPLE))).toEqual(defaults);
  const uncommented = text.replaceAll(/^#(\w+ = .+)$/gm, '$1');
  expect(uncommented.match(/^\w+ = .+$/gm)?.length).toBeGreaterThan(5);
  // A connection that is set may hold a password, and is hidden.
  const ledger = { ...defaults.ledger, connection: '****' };
  // Options of policies that are not enabled are shown only where they are set.
  const skypilot = expect.objectContaining(defaults.skypilot ?? {});
  expect(await show(confFile(uncommented))).toEqual({ ...defaults, ledger, skypilot });
});

it('the sample has every option once, with its help, what is expected and its default', async () => {
  const defaults = await show(confFile('[enforcement]\n'));
  const names = [...text.matchAll(/^#(\w+) =/gm)].map(([, name]) => name);
  const ofPolicies = (await includedPolicies()).flatMap(({ policyClass }) =>
    Object.keys(policyClass.options.shape),
  );
  const known = Object.values(defaults).flatMap((options) => Object.keys(options));
  // Some are named alike in two sections.
  expect([...names].sort()).toEqual([...known, ...ofPolicies].sort());
  const paragraphs = text.split('\n\n').filter((paragraph) => paragraph.startsWith('#'));
  expect(paragraphs).toHaveLength(names.length);
  for (const paragraph of paragraphs) {
    expect(paragraph).toMatch(/^# \S.+(\n# .+)*\n# Expected: .+\n# Default: .+\n#\w+ =.*\s*$/);
  }
});

describe('filters in filters_path', () => {
  const withFilter = () => {
    const options = "z.object({ my_limit: z.int().default(7).meta({ description: 'My own limit.' }) })";
    const source = filterSource('MyFilter', { extra: `static options = ${options};` });
    return filterFolder({ 'my-filter.js': `import { z } from 'zod';\n${source}`, 'bad-filter.js': '1' });
  };

  it.each([
    ['--config', (folder: string) => `enforcement.filters_path=${folder}`],
    ['--config-file', (folder: string) => confFile(`[enforcement]\nfilters_path = ${folder}\n`)],
  ])('have their options in the sample and in --help with %s', async (flag, value) => {
    const folder = withFilter();
    const sources = [flag, value(folder)];
    const { code, stdout, stderr } = await runProgramInProcess(['config', 'sample', ...sources]);
    expect(stdout).toContain('# My own limit.\n# Expected: a whole number\n# Default: 7\n#my_limit = 7\n');
    const reason = `not a usable filter: ${folder}/bad-filter.js: it exports no class that extends BaseFilter`;
    expect({ code, stderr }).toEqual({ code: 0, stderr: `warning: ${reason}\n` });
    const help = await runProgramInProcess(['serve', ...sources, '--help']);
    expect(help.stdout).toMatch(/^ {2}my_limit +My own limit\.$/m);
    expect((await runProgramInProcess(['serve', '--help'])).stdout).not.toContain('my_limit');
  });

  it.each([
    [
      '--config',
      'enforcement.filters_path=/nowhere',
      'error: --config enforcement.filters_path: [enforcement] filters_path: /nowhere: the folder could not be read: there is no such file\n',
    ],
  ])('that cannot be found are an error beside the sample: %s %s', async (flag, value, error) => {
    const { code, stdout, stderr } = await runProgramInProcess(['config', 'sample', flag, value]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: error });
    expect(stdout).toContain('#enabled_filters =');
  });
});

describe('filters list', () => {
  function configuration() {
    const folder = filterFolder({
      'quiet-filter.js': filterSource('QuietFilter'),
      'tried-filter.mjs': filterSource('TriedFilter', {
        extra: "static options = z.object({ tried_note: z.string().default('') });",
      }).replace(/^/, "import { z } from 'zod';\n"),
    });
    const conf = confFile(
      `[enforcement]\nfilters_path = ${folder}\nenabled_filters = MaxLeaseDurationFilter\naudit_filters = TriedFilter\n`,
    );
    return { conf, folder };
  }

  it('prints name, use, file and options of every filter', async () => {
    const { conf, folder } = configuration();
    const { code, stdout } = await runProgramInProcess(['filters', 'list', '--config-file', conf]);
    expect(code).toBe(0);
    const list = rows(stdout);
    expect(list[0]).toEqual(['NAME', 'USE', 'FILE', 'OPTIONS']);
    const filters = list.slice(1).filter(([name]) => name !== '');
    expect(filters.map(([name, use]) => [name, use])).toEqual([
      ['ExternalServiceFilter', 'not enabled'],
      ['LeaseDatesFilter', 'not enabled'],
      ['MaxLeaseDurationFilter', 'enabled'],
      ['MaxLeasesFilter', 'not enabled'],
      ['MaxReservationSizeFilter', 'not enabled'],
      ['RulesFilter', 'not enabled'],
      ['SchedulingPolicyFilter', 'not enabled'],
      ['UsageBudgetFilter', 'not enabled'],
      ['QuietFilter', 'not enabled'],
      ['TriedFilter', 'audit'],
    ]);
    expect(list).toContainEqual(['', 'max_lease_duration_extension_window']);
    expect(filters[8]).toEqual(['QuietFilter', 'not enabled', `${folder}/quiet-filter.js`]);
    expect(filters[9]).toEqual(['TriedFilter', 'audit', `${folder}/tried-filter.mjs`, 'tried_note']);
  });

  it('prints them as JSON', async () => {
    const { conf, folder } = configuration();
    const command = ['filters', 'list', '--config-file', conf, '--format', 'json'];
    const { code, stdout } = await runProgramInProcess(command);
    expect(code).toBe(0);
    const list = JSON.parse(stdout) as { name: string; file: string; options: string[] }[];
    expect(list[2]).toMatchObject({ name: 'MaxLeaseDurationFilter', enabled: true, audit: false });
    expect(list[2]?.options).toContain('max_lease_duration_project_limits');
    expect(basename(realpathSync(list[2]?.file ?? ''))).toBe('max-lease-duration-filter.ts');
    const file = `${folder}/tried-filter.mjs`;
    expect(list.slice(9)).toEqual([
      { name: 'TriedFilter', enabled: false, audit: true, file, options: ['tried_note'] },
    ]);
  });

  it('lists the filters beside the mistakes of the configuration, and exits with 2', async () => {
    const conf = confFile('[enforcement]\nenabled_filters = MaxLeaseDurationFilte\n');
    const { code, stdout, stderr } = await runProgramInProcess(['filters', 'list', '--config-file', conf]);
    expect(code).toBe(2);
    expect(stdout).toContain('MaxLeaseDurationFilter');
    expect(stderr).toContain(`error: ${conf}:2: [enforcement] enabled_filters: `);
  });
});
