/** Mistakes that once led to a wrong value, a wrong place or a secret in a message. */
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { knownOptions } from '../../src/cli/common/known-options.ts';
import { describeOptions, type Option } from '../../src/config/option.ts';
import { resolve } from '../../src/config/resolve.ts';
import { hideCredentials } from '../../src/config/secret.ts';
import { type ConfigSources, readSources } from '../../src/config/sources.ts';
import { parseIni } from '../../src/config/text.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confFile } from '../support/files.ts';
import { configuration, shown } from './helpers.ts';

/** The problems of a section `[enforcement]` with these lines, the first of them in line 2. */
const problems = async (...lines: string[]) =>
  shown((await configuration(['[enforcement]', ...lines].join('\n'))).problems);
const DURATION = 'enabled_filters = MaxLeaseDurationFilter';
const EXTERNAL = 'enabled_filters = ExternalServiceFilter';
const endpoint = (url: string) => `external_service_base_endpoint = ${url}`;

/** The options of a section `s`, resolved over the sources. */
const resolved = async (shape: z.core.$ZodLooseShape, sources: ConfigSources) =>
  resolve(
    (await readSources({ configFiles: [], environment: {}, ...sources })).layers,
    describeOptions('s', z.object(shape)),
  );

it.each([
  ['in a path', [EXTERNAL, endpoint('http://h'), 'external_service_ca_file = /x/$external_service_token']],
  ['as the name of a filter', ['enabled_filters = $external_service_token']],
  ['as the name of a package', [DURATION, `audit_filters = p#\${external_service_token}Filter`]],
  ['as a folder', [DURATION, 'filters_path = /x/$external_service_token']],
  ['as a name in a dictionary', [DURATION, 'max_lease_duration_user_limits = $external_service_token:-5']],
  [
    'as a reference in another secret',
    [
      EXTERNAL,
      'external_service_bearer_token = a$sEcReT',
      endpoint('http://h/$external_service_bearer_token'),
    ],
  ],
  ['as a password with a slash', [endpoint('http://user:p/sEcReT@h/')]],
  ['as a password with a hash', [endpoint('http://user:p#sEcReT@h/')]],
  ['as a password with a question mark', [endpoint('http://user:p?sEcReT@h/')]],
  ['as a password without a scheme', [endpoint('user:sEcReT@h:80/')]],
  ['in base64 after a name without "="', ['external_service_token sEcReT==']],
])('no problem shows a secret %s', async (_, lines) => {
  expect((await problems('external_service_token = sEcReT', ...lines)).join('\n')).not.toContain('sEcReT');
});

describe('a problem', () => {
  it('has its place when the folder of filters does not exist', async () => {
    const [first] = await problems(DURATION, 'filters_path = /nope', 'max_lease_duration = 1');
    expect(first).toMatch(/^blazar\.conf:3: /);
  });

  it('of an audited filter is at audit_filters', async () => {
    expect(await problems(DURATION, 'audit_filters = ExternalServiceFilter')).toContainEqual(
      expect.stringMatching(/^blazar\.conf:3: \[enforcement\] audit_filters: .* none is set$/),
    );
  });

  it('of a broken header is the only one: the options below it are ignored', async () => {
    expect(await problems(DURATION, 'max_lease_duration = 1', '[database', 'connection = x')).toHaveLength(1);
    const { sections } = parseIni('[a]\nk = 1\n[b\nk = 2\n', 'f');
    expect(sections.get('a')?.get('k')?.value).toBe('1');
  });

  it('does not exist for [device], a section of the device plug-in of Blazar', async () => {
    expect(await problems(DURATION, 'max_lease_duration = 1', '[device]', 'on_end = x')).toEqual([]);
  });
});

it.each([[10n], [Object.assign([], { 0: globalThis })]])(
  'a value from code that JSON cannot show is refused like any other',
  async (a) => {
    const { problems: found } = await resolved({ a: z.int().default(1) }, { values: { s: { a } } });
    expect(shown(found)).toEqual([expect.stringMatching(/^in code: \[s\] a: expected a whole number, got /)]);
  },
);

it('a value from code is literal: a "$" in a token is no reference', async () => {
  const shape = { token: z.string().default(''), n: z.int().default(0) };
  const { settings, problems: found } = await resolved(shape, {
    values: { s: { token: 'pa$$word$x', n: '60' } },
  });
  expect([settings.map(({ value }) => value), found]).toEqual([['pa$$word$x', 60], []]);
});

/** Quadratic work would take longer than the timeout. */
it('credentials are hidden in a megabyte of text', { timeout: 120_000 }, () => {
  const text = 'a.'.repeat(500_000);
  expect(hideCredentials(text)).toBe(text);
});

it('references that double at each step are refused', async () => {
  const names = Array.from({ length: 60 }, (_, index) => `n${index}`);
  const config = names.map((name, index) => `s.${name}=$n${index + 1}$n${index + 1}`);
  const shape = Object.fromEntries(names.map((name) => [name, z.string().default('')]));
  const { problems: found } = await resolved(shape, { config: [...config, "s.n60=''"] });
  expect(shown(found).join('\n')).toContain('too many references');
});

const INDENTED = [
  'external_service_token = s3cret',
  'external_service_token: "s3cret"',
  'external_service_token=$s3cret',
  `external_service_token = a\${s3cret}b`,
  'external_service_token = s3cret # $nothing',
];

async function errors(...lines: readonly string[]): Promise<string[]> {
  const { problems } = await configuration(['[enforcement]', ...lines].join('\n'));
  expect(shown(problems).join('\n')).not.toContain('s3cret');
  return shown(problems, 'error');
}

const INDENTATION =
  'this indented line continues the option, and looks like one of its own; remove the indentation';

describe('an indented line that sets a secret', () => {
  it.each([
    ['a right integer', 'max_lease_duration = 60'],
    ['a wrong integer', 'max_lease_duration = one day'],
    ['a boolean', 'external_service_allow_on_error = true'],
    ['a URL', 'external_service_base_endpoint = http://h/'],
    ['a dictionary', 'max_lease_duration_project_limits = climate:60'],
    ['a list of filters', 'enabled_filters = MaxLeaseDurationFilter'],
    ['a list with a wrong filter', 'enabled_filters = NoSuchFilter, MaxLeaseDurationFilter'],
    ['a list of audited filters', 'audit_filters = MaxLeaseDurationFilter'],
    ['a reference', 'external_service_timeout = $max_lease_duration_extension_window'],
    ['a reference to nothing', 'max_lease_duration = $nothing'],
    ['a reference to nothing in a list', 'enabled_filters = MaxLeaseDurationFilter, $nothing'],
    ['a reference to itself', 'max_lease_duration = $max_lease_duration'],
    ['a file', 'external_service_ca_file = /no/such/file'],
    ['a folder', 'filters_path = /no/such/folder'],
  ])('is an error of the option above, and is not shown: %s', async (_, above) => {
    const [name] = above.split(' ');
    for (const line of INDENTED) {
      expect(await errors(above, `  ${line}`)).toEqual([
        `blazar.conf:3: [enforcement] ${name}: ${INDENTATION}`,
      ]);
    }
  });

  it.each(INDENTED)('is not shown when another option refers to the one above: %s', async (line) => {
    const above = 'max_lease_duration_extension_window = 60';
    const found = await errors(
      'max_lease_duration = $max_lease_duration_extension_window',
      above,
      `\t${line}`,
    );
    expect(found.map((error) => error.split(': ', 1)[0])).toEqual(['blazar.conf:2', 'blazar.conf:4']);
  });

  it('is reported at its own line', async () => {
    expect(
      await errors('max_lease_duration =', '  60', '  # a comment', '  max_lease_duration_user_limits = a:5'),
    ).toEqual([`blazar.conf:5: [enforcement] max_lease_duration: ${INDENTATION}`]);
  });
});

it.each([
  ['a list', 'max_lease_duration_exempt_project_ids = climate,\n  physics'],
  ['a dictionary', 'max_lease_duration_project_limits = climate:60,\n  physics:120'],
])('%s may continue on indented lines', async (_, lines) => {
  expect(await errors('enabled_filters = MaxLeaseDurationFilter', lines)).toEqual([]);
});

it('only the first line of any other wrong value is shown', async () => {
  expect(await errors('max_lease_duration = 60', '  s3cret')).toEqual([
    'blazar.conf:2: [enforcement] max_lease_duration: expected a whole number of seconds or -1, got "60" and the indented lines below it',
  ]);
});

it('the name after a "$" is shown only in a value of one line', async () => {
  expect(await errors('max_lease_duration = $nothing')).toEqual([
    'blazar.conf:2: [enforcement] max_lease_duration: "$nothing" refers to an option that is not set; write "$$" for a dollar sign',
  ]);
  expect(await errors('max_lease_duration = $nothing', '  $s3cret')).toEqual([
    'blazar.conf:2: [enforcement] max_lease_duration: a "$" in the value refers to an option that is not set; write "$$" for a dollar sign',
  ]);
});

// The first call compiles every policy, which may take longer on a busy machine than loading waits for.
const { options } = await vi.waitFor(() => knownOptions(), { timeout: 120_000 });
const urls = options.filter(({ url, secret }) => url || secret);
const id = ({ section, name }: Option) => `[${section}] ${name}`;

const KEYS = /PATHKEY|QUERYKEY|USERKEY/;
const MISTYPED = [
  'https//host.example/PATHKEY?key=QUERYKEY',
  'htps://host.example/PATHKEY?key=QUERYKEY',
  'https:/USERKEY:pass@/PATHKEY?key=QUERYKEY',
  'host.example/PATHKEY?key=QUERYKEY # of the service',
  'https://host.example:port/PATHKEY?key=QUERYKEY',
  `https://host.example/PATHKEY?key=$QUERYKEY`,
];

it('every option that expects a URL is marked as one, or is a secret', () => {
  const expecting = options.filter(({ expected }) => /URL|:\/\//.test(expected));
  expect(expecting.length).toBeGreaterThan(10);
  expect(expecting.filter((option) => !urls.includes(option)).map(id)).toEqual([]);
});

/** A configuration that sets each of these options, and the line of each. */
function configurationOf(settings: readonly Option[], value: string) {
  const lines = [
    '[skypilot]\nadmin_policies = DynamicKubernetesContextsUpdatePolicy,EnforceAutostopPolicy',
    '[enforcement]\nenabled_filters = ExternalServiceFilter',
    ...settings.map(({ section, name }) => `[${section}]\n${name} = ${value}`),
  ];
  const conf = confFile(`${lines.join('\n')}\n`);
  return { conf, places: settings.map((option, index) => `${conf}:${2 * index + 6}: ${id(option)}: `) };
}

it.each(MISTYPED)('a mistyped URL is reported without its value, for every option: %s', async (value) => {
  const { conf, places } = configurationOf(
    options.filter(({ url }) => url),
    value,
  );
  const { code, stdout, stderr } = await runProgramInProcess(['config', 'validate', '--config-file', conf]);
  expect(code).toBe(2);
  expect(places.length).toBeGreaterThan(10);
  expect(places.filter((place) => !stderr.includes(place))).toEqual([]);
  expect(stdout + stderr).not.toMatch(KEYS);
});

it('a right URL is shown without its query', async () => {
  const conf = confFile(
    '[enforcement]\nenabled_filters = ExternalServiceFilter\nexternal_service_base_endpoint = https://host.example/path?key=QUERYKEY\n',
  );
  for (const format of ['table', 'ini', 'json']) {
    const { stdout } = await runProgramInProcess([
      'config',
      'show',
      '--format',
      format,
      '--config-file',
      conf,
    ]);
    expect(stdout).toContain('https://host.example/path?****');
    expect(stdout).not.toMatch(KEYS);
  }
  const shown = await runProgramInProcess(['config', 'show', '--show-secrets', '--config-file', conf]);
  expect(shown.stdout).toContain('key=QUERYKEY');
});
