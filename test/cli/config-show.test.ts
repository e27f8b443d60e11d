import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { serviceOptions } from '../../src/server/configuration/options.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { capturedFile, confFile, temporaryFile } from '../support/files.ts';
import { filterFolder, temporaryFolder } from '../support/filter-folder.ts';
import { printed, refused } from '../support/run-command.ts';

/** A filter with an option of every type. Its constructor writes a file, and throws. */
const typesFilter = (note: string) => `import { allow, BaseFilter } from 'blazar-enforcement';
import { writeFileSync } from 'node:fs';
import { z } from 'zod';
export class TypesFilter extends BaseFilter {
  static options = z.object({
    types_text: z.string().default('').meta({ description: 'A text.' }),
    types_number: z.number().default(1.5).meta({ description: 'A number.' }),
    types_switch: z.boolean().default(false).meta({ description: 'A switch.' }),
    types_secret: z.string().default('').meta({ description: 'A secret.', secret: true }),
    types_list: z.array(z.string()).default(['a', 'b']).meta({ description: 'A list.' }),
    types_map: z.record(z.string(), z.int()).default({}).meta({ description: 'A dictionary.' }),
    types_unset: z.int().optional().meta({ description: 'Not set.' }),
  });
  constructor(options, services) {
    super(options, services);
    writeFileSync(${JSON.stringify(note)}, 'constructed');
    throw new Error('never to be constructed');
  }
  checkCreate() { return allow(); }
  checkUpdate() { return allow(); }
  onEnd() {}
}
`;

const SECRETS = [
  'hunter2-0123456789abcdef',
  'bearer-of-news',
  'first-token-0123456789abcdef',
  'second-token-0123456789abcdef',
  'types-s3cret',
];

function configuration() {
  const note = join(temporaryFolder(), 'constructed');
  const folder = filterFolder({ 'types-filter.js': typesFilter(note) });
  const conf = confFile(`[enforcement]
enabled_filters = MaxLeaseDurationFilter, ExternalServiceFilter, TypesFilter
filters_path = ${folder}
max_lease_duration = +86_400
max_lease_duration_project_limits = climate:604800,physics:-1
external_service_base_endpoint = https://policy.example.org/v1
external_service_token = hunter2-0123456789abcdef
external_service_bearer_token = bearer-of-news
types_secret = types-s3cret
types_text = it is $external_service_token
types_switch = yes

[service]
tokens = first-token-0123456789abcdef, second-token-0123456789abcdef
`);
  return { conf, folder, note };
}

const show = (conf: string, ...flags: string[]) =>
  runProgramInProcess(['config', 'show', '--config-file', conf, ...flags]);

it('config show --format json shows every option of every installed filter, with a value of its type', async () => {
  const { conf, folder } = configuration();
  const stdout = printed(await show(conf, '--format', 'json'));
  const shown = JSON.parse(stdout);

  const { catalog } = await readConfiguration({ environment: {}, configFiles: [conf] });
  const declared = [...catalog.filters.values()].flatMap(({ options }) => options.map(({ name }) => name));
  expect(declared).toContain('types_unset');
  expect(Object.keys(shown.enforcement)).toEqual([
    'enabled_filters',
    'audit_filters',
    'exempt_projects',
    'filters_path',
    'resource_types',
    ...declared,
  ]);
  expect(shown.enforcement).toMatchObject({
    enabled_filters: ['MaxLeaseDurationFilter', 'ExternalServiceFilter', 'TypesFilter'],
    filters_path: [folder],
    max_lease_duration: 86_400,
    max_lease_duration_exempt_project_ids: [],
    max_lease_duration_project_limits: { climate: 604_800, physics: -1 },
    max_lease_duration_extension_window: null,
    external_service_base_endpoint: 'https://policy.example.org/v1',
    external_service_timeout: 10,
    external_service_allow_on_error: false,
    types_number: 1.5,
    types_switch: true,
    types_list: ['a', 'b'],
    types_map: {},
    types_unset: null,
  });
  expect(shown.service).toMatchObject({ host: '127.0.0.1', port: 8642, deadline: 30, tokens: '****' });
  expect(Object.keys(shown.service)).toEqual(Object.keys(serviceOptions.shape));
});

describe('config show', () => {
  it('cuts a long value in the table only when it is the default', async () => {
    const list = 'a.example/first:NoSchedule,a.example/second:NoExecute:300,b.example/third:NoExecute';
    const conf = confFile(`[kubernetes]\nsystem_tolerations = ${list}\n`);
    const value = async (file: string) => {
      const { stdout } = await show(file);
      return / system_tolerations +list +(.*)$/m.exec(stdout)?.[1];
    };
    expect(await value(conf)).toBe(list);
    expect(await value(confFile('[kubernetes]\n'))).toBe('node.kubernetes.io/not-ready:NoExecute…');
  });

  it('hides secrets, and values with a reference to one, in every format', async () => {
    const { conf } = configuration();
    for (const flags of ['table', 'json', 'table --origin', 'json --origin', 'ini --origin']) {
      const { code, stdout, stderr } = await show(conf, '--format', ...flags.split(' '));
      expect(code).toBe(0);
      expect(stdout).toContain('****');
      for (const secret of SECRETS) {
        expect(stdout + stderr, flags).not.toContain(secret);
      }
    }
  });

  const SECRET = 'hunter2-0123456789abcdef';
  const YAML = `enforcement: {external_service_token: ${SECRET}}\nservice: {tokens: [${SECRET}]}\n`;
  it.each<[string, string, string[], Record<string, string>]>([
    ['a YAML file', YAML, [], {}],
    [
      '--config',
      '',
      ['--config', `enforcement.external_service_token=${SECRET}`, '--config', `service.tokens=[${SECRET}]`],
      {},
    ],
    [
      'environment variables',
      '',
      [],
      { OS_ENFORCEMENT__EXTERNAL_SERVICE_TOKEN: SECRET, OS_SERVICE__TOKENS: SECRET },
    ],
  ])('hides secrets from %s, in every format', async (_, yaml, args, env) => {
    const files = [confFile('[enforcement]\nenabled_filters =\n'), temporaryFile('secrets.yaml', yaml)];
    const sources = [...files.flatMap((file) => ['--config-file', file]), ...args];
    const command = ['config', 'show', ...sources, '--origin'];
    for (const format of ['table', 'json', 'ini']) {
      const hidden = await runProgramInProcess([...command, '--format', format], { env });
      expect(hidden.code, hidden.stderr).toBe(0);
      expect(hidden.stdout.split('****'), format).toHaveLength(3);
      expect(hidden.stdout + hidden.stderr, format).not.toContain(SECRET);
      const shown = await runProgramInProcess([...command, '--format', format, '--show-secrets'], { env });
      expect(shown.stdout.split(SECRET), format).toHaveLength(3);
    }
  });
});

it('config show --format ini prints a file that reads back as the same configuration', async () => {
  const { conf, folder } = configuration();
  // Everything that means something in the dialect: comments, quotes, references, continuation lines, delimiters.
  const tricky = confFile(`[enforcement]
types_text = "  ' $$HOME #no ; comment = : \\ [x] ü "
    and a second line
    "and a third"
types_secret = '"quoted"'
types_list = a b, #c, ;d, "e", $$f
types_map = a.b:1, x/y:-2, #z:3
types_number = -1e-7
`);
  const sources = ['--config-file', conf, '--config-file', tricky, '--show-secrets'];
  const asJson = await runProgramInProcess(['config', 'show', ...sources, '--format', 'json']);
  expect(JSON.parse(asJson.stdout).enforcement).toMatchObject({
    types_text: '  \' $HOME #no ; comment = : \\ [x] ü \nand a second line\n"and a third"',
    types_secret: '"quoted"',
    types_list: ['a b', '#c', ';d', '"e"', '$f'],
    types_map: { 'a.b': 1, 'x/y': -2, '#z': 3 },
    types_number: -1e-7,
    filters_path: [folder],
  });

  const asIni = await runProgramInProcess(['config', 'show', ...sources, '--format', 'ini', '--origin']);
  const again = await show(confFile(asIni.stdout), '--format', 'json', '--show-secrets');
  expect(again).toMatchObject({ code: 0, stdout: asJson.stdout });
});

it('commands that print or check the configuration never construct a filter', async () => {
  const { conf, note } = configuration();
  for (const command of [
    ['config', 'show'],
    ['config', 'validate'],
    ['filters', 'list'],
  ]) {
    expect(await runProgramInProcess([...command, '--config-file', conf])).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect(existsSync(note), command.join(' ')).toBe(false);
  }

  // The counterproof: `check` constructs the filter, and fails.
  const file = capturedFile('check-create-physical-host');
  expect(await runProgramInProcess(['check', 'create', file, '--config-file', conf])).toEqual(
    refused(
      /^error: .*:2: .* TypesFilter could not be set up: never to be constructed \(.*types-filter\.js:17\)\n$/,
    ),
  );
  expect(existsSync(note)).toBe(true);
});
