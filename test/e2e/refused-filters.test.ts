import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { capturedFile, confFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { runCommand } from '../support/run-command.ts';

/** A filter with options, written as the text of a zod object. */
const withOptions = (name: string, options: string) =>
  `import { z } from 'zod';\n${filterSource(name, { extra: `static options = ${options};` })}`;

/** File → its text, the name by which a configuration asks for it, and why it is refused. */
const BROKEN: Record<string, [text: string, name: string, reason: string]> = {
  'hookless-filter.js': [
    "import { allow, BaseFilter } from 'blazar-enforcement';\nexport class HooklessFilter extends BaseFilter { checkCreate() { return allow(); } }",
    'HooklessFilter',
    'HooklessFilter does not implement checkUpdate, onEnd',
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
    'it exports OtherNameFilter, which does not match the name of the file: expected other-name-filter',
  ],
  'lonely-filter.js': [
    'export class LonelyFilter { checkCreate() {} checkUpdate() {} onEnd() {} }',
    'LonelyFilter',
    'it exports no class that extends BaseFilter',
  ],
  'silent-filter.js': ['void 0;', 'SilentFilter', 'it exports no class that extends BaseFilter'],
  'garbled-filter.js': [
    '// A comment.\nexport class {',
    'GarbledFilter',
    "it could not be loaded: Unexpected token '{' (FOLDER/garbled-filter.js:2)",
  ],
  'importing-filter.js': [
    "import './helper.js';",
    'ImportingFilter',
    "it could not be loaded: Unexpected token ']' (FOLDER/helper.js:3)",
  ],
  'nameless-filter.js': [
    "\nimport { nothing } from './reasons.js';",
    'NamelessFilter',
    "it could not be loaded: The requested module './reasons.js' does not provide an export named 'nothing' (FOLDER/nameless-filter.js:2)",
  ],
  'lost-filter.js': ["import './nowhere.js';", 'LostFilter', 'it could not be loaded: Cannot find module'],
  'explosive-filter.js': [
    "throw new Error('no licence\\nat home');",
    'ExplosiveFilter',
    'it could not be loaded: no licence at home (FOLDER/explosive-filter.js:1)',
  ],
  'null-filter.js': ['throw null;', 'NullFilter', 'it could not be loaded: null'],
};

function folderOfBroken() {
  const folder = filterFolder({
    ...Object.fromEntries(Object.entries(BROKEN).map(([file, [text]]) => [file, text])),
    'helper.js': '\n\nconst x = ];',
    'reasons.js': 'export const reason = 1;',
  });
  const broken = Object.entries(BROKEN).map(([file, [, name, reason]]) => ({
    name,
    text: `${folder}/${file}: ${reason.replace('FOLDER', folder)}`,
  }));
  return { folder, broken };
}

const validate = (conf: string) => runProgramInProcess(['config', 'validate', '--config-file', conf]);

const enforcing = (...lines: string[]) => confFile(`[enforcement]\n${lines.join('\n')}\n`);

describe('a name in enabled_filters', () => {
  const ENABLED = [
    ...['BaseFilter', 'constructor', '__proto__', 'filter', 'maxLeaseDurationFilter', 'MyRule', 'Filter'],
    ...['../XFilter', '/etc/XFilter', './XFilter', 'file:///XFilter', 'XFilter.js'],
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

  it('is refused if it is neither a class name nor package#ClassName', async () => {
    const conf = enforcing(
      `enabled_filters = ${ENABLED.join(', ')}`,
      `audit_filters = ${AUDITED.join(', ')}`,
    );
    const { code, stdout, stderr } = await validate(conf);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    const refusal = (line: number, option: string) => (name: string) =>
      `error: ${conf}:${line}: [enforcement] ${option}: expected the name of a filter, such as MaxLeaseDurationFilter, got ${JSON.stringify(name)}`;
    expect(stderr.trimEnd().split('\n')).toEqual([
      ...ENABLED.map(refusal(2, 'enabled_filters')),
      ...AUDITED.map(refusal(3, 'audit_filters')),
    ]);
  });

  it.each([
    ['HostCountFilter', 'host_count_filter.js', 'host-count-filter.js'],
    ['HostCountFilter', 'HostCountFilter.mjs', 'host-count-filter.mjs'],
    ['HostCountFilter', 'hostcount-filter.cjs', 'host-count-filter.js'],
    ['HostCountFilter', 'host-count-fliter.ts', undefined],
    ['HostCountFilter', 'hast-count_filter.ts', 'host-count-filter.ts'],
    ['AFilter', 'b_filter.js', undefined],
  ])('names the file that is nearly called so: %s, %s', async (name, file, expected) => {
    const folder = filterFolder({ [file]: "throw new Error('imported');" });
    const { stderr } = await validate(enforcing(`filters_path = ${folder}`, `enabled_filters = ${name}`));
    const hint =
      expected === undefined ? '; installed: ' : `: ${folder}/${file} must be called ${expected}\n`;
    expect(stderr).toContain(`enabled_filters: there is no filter "${name}"${hint}`);
  });
});

describe('a file that holds no usable filter', () => {
  it('is the only mistake, not the options that its filter would declare', async () => {
    const folder = filterFolder({ 'host-count-filter.js': "throw new Error('broken');" });
    const lines = [`filters_path = ${folder}`, 'host_count_max = 4', 'host_counts = 5'];
    const conf = enforcing('enabled_filters = HostCountFilter', ...lines);
    const { code, stderr } = await validate(conf);
    expect({ code, stderr: stderr.trimEnd().split('\n') }).toEqual({
      code: 2,
      stderr: [
        expect.stringContaining('enabled_filters: the filter "HostCountFilter" cannot be used'),
        `error: ${conf}:5: [enforcement] host_counts: unknown option`,
      ],
    });
    // Nobody names the filter, so that nothing says why its options are unknown.
    const unnamed = await validate(enforcing(...lines));
    expect(unnamed.stderr).toContain('host_count_max: unknown option');
    expect(unnamed.code).toBe(2);
  });

  it('is an error with its reason if it is named, and all of them are reported', async () => {
    const { folder, broken } = folderOfBroken();
    const names = broken.map(({ name }) => name).join(', ');
    const conf = enforcing(`filters_path = ${folder}`, `enabled_filters = ${names}`);
    const request = capturedFile('check-create-physical-host');
    const { code, stdout, stderr } = await runCommand(['check', 'create', request, '--config-file', conf]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    const lines = stderr.trimEnd().split('\n');
    for (const { name, text } of broken) {
      const start = `error: ${conf}:3: [enforcement] enabled_filters: the filter "${name}" cannot be used: ${text}`;
      expect(
        lines.filter((line) => line.startsWith(start)),
        start,
      ).toHaveLength(1);
    }
    expect(lines, 'no line twice, and no stack trace').toHaveLength(broken.length);
  });

  it('is a warning if nothing names it', async () => {
    const { folder, broken } = folderOfBroken();
    const conf = enforcing(`filters_path = ${folder}`, 'enabled_filters = MaxLeaseDurationFilter');
    const { code, stderr } = await runCommand(['config', 'validate', '--config-file', conf]);
    expect(code).toBe(0);
    for (const { text } of broken) {
      expect(stderr).toContain(`warning: not a usable filter: ${text}`);
    }
    expect(stderr).not.toContain('error:');
  });

  it('is named with its line if it ends the process', async () => {
    const folder = filterFolder({ 'late-filter.js': "\nPromise.reject(new Error('no licence'));" });
    const conf = enforcing(`filters_path = ${folder}`, 'enabled_filters = LateFilter');
    expect(await runCommand(['config', 'validate', '--config-file', conf])).toMatchObject({
      code: 70,
      stderr: `error: no licence (${folder}/late-filter.js:2)\n`,
    });
  });

  it('is not imported if it is not named like a filter', async () => {
    const files = ['README.md', 'helper.js', 'My-Filter.js', 'old-filter.js.bak', '.hidden-filter.js'];
    const imported = "throw new Error('imported');";
    const folder = filterFolder(Object.fromEntries(files.map((name) => [name, imported])));
    const conf = enforcing(
      `filters_path = ${folder}`,
      'enabled_filters = MaxLeaseDurationFilter',
      'max_lease_duration = 60',
    );
    expect(await validate(conf)).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('two files with the same filter', () => {
  it('are refused, and each is named', async () => {
    const [first, second] = [0, 1].map(() => filterFolder({ 'twin-filter.js': filterSource('TwinFilter') }));
    const conf = enforcing(`filters_path = ${first}, ${second}`, 'enabled_filters = TwinFilter');
    const { code, stderr } = await validate(conf);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: `error: ${conf}:3: [enforcement] enabled_filters: the filter "TwinFilter" cannot be used: ${second}/twin-filter.js: there is another TwinFilter in ${first}/twin-filter.js; remove or rename one of them\n`,
    });
  });

  it('are refused if one of them is included', async () => {
    const folder = filterFolder({
      'max-lease-duration-filter.js': filterSource('MaxLeaseDurationFilter'),
    });
    const { code, stderr } = await validate(
      enforcing(`filters_path = ${folder}`, 'enabled_filters = MaxLeaseDurationFilter'),
    );
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /^error: .*there is another MaxLeaseDurationFilter in .*; remove or rename one of them/,
    );
  });
});

it('a folder of filters_path that cannot be read is an error with the reason', async () => {
  const folder = filterFolder({ 'no-folder': '' });
  mkdirSync(join(folder, 'empty'));
  const paths = ['nowhere', 'no-folder', 'empty'].map((name) => `${folder}/${name}`).join(', ');
  const { code, stderr } = await validate(
    enforcing(`filters_path = ${paths}`, 'enabled_filters = NoOpFilter'),
  );
  expect(code).toBe(2);
  expect(stderr).toContain(`${folder}/nowhere: the folder could not be read: there is no such file`);
  expect(stderr).toContain(
    `${folder}/no-folder: the folder could not be read: a part of its path is not a folder`,
  );
  expect(stderr).toContain('there is no filter "NoOpFilter"');
});
