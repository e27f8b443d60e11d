import { chmodSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { identityUrl } from '../../src/openstack/effective-options.ts';
import { SECTIONS } from '../../src/server/configuration/sections.ts';
import { configFile, shown } from '../config/helpers.ts';
import { projectFile, temporaryFile } from '../support/files.ts';
import { rows } from '../support/rows.ts';

const URL = 'auth_url = https://keystone.example.org:5000/v3';
const USER = ['username = blazar', 'password = s3cret'];
const PROJECT = 'project_name = service';

/** The lines of a table below, where some have a name. */
function written(lines: string): string[] {
  const named: Record<string, readonly string[]> = { URL: [URL], USER, PROJECT: [PROJECT] };
  return lines.split(', ').flatMap((line) => named[line] ?? line);
}

/** Of a `[keystone]` with these lines, the first of them in line 2. */
async function problems(...lines: readonly string[]): Promise<string[]> {
  const file = configFile(['[keystone]', ...lines].join('\n'));
  const read = await readConfiguration({ configFiles: [file], environment: {} }, SECTIONS);
  const found = shown(read.problems).filter((text) => text.includes('[keystone]'));
  expect(found.join('\n')).not.toContain('s3cret');
  return found;
}

describe('[keystone]', () => {
  it.each([
    '',
    'timeout = 5',
    'URL, USER, PROJECT',
    'URL, USER, user_domain_id = default, project_id = d782d0b8',
    'URL, application_credential_id = a1, application_credential_secret = s3cret',
  ])('may have %j', async (lines) => {
    expect(await problems(...written(lines))).toEqual([]);
  });

  it.each(
    rows`
      no user → URL → 2 → auth_url: expected username and password, or application_credential_id and its secret, as well, got none
      a user without a password → URL, username = blazar, PROJECT → 3 → username: expected password or password_file as well, got none
      a password without a user → URL, password = s3cret, PROJECT → 3 → password: expected username as well, got none
      no project → URL, USER → 3 → username: expected project_name or project_id as well, got none
      a user without an address → USER → 2 → username: has no effect without auth_url or cloud: set one of them
      a region without an address → region_name = a → 2 → region_name: has no effect without auth_url or cloud: set one of them
      the id of an application credential alone → URL, application_credential_id = a1 → 3 → application_credential_id: expected application_credential_secret or application_credential_secret_file as well, got none
      the secret of an application credential alone → URL, application_credential_secret = s3cret → 3 → application_credential_secret: expected application_credential_id as well, got none
      an application credential and a user → URL, USER, application_credential_id = a1, application_credential_secret = s3cret → 3 → username: does not belong to an application credential, which has its own user and project
      two passwords → URL, USER, PROJECT, password_file = /dev/null → 6 → password_file: expected password or password_file, got both
      two projects → URL, USER, PROJECT, project_id = p → 6 → project_id: expected project_name or project_id, got both
      an address of version 2 → auth_url = http://h:5000/v2.0, USER, PROJECT → 2 → auth_url: expected the address of version 3, got /v2.0: version 2 of Keystone is not supported
      the address of tokens → auth_url = http://h:5000/v3/auth/tokens, USER, PROJECT → 2 → auth_url: expected the address without /auth/tokens
      an address with a query → auth_url = http://h:5000/v3?a=b, USER, PROJECT → 2 → auth_url: expected an address without "?" and "#"
      an address with a password → auth_url = http://blazar:s3cret@h:5000/v3, USER, PROJECT → 2 → auth_url: expected an address without a user name and a password: these are options of their own
    `,
  )('may not have %s', async (_what, lines, line, message) => {
    expect(await problems(...written(lines))).toEqual([`blazar.conf:${line}: [keystone] ${message}`]);
  });

  it('refuses an address that is no URL', async () => {
    const [problem] = await problems('auth_url = keystone:5000', ...USER, PROJECT);
    expect(problem).toMatch(/^blazar.conf:2: \[keystone\] auth_url: expected /);
  });

  it.each([
    ['is empty', '', ': expected one line with the secret'],
    ['has two lines', 's3cret\nmore\n', ': expected one line with the secret'],
    ['is too long', 's'.repeat(20_000), ': it is longer than 16384 bytes'],
  ])('refuses a password file that %s', async (_what, content, message) => {
    const file = temporaryFile('password', content);
    expect(await problems(URL, 'username = blazar', `password_file = ${file}`, PROJECT)).toEqual([
      `blazar.conf:4: [keystone] password_file: ${file}${message}`,
    ]);
  });

  it('takes a password file with a line break, and warns if everyone may read it', async () => {
    const file = temporaryFile('password', 's3cret\r\n');
    const lines = [URL, 'username = blazar', `password_file = ${file}`, PROJECT];
    expect(await problems(...lines)).toEqual([]);
    chmodSync(file, 0o644);
    expect(await problems(...lines)).toEqual([expect.stringContaining('everyone may read this secret')]);
    chmodSync(file, 0o666);
    expect((await problems(...lines)).join('\n')).toContain('everyone may write to it');
  });

  it('refuses files that are not there, and authorities that are none', async () => {
    expect(await problems(URL, 'username = blazar', 'password_file = /nowhere', PROJECT)).toEqual([
      expect.stringContaining('blazar.conf:4: [keystone] password_file: expected a file that can be read'),
    ]);
    const readme = projectFile('README.md');
    expect(await problems(URL, ...USER, PROJECT, `cafile = ${readme}`)).toEqual([
      `blazar.conf:6: [keystone] cafile: ${readme} holds no certificate in PEM`,
    ]);
    const cut = temporaryFile('ca.pem', '-----BEGIN CERTIFICATE-----\nMIIB\n');
    expect(await problems(URL, ...USER, PROJECT, `cafile = ${cut}`)).toEqual([
      `blazar.conf:6: [keystone] cafile: ${cut}: number 1 is not a certificate in PEM`,
    ]);
  });
});

it.each([
  ['http://h:5000', 'http://h:5000/v3'],
  ['http://h:5000/', 'http://h:5000/v3'],
  ['http://h:5000/v3//', 'http://h:5000/v3'],
  ['https://h/identity/v3/', 'https://h/identity/v3'],
])('%s is Keystone at %s', (authUrl, url) => {
  expect(identityUrl(authUrl)).toBe(url);
});
