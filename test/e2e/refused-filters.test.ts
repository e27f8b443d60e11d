import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { capturedFile, confFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { runCommand } from '../support/run-command.ts';

/** A filter with options, written as the text of a zod object. */
const withOptions = (name: string, options: string) =>
  `import { z } from 'zod';\n${filterSource(name, { extra: `static options = ${options};` })}`;

/** File → its text, the name by which a configuration asks for it, and why it can't be had. */
const BROKEN: Record<string, [text: string, name: string, reason: string]> = {
  'hookless-filter.js': [
    "import { allow, BaseFilter } from 'blazar-enforcement';\nexport class HooklessFilter extends BaseFilter { checkCreate() { return allow(); } }",
    'HooklessFilter',
    'HooklessFilter does not implement checkUpdate, onEnd',
  ],
  'greedy-filter.js': [
    withOptions('GreedyFilter', 'z.object({ max_lease_duration: z.int().default(-1) })'),
    'GreedyFilter',
    'GreedyFilter declares the option max_lease_duration, and its options must be greedy or start with greedy_',
  ],
  'near-filter.js': [
    withOptions('NearFilter', "z.object({ nearly_ours: z.string().default('') })"),
    'NearFilter',
    'NearFilter declares the option nearly_ours',
  ],
  'plain-filter.js': [
    filterSource('PlainFilter', { extra: "static options = { plain_text: 'x' };" }),
    'PlainFilter',
    'the static options of PlainFilter are no zod object',
  ],
  'demanding-filter.js': [
    withOptions('DemandingFilter', 'z.object({ demanding_text: z.string() })'),
    'DemandingFilter',
    'option demanding_text: expected a default, or .optional()',
  ],
  'one-name-filter.js': [
    filterSource('OtherNameFilter'),
    'OneNameFilter',
    'it exports OtherNameFilter, and the name of the file says otherwise: expected other-name-filter',
  ],
  'lonely-filter.js': [
    'export class LonelyFilter { checkCreate() {} checkUpdate() {} onEnd() {} }',
    'LonelyFilter',
    'it exports no class that extends BaseFilter',
  ],
  'silent-filter.js': ['void 0;', 'SilentFilter', 'it exports no class that extends BaseFilter'],
  'garbled-filter.js': ['export class {', 'GarbledFilter', 'it could not be loaded: Unexpected token'],
  'lost-filter.js': ["import './nowhere.js';", 'LostFilter', 'it could not be loaded: Cannot find module'],
  'explosive-filter.js': [
    "throw new Error('no licence\\nat home');",
    'ExplosiveFilter',
    'it could not be loaded: no licence at home',
  ],
  'null-filter.js': ['throw null;', 'NullFilter', 'it could not be loaded: null'],
};

const folderOfBroken = () =>
  filterFolder(Object.fromEntries(Object.entries(BROKEN).map(([file, [text]]) => [file, text])));

describe('a name in enabled_filters', () => {
  const ENABLED = [
    ...['BaseFilter', 'constructor', '__proto__', 'toString', 'filter', 'maxLeaseDurationFilter', 'MyRule'],
    ...['../x', '../XFilter', '/etc/XFilter', './XFilter', 'file:///XFilter', 'XFilter.js', 'Filter'],
  ];
  const AUDITED = [
    ...[
      'x#../y',
      'x#BaseFilter',
      '../x#AFilter',
      'x/y#BFilter',
      '#CFilter',
      'x#DFilter#DFilter',
      'X#EFilter',
    ],
    ...['x#', 'https://example.org/x.js#FFilter', 'node:fs#GFilter', '@x#HFilter', '@x/../y#IFilter'],
  ];

  it('is refused, each with the same sentence, when it is neither a class name nor package#ClassName', async () => {
    const conf = confFile(
      `[enforcement]\nenabled_filters = ${ENABLED.join(', ')}\naudit_filters = ${AUDITED.join(', ')}\n`,
    );
    const { code, stdout, stderr } = await runCommand(['config', 'validate', '--config-file', conf]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    const refusal = (line: number, option: string) => (name: string) =>
      `error: ${conf}:${line}: [enforcement] ${option}: expected the name of a filter, such as MaxLeaseDurationFilter, got ${JSON.stringify(name)}`;
    expect(stderr.trimEnd().split('\n')).toEqual([
      ...ENABLED.map(refusal(2, 'enabled_filters')),
      ...AUDITED.map(refusal(3, 'audit_filters')),
    ]);
  });

  it('is refused when it is empty', async () => {
    const conf = confFile('[enforcement]\nenabled_filters = MaxLeaseDurationFilter,,NoOpFilter\n');
    const { code, stderr } = await runCommand(['config', 'validate', '--config-file', conf]);
    expect(code).toBe(2);
    expect(stderr).toContain(`error: ${conf}:2: [enforcement] enabled_filters: expected a list`);
    expect(stderr).toContain('an item is empty');
  });
});

describe('a file that holds no usable filter', () => {
  it('is refused with its reason when it is named, and all of them at once', async () => {
    const folder = folderOfBroken();
    const names = Object.values(BROKEN).map(([, name]) => name);
    const conf = confFile(`[enforcement]\nfilters_path = ${folder}\nenabled_filters = ${names.join(', ')}\n`);
    const request = capturedFile('check-create-physical-host');
    const { code, stdout, stderr } = await runCommand(['check', 'create', request, '--config-file', conf]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    const lines = stderr.trimEnd().split('\n');
    for (const [file, [, name, reason]] of Object.entries(BROKEN)) {
      const start = `error: ${conf}:3: [enforcement] enabled_filters: the filter "${name}" cannot be used: ${folder}/${file}: ${reason}`;
      expect(
        lines.filter((line) => line.startsWith(start)),
        start,
      ).toHaveLength(1);
    }
    expect(lines, 'nothing is said twice, and no stack trace').toHaveLength(Object.keys(BROKEN).length);
  });

  it('is no more than a warning while nobody names it', async () => {
    const folder = folderOfBroken();
    const conf = confFile(
      `[enforcement]\nfilters_path = ${folder}\nenabled_filters = MaxLeaseDurationFilter\n`,
    );
    const { code, stderr } = await runCommand(['config', 'validate', '--config-file', conf]);
    expect(code).toBe(0);
    for (const [file, [, , reason]] of Object.entries(BROKEN)) {
      expect(stderr).toMatch(new RegExp(`^warning: .*${file}: .*${escaped(reason)}.*$`, 'm'));
    }
    expect(stderr).not.toContain('error:');
  });

  it('is not looked at when its name is not that of a filter', async () => {
    const folder = filterFolder({
      'README.md': 'filters',
      'helper.js': "throw new Error('imported');",
      'My-Filter.js': "throw new Error('imported');",
      'old-filter.js.bak': "throw new Error('imported');",
      '.hidden-filter.js': "throw new Error('imported');",
    });
    const conf = confFile(
      `[enforcement]\nfilters_path = ${folder}\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 60\n`,
    );
    expect(await runCommand(['config', 'validate', '--config-file', conf])).toMatchObject({
      code: 0,
      stderr: '',
    });
  });
});

describe('two files with one name', () => {
  it('are refused, and each is named', async () => {
    const [first, second] = [0, 1].map(() => filterFolder({ 'twin-filter.js': filterSource('TwinFilter') }));
    const conf = confFile(
      `[enforcement]\nfilters_path = ${first}, ${second}\nenabled_filters = TwinFilter\n`,
    );
    const { code, stderr } = await runCommand(['config', 'validate', '--config-file', conf]);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: `error: ${conf}:3: [enforcement] enabled_filters: the filter "TwinFilter" cannot be used: ${second}/twin-filter.js: there is another TwinFilter in ${first}/twin-filter.js; one of them must go or be renamed\n`,
    });
  });

  it('are refused when one of them is a filter of the package', async () => {
    const folder = filterFolder({
      'max-lease-duration-filter.js': filterSource('MaxLeaseDurationFilter'),
    });
    const conf = confFile(
      `[enforcement]\nfilters_path = ${folder}\nenabled_filters = MaxLeaseDurationFilter\n`,
    );
    const { code, stderr } = await runCommand(['config', 'validate', '--config-file', conf]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: .*there is another MaxLeaseDurationFilter in .*one of them must go/);
  });
});

describe('a folder of filters_path', () => {
  it('that is not there, or is no folder, keeps a named filter from being found, and says why', async () => {
    const folder = filterFolder({ 'no-folder': '' });
    mkdirSync(join(folder, 'empty'));
    const conf = confFile(
      `[enforcement]\nfilters_path = ${folder}/nowhere, ${folder}/no-folder, ${folder}/empty\nenabled_filters = NoOpFilter\n`,
    );
    const { code, stderr } = await runCommand(['config', 'validate', '--config-file', conf]);
    expect(code).toBe(2);
    expect(stderr).toContain(`${folder}/nowhere: the folder could not be read: there is no such file`);
    expect(stderr).toContain(
      `${folder}/no-folder: the folder could not be read: a part of its path is not a folder`,
    );
    expect(stderr).toContain('there is no filter "NoOpFilter"');
  });
});

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
