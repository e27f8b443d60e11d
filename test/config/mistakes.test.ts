/** Mistakes that once led to a wrong value, a wrong place or a secret in a message. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { interpolate } from '../../src/config/interpolate.ts';
import { describeOptions } from '../../src/config/option.ts';
import { resolve } from '../../src/config/resolve.ts';
import { hideCredentials } from '../../src/config/secret.ts';
import { type ConfigSources, readSources } from '../../src/config/sources.ts';
import { formatIniValue, parseIni } from '../../src/config/text.ts';
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

describe('no problem shows a secret', () => {
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
  ])('%s', async (_, lines) => {
    expect((await problems('external_service_token = sEcReT', ...lines)).join('\n')).not.toContain('sEcReT');
  });

  it.each(['enforcement.external_service_token sEcReT', 'enforcement.external_service_token:sEcReT'])(
    'of --config %s',
    async (text) => {
      const { problems: found } = await readSources({ configFiles: [], environment: {}, config: [text] });
      expect(found).toHaveLength(1);
      expect(shown(found).join()).not.toContain('sEcReT');
    },
  );
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

it.each(['\\$', 'a\\$b', '\\$\\$', '$\\$'])('%s is read back as it was written', (value) => {
  const { sections } = parseIni(`[s]\nk = ${formatIniValue(value)}`, 'f');
  const text = sections.get('s')?.get('k')?.value ?? '';
  expect(interpolate(text, 's', () => undefined).text).toBe(value);
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
it('credentials are hidden in a megabyte of text', { timeout: 30_000 }, () => {
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
