import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LookupContext } from '../../src/openstack/cloud.ts';
import { effectiveOptions } from '../../src/openstack/effective-options.ts';
import { type KeystoneOptions, keystoneOptions } from '../../src/openstack/keystone-options.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

const AUTH =
  'auth: {auth_url: "http://h:5000", username: u, password: s3cret, project_name: s, user_domain_id: d}';

/** A folder with a clouds.yaml, in which commands are started. */
function lookup(text: string | undefined, environment: Record<string, string> = {}): LookupContext {
  const folder = temporaryFolder();
  if (text !== undefined) {
    writeFileSync(join(folder, 'clouds.yaml'), text, { mode: 0o600 });
  }
  return { environment: { HOME: temporaryFolder(), XDG_CONFIG_DIRS: folder, ...environment }, folder };
}

const site = (...lines: readonly string[]) =>
  `clouds:\n  site:\n${lines.map((line) => `    ${line}\n`).join('')}`;

const read = (own: Partial<KeystoneOptions>, where: LookupContext) =>
  effectiveOptions(keystoneOptions.parse({ cloud: 'site', ...own }), where);

/** Why a cloud cannot be used. */
async function refusal(text: string | undefined, own: Partial<KeystoneOptions> = {}): Promise<string> {
  const error = await read(own, lookup(text)).then(
    () => new Error('it can be used'),
    (thrown: Error) => thrown,
  );
  expect(error.message).not.toContain('s3cret');
  return error.message;
}

describe('[keystone] cloud', () => {
  it('adds what is not set', async () => {
    const where = lookup(site(AUTH, 'region_name: a', 'interface: internalURL'));
    const { options, source } = await read({ timeout: 3, username: 'own', project_id: 'p' }, where);
    expect(options).toMatchObject({
      auth_url: 'http://h:5000',
      username: 'own',
      password: 's3cret',
      project_id: 'p',
      user_domain_id: 'd',
      region_name: 'a',
      interface: 'internal',
      timeout: 3,
    });
    expect(options).not.toHaveProperty('project_name');
    expect(source).toBe(`the cloud "site" of ${join(where.folder, 'clouds.yaml')}`);
  });

  it('leaves out the password of a cloud for a password file', async () => {
    const { options } = await read({ password_file: '/f' }, lookup(site(AUTH)));
    expect(options).not.toHaveProperty('password');
  });

  it('is all that reads files and variables', async () => {
    const own = keystoneOptions.parse({ auth_url: 'http://own' });
    const where = lookup(site(AUTH), { OS_USERNAME: 'u', OS_CLOUD: 'site' });
    expect((await effectiveOptions(own, where)).options).toEqual(own);
  });

  it.each([
    ['without a file', undefined, 'the cloud "site" was not found: there is no clouds.yaml'],
    ['that is not there', 'clouds: {a: {}, b: {}}', /has: a, b$/],
    ['that is a text', 'clouds: {site: text}', /was not found/],
    ['without an address', site('auth: {username: u}'), /there is no auth_url/],
    ['with a profile', site('profile: vexxhost'), /: profile is not supported/],
    ['with a token', site('auth: {token: s3cret}'), /: token is not supported/],
    ['with another kind of account', site('auth_type: v3oidcpassword'), /expected auth_type to be one of/],
    ['that verifies nothing', site(AUTH, 'verify: false'), /always verified/],
    ['that is insecure', site(AUTH, 'insecure: "True"'), /always verified/],
    ['with another interface', site(AUTH, 'interface: inner'), /expected interface to be/],
    [
      'with a number of several readings',
      site('auth: {auth_url: "http://h", password: 1.5}'),
      /password to be a text; write/,
    ],
    ['with a mapping for a text', site('auth: {auth_url: {a: s3cret}}'), /auth_url to be a text/],
  ])('refuses a cloud %s', async (_what, text, message) => {
    expect(await refusal(text)).toMatch(message);
  });

  it('refuses a region that the cloud does not have', async () => {
    const where = site(AUTH, 'regions: [a, b]');
    expect(await refusal(where, { region_name: 'c' })).toMatch(/it has no region c; it has a, b$/);
  });

  it.each([
    ['is no YAML', 'clouds: {s3cret: ['],
    ['is a list', '- s3cret'],
    [
      'is full of aliases',
      `a: &a [s3cret]\n${[...'bcdefghijklmnop'].map((name, index) => `${name}: &${name} [${Array(10).fill(`*${'abcdefghijklmno'[index]}`).join()}]\n`).join('')}`,
    ],
    ['is as deep as a well', '['.repeat(100_000)],
    ['is long', 'a'.repeat(2_000_000)],
    ['has many keys', Array.from({ length: 50_000 }, (_, index) => `k${index}: 1\n`).join('')],
  ])('refuses a file that %s', async (_what, text) => {
    expect(await refusal(text)).toMatch(/clouds\.yaml(: expected| could not be read: )/);
  });

  it('refuses a file that others may write', async () => {
    const where = lookup(site(AUTH));
    chmodSync(join(where.folder, 'clouds.yaml'), 0o666);
    await expect(read({}, where)).rejects.toThrow('everyone may write to it');
  });

  it.skipIf(process.getuid?.() !== 0)('refuses a file of another user in the working folder', async () => {
    const where = lookup(site(AUTH));
    chownSync(join(where.folder, 'clouds.yaml'), 12_345, 12_345);
    await expect(read({}, where)).rejects.toThrow('it belongs to another user');
  });

  it('warns of secrets that everyone may read', async () => {
    const where = lookup(site(AUTH));
    chmodSync(join(where.folder, 'clouds.yaml'), 0o644);
    expect((await read({}, where)).warnings).toEqual([expect.stringContaining('everyone may read')]);
  });

  it('refuses a file that is named and not there', async () => {
    const where = lookup(site(AUTH), { OS_CLIENT_CONFIG_FILE: '/nowhere.yaml' });
    await expect(read({}, where)).rejects.toThrow(
      '/nowhere.yaml, which OS_CLIENT_CONFIG_FILE names, cannot be read',
    );
  });

  it('envvars is the variables, without options of our own sections', async () => {
    const where = lookup(undefined, {
      OS_AUTH_URL: 'http://e',
      OS_USERNAME: 'u',
      OS_PASSWORD: '',
      OS_KEYSTONE__USERNAME: 'x',
    });
    const { options } = await read({ cloud: 'envvars' }, where);
    expect(options).toMatchObject({ auth_url: 'http://e', username: 'u' });
    expect(options.password).toBeUndefined();
  });
});
