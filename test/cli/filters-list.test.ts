import { realpathSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rows } from '../support/check-command.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';

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
    const { code, stdout } = await runProgramInProcess([
      'filters',
      'list',
      '--config-file',
      conf,
      '--format',
      'json',
    ]);
    expect(code).toBe(0);
    const list = JSON.parse(stdout) as { name: string; file: string; options: string[] }[];
    expect(list.map(({ name }) => name)).toEqual([
      ...['ExternalServiceFilter', 'LeaseDatesFilter', 'MaxLeaseDurationFilter'],
      ...[
        'MaxLeasesFilter',
        'MaxReservationSizeFilter',
        'RulesFilter',
        'SchedulingPolicyFilter',
        'UsageBudgetFilter',
      ],
      ...['QuietFilter', 'TriedFilter'],
    ]);
    expect(list[2]).toMatchObject({ enabled: true, audit: false });
    expect(list[2]?.options).toContain('max_lease_duration_project_limits');
    expect(basename(realpathSync(list[2]?.file ?? ''))).toBe('max-lease-duration-filter.ts');
    expect(list[9]).toEqual({
      name: 'TriedFilter',
      enabled: false,
      audit: true,
      file: `${folder}/tried-filter.mjs`,
      options: ['tried_note'],
    });
  });

  it('lists the filters beside the mistakes of the configuration, and exits with 2', async () => {
    const conf = confFile('[enforcement]\nenabled_filters = MaxLeaseDurationFilte\n');
    const { code, stdout, stderr } = await runProgramInProcess(['filters', 'list', '--config-file', conf]);
    expect(code).toBe(2);
    expect(stdout).toContain('MaxLeaseDurationFilter');
    expect(stderr).toContain(`error: ${conf}:2: [enforcement] enabled_filters: `);
  });
});
