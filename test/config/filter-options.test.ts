/** The values that the options of the included filters accept, alone and together. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { tlsFixture } from '../support/tls.ts';
import { configFile, configuration, shown } from './helpers.ts';

/** The problems of a section `[enforcement]` with these lines, the first of them in line 3. */
async function problems(filter: string, ...lines: readonly string[]): Promise<string[]> {
  const text = ['[enforcement]', `enabled_filters = ${filter}`, ...lines].join('\n');
  const { problems: found } = await configuration(text);
  return shown(found).filter((problem) => !/limits nothing|calls no service/.test(problem));
}

const duration = (...lines: readonly string[]) => problems('MaxLeaseDurationFilter', ...lines);
const external = (...lines: readonly string[]) => problems('ExternalServiceFilter', ...lines);
const endpoint = 'external_service_base_endpoint = http://127.0.0.1:8643';

describe('MaxLeaseDurationFilter', () => {
  it.each(['-1', '0', '1', '86400', '+86_400'])('accepts a limit of %s', async (value) => {
    expect(await duration(`max_lease_duration = ${value}`)).toEqual([]);
  });

  it.each(['-2', '-86400', '1.5', 'none', ''])('refuses a limit of %j', async (value) => {
    expect(await duration(`max_lease_duration = ${value}`)).toEqual([
      `blazar.conf:3: [enforcement] max_lease_duration: expected a whole number of seconds or -1, got "${value}"`,
    ]);
  });

  it.each(['project', 'user'])('accepts the same limits for a %s', async (whose) => {
    const name = `max_lease_duration_${whose}_limits`;
    const pairs = `${whose} id:seconds pairs with commas between them, each value a whole number of seconds or -1`;
    expect(await duration(`${name} = a:-1, b:0,\n  constructor:5`)).toEqual([]);
    for (const [text, reason] of Object.entries({
      'a:-2': ' (see "a")',
      'a:1d': '',
      'a:1,a:2': ' (a name is given twice)',
      '__proto__:1': ' (__proto__ cannot be the name of a pair)',
    })) {
      expect(await duration(`${name} = ${text}`)).toEqual([
        `blazar.conf:3: [enforcement] ${name}: expected ${pairs}, got "${text}"${reason}`,
      ]);
    }
  });

  it('accepts an extension window of 0 seconds or more, or none', async () => {
    const name = 'max_lease_duration_extension_window';
    expect(await duration(`${name} = 0`)).toEqual([]);
    expect(await duration(`${name} =`)).toEqual([]);
    expect(await duration(`${name} = -1`)).toEqual([
      `blazar.conf:3: [enforcement] ${name}: expected a whole number of seconds, 0 or more, got "-1"`,
    ]);
  });
});

describe('ExternalServiceFilter', () => {
  const names = ['base', 'check_create', 'check_update', 'on_end', 'commit_create', 'commit_update'].map(
    (name) => `external_service_${name}_endpoint`,
  );

  it('accepts any http or https URL', async () => {
    const urls = ['http://127.0.0.1:8643', 'HTTPS://policy.example.org/v1/', 'http://[::1]:80/'];
    for (const url of [...urls, 'http://h/a@b', 'http://policy']) {
      expect(await external(`external_service_base_endpoint = ${url}`), url).toEqual([]);
    }
  });

  it.each(names)('refuses any other URL in %s', async (name) => {
    expect(await external(endpoint, `${name} = ftp://h/`)).toEqual([
      `blazar.conf:4: [enforcement] ${name}: expected an http or https URL with a host and without credentials, got a value that is not shown`,
    ]);
  });

  it.each(['token', 'bearer_token'])('refuses a %s that no header can hold', async (name) => {
    const option = `external_service_${name}`;
    expect(await external(endpoint, `${option} = a b;c#d$$`)).toEqual([]);
    for (const token of ['hush\n  hush', 'hüsh', 'hu\tsh']) {
      expect(await external(endpoint, `${option} = ${token}`)).toEqual([
        `blazar.conf:4: [enforcement] ${option}: expected ASCII text without line breaks, got a value that is not shown`,
      ]);
    }
  });

  it('needs certificate and key together', async () => {
    const cert = tlsFixture('client.pem');
    // Fixtures are readable by everyone.
    const key = configFile(readFileSync(tlsFixture('client.key'), 'utf8'), 'key.pem');
    const otherKey = configFile(readFileSync(tlsFixture('other.key'), 'utf8'), 'other.key');
    const together =
      'expected external_service_client_cert_file and external_service_client_key_file together, got one of them';
    const certLine = `external_service_client_cert_file = ${cert}`;
    const keyLine = `external_service_client_key_file = ${key}`;
    expect(await external(endpoint, certLine, keyLine)).toEqual([]);
    expect(await external(endpoint, certLine)).toEqual([
      `blazar.conf:4: [enforcement] external_service_client_cert_file: ${together}`,
    ]);
    expect(await external(endpoint, 'external_service_client_cert_file =', keyLine)).toEqual([
      `blazar.conf:5: [enforcement] external_service_client_key_file: ${together}`,
    ]);
    const other = await external(endpoint, certLine, `external_service_client_key_file = ${otherKey}`);
    expect(other).toEqual([
      expect.stringMatching(
        /^blazar\.conf:4: .*client_cert_file: .*client\.pem and .*other\.key do not match/,
      ),
    ]);
  });

  it.each([
    ['nothing', ''],
    ['no certificate', 'no certificate'],
    ['a part of one', readFileSync(tlsFixture('ca.pem'), 'utf8').slice(0, 300)],
  ])('refuses authorities of which there is %s', async (_, text) => {
    const file = configFile(text, 'ca.pem');
    expect(await external(endpoint, `external_service_ca_file = ${file}`)).toEqual([
      expect.stringMatching(
        /^blazar\.conf:4: \[enforcement\] external_service_ca_file: .* certificate in PEM$/,
      ),
    ]);
  });

  it.each(['ca_file', 'client_cert_file', 'client_key_file'])(
    'needs a readable file for %s',
    async (name) => {
      const option = `external_service_${name}`;
      for (const [file, reason] of [
        ['/nope/x.pem', 'there is no such file'],
        ['/dev/zero', 'it is not a regular file'],
      ]) {
        expect(await external(endpoint, `${option} = ${file}`)).toContain(
          `blazar.conf:4: [enforcement] ${option}: expected a file that can be read, got "${file}" (${reason})`,
        );
      }
      expect(await external(endpoint, 'external_service_ca_file =')).toEqual([]);
    },
  );

  it('does not check its files when it is not enabled', async () => {
    expect(await duration('external_service_ca_file = /nope/x.pem')).toEqual([
      'blazar.conf:3: [enforcement] external_service_ca_file: has no effect: ExternalServiceFilter is not in enabled_filters',
    ]);
  });

  it.each([
    ['timeout', '0', 'a whole number of seconds from 1 to 3600'],
    ['timeout', '3601', 'a whole number of seconds from 1 to 3600'],
    ['connect_retries', '-1', 'a whole number from 0 to 10'],
    ['connect_retries', '11', 'a whole number from 0 to 10'],
    ['breaker_failures', '-1', 'a whole number, 0 or more'],
    ['breaker_cooldown', '0', 'a whole number of seconds, 1 or more'],
    ['allow_on_error', 'sometimes', 'true or false'],
    ['message_fields', 'a,,b', 'a list, with commas between its items'],
  ])('refuses %s = %s', async (name, value, expected) => {
    const [problem] = await external(endpoint, `external_service_${name} = ${value}`);
    expect(problem).toContain(
      `blazar.conf:4: [enforcement] external_service_${name}: expected ${expected}, got "${value}"`,
    );
  });
});
