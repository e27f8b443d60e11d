/** Mistakes that once led to a wrong value, a wrong place or a secret in a message. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { formatIniValue, parseIni } from '../../src/config/ini.ts';
import { interpolate } from '../../src/config/interpolate.ts';
import { describeOptions } from '../../src/config/option.ts';
import { resolve } from '../../src/config/resolve.ts';
import { hideCredentials } from '../../src/config/secret.ts';
import { readSources } from '../../src/config/sources.ts';
import { configuration, shown } from './helpers.ts';

const read = async (...lines: string[]) =>
  shown(
    (await configuration(['[enforcement]', 'external_service_token = sEcReT', ...lines].join('\n'))).problems,
  );

describe('a secret is in no problem', () => {
  it.each([
    [
      'in a path',
      [
        'enabled_filters = ExternalServiceFilter',
        'external_service_base_endpoint = http://h',
        'external_service_ca_file = /x/$external_service_token',
      ],
    ],
    ['as the name of a filter', ['enabled_filters = $external_service_token']],
    [
      'as the name of a filter, twice',
      ['enabled_filters = MaxLeaseDurationFilter', `audit_filters = p#\${external_service_token}Filter`],
    ],
    [
      'as a folder',
      ['enabled_filters = MaxLeaseDurationFilter', 'filters_path = /x/$external_service_token'],
    ],
    [
      'as a name in a dictionary',
      [
        'enabled_filters = MaxLeaseDurationFilter',
        'max_lease_duration_user_limits = $external_service_token:-5',
      ],
    ],
    [
      'its $piece, over another option',
      [
        'enabled_filters = ExternalServiceFilter',
        'external_service_bearer_token = a$sEcReT',
        'external_service_base_endpoint = http://h/$external_service_bearer_token',
      ],
    ],
    ['a password with a slash', ['external_service_base_endpoint = http://user:p/sEcReT@h/']],
    ['a password with a hash', ['external_service_base_endpoint = http://user:p#sEcReT@h/']],
    ['a password with a question mark', ['external_service_base_endpoint = http://user:p?sEcReT@h/']],
    ['a password without a scheme', ['external_service_base_endpoint = user:sEcReT@h:80/']],
    ['a base64 token behind a name, and the "=" forgotten', ['external_service_token sEcReT==']],
  ])('%s', async (_, lines) => {
    expect((await read(...lines)).join('\n')).not.toContain('sEcReT');
  });

  it.each(['enforcement.external_service_token sEcReT', 'enforcement.external_service_token:sEcReT'])(
    '--config %s',
    async (text) => {
      const { problems } = await readSources({ configFiles: [], environment: {}, config: [text] });
      expect(problems).toHaveLength(1);
      expect(shown(problems).join()).not.toContain('sEcReT');
    },
  );
});

it('a folder of filters that is not there is reported with its place', async () => {
  const found = shown(
    (
      await configuration(
        '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nfilters_path = /nope\nmax_lease_duration = 1\n',
      )
    ).problems,
  );
  expect(found[0]).toMatch(/^blazar\.conf:3: /);
});

it('an option below a broken header is not taken for one of the section before', async () => {
  const found = shown(
    (
      await configuration(
        '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\n[database\nconnection = x\n',
      )
    ).problems,
  );
  expect(found).toHaveLength(1);
});

it('nor does it change a value of the section before', async () => {
  const { sections } = parseIni('[a]\nk = 1\n[b\nk = 2\n', 'f');
  expect(sections.get('a')?.get('k')?.value).toBe('1');
});

it.each(['\\$', 'a\\$b', '\\$\\$', '$\\$'])('%s is read back as it was written', (value) => {
  const text =
    parseIni(`[s]\nk = ${formatIniValue(value)}`, 'f')
      .sections.get('s')
      ?.get('k')?.value ?? '';
  expect(interpolate(text, 's', () => undefined).text).toBe(value);
});

it('[device], a section of Blazar with the device plugin, is no mistake', async () => {
  const found = shown(
    (
      await configuration(
        '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 1\n[device]\non_end = x\n',
      )
    ).problems,
  );
  expect(found).toEqual([]);
});

it('a missing default file is an error when nothing else says what is enforced', async () => {
  const environment = { OS_ENFORCEMENT__EXTERNAL_SERVICE_TOKEN: 't' };
  expect((await readSources({ environment })).problems).toHaveLength(1);
});

it.each([[10n], [Object.assign([], { 0: globalThis })]])(
  'a value from code that JSON cannot show is refused like any other',
  async (a) => {
    const { layers } = await readSources({
      configFiles: ['/dev/null'],
      environment: {},
      values: { s: { a } },
    });
    const { problems } = resolve(layers, describeOptions('s', z.object({ a: z.int().default(1) })));
    expect(shown(problems)).toEqual([
      expect.stringMatching(/^in code: \[s\] a: expected a whole number, got /),
    ]);
  },
);

it('a filter that is only tried is reported where it was named', async () => {
  const found = await read(
    'enabled_filters = MaxLeaseDurationFilter',
    'audit_filters = ExternalServiceFilter',
  );
  expect(found.find((problem) => problem.includes('none is set'))).toMatch(
    /^blazar\.conf:4: \[enforcement\] audit_filters/,
  );
});

it('hiding credentials takes time in proportion to the text', () => {
  const started = performance.now();
  hideCredentials('a.'.repeat(500_000));
  expect(performance.now() - started).toBeLessThan(2000);
}, 5000);

it('a value from code is taken as it is: a "$" in a token is no reference', async () => {
  const { settings, problems } = resolve(
    (await readSources({ environment: {}, values: { s: { token: 'pa$$word$x', n: '60' } } })).layers,
    describeOptions('s', z.object({ token: z.string().default(''), n: z.int().default(0) })),
  );
  expect([settings.map(({ value }) => value), problems]).toEqual([['pa$$word$x', 60], []]);
});

it('references that double at each step come to an end', async () => {
  const names = Array.from({ length: 60 }, (_, index) => `n${index}`);
  const config = names.map((name, index) => `s.${name}=$n${index + 1}$n${index + 1}`);
  const options = describeOptions(
    's',
    z.object(Object.fromEntries(names.map((name) => [name, z.string().default('')]))),
  );
  const { problems } = resolve(
    (await readSources({ environment: {}, config: [...config, "s.n60=''"] })).layers,
    options,
  );
  expect(shown(problems).join('\n')).toContain('too many references');
});
