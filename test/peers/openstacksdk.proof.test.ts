/** `clouds.yaml` and `OS_*` variables, read by openstacksdk and by us. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { effectiveOptions } from '../../src/openstack/effective-options.ts';
import { type KeystoneOptions, keystoneOptions } from '../../src/openstack/keystone-options.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { skipAloud } from '../support/peers.ts';

const PYTHON = '/usr/bin/python3';

/** Prints what a cloud comes to. With `--choose`, the one that the variables choose. */
const SCRIPT = `
import json, sys
from openstack.config import OpenStackConfig
name = None if sys.argv[1] == '--choose' else sys.argv[1]
region = OpenStackConfig().get_one(name, **({'region_name': sys.argv[2]} if len(sys.argv) > 2 else {}))
config = region.config
print(json.dumps({**config['auth'], **{k: config.get(k) for k in ('region_name', 'interface', 'cacert', 'auth_type')}}))
`;

const has = spawnSync(PYTHON, ['-c', 'import openstack.config']).status === 0;
if (!has) {
  skipAloud('openstacksdk', `${PYTHON} has no such module`);
}

const NAMES = [
  'auth_url',
  'username',
  'password',
  'user_domain_name',
  'user_domain_id',
  'project_name',
  'project_id',
  'project_domain_name',
  'project_domain_id',
  'application_credential_id',
  'application_credential_secret',
  'region_name',
  'interface',
] as const satisfies readonly (keyof KeystoneOptions)[];

type Read = Partial<Record<(typeof NAMES)[number], string>>;

class Place {
  readonly folder = temporaryFolder();
  readonly home = temporaryFolder();

  write(path: string, text: string): this {
    const folder = path.startsWith('~/') ? join(this.home, '.config', 'openstack') : this.folder;
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, path.replace('~/', '')), text, { mode: 0o600 });
    return this;
  }

  async read(variables: Record<string, string>, cloud: string, region?: string): Promise<[Read, Read]> {
    const environment = {
      HOME: this.home,
      PATH: process.env.PATH ?? '',
      PYTHONNOUSERSITE: '1',
      ...variables,
    };
    const args = ['-W', 'ignore', '-c', SCRIPT, cloud === 'envvars' ? '--choose' : cloud];
    const { stdout, stderr } = spawnSync(PYTHON, region === undefined ? args : [...args, region], {
      cwd: this.folder,
      env: environment,
      encoding: 'utf8',
    });
    if (stdout === '') {
      throw new Error(stderr);
    }
    const theirs = JSON.parse(stdout) as Record<string, unknown>;
    const own = keystoneOptions.parse({ cloud, region_name: region });
    const { options } = await effectiveOptions(own, { environment, folder: this.folder });
    const pick = (from: Readonly<Record<string, unknown>>): Read =>
      Object.fromEntries(NAMES.flatMap((name) => (from[name] ? [[name, from[name]]] : [])));
    return [pick({ interface: 'public', ...options }), pick(theirs)];
  }
}

const SITE = `clouds:
  site:
    auth:
      auth_url: https://keystone.example.org:5000/v3
      username: blazar
      password: s3cret
      project_name: service
      user_domain_name: Default
      project_domain_name: Default
    region_name: RegionOne
    interface: internal
  other: {auth: {auth_url: 'http://other', username: a, password: 12345, project_id: 7, user_domain_id: default}}
`;
const cloud = (...lines: readonly string[]) =>
  `clouds:\n  site:\n${lines.map((line) => `    ${line}\n`).join('')}`;
const AUTH = 'auth: {auth_url: "http://h:5000", username: u, password: p, project_name: s';

describe.skipIf(!has)('openstacksdk and we read the same', () => {
  it.each<[string, Record<string, string>, Record<string, string>, string?, string?]>([
    ['a whole cloud', { 'clouds.yaml': SITE }, {}],
    ['numbers for texts', { 'clouds.yaml': SITE }, {}, 'other'],
    ['the file of the home', { '~/clouds.yaml': SITE }, {}],
    ['the working folder before the home', { 'clouds.yaml': SITE, '~/clouds.yaml': cloud(`${AUTH}}`) }, {}],
    [
      'yml and json',
      {
        'clouds.json':
          '{"clouds":{"site":{"auth":{"auth_url":"http://j","username":"j","password":"p","project_name":"s"}}}}',
      },
      {},
    ],
    ['yaml before json', { 'clouds.yml': SITE, 'clouds.json': '{"clouds":{}}' }, {}],
    [
      'secrets apart',
      { 'clouds.yaml': SITE, '~/secure.yaml': 'clouds: {site: {auth: {password: other}}}' },
      {},
    ],
    [
      'names at the top',
      {
        'clouds.yaml': cloud('username: u', 'password: p', 'project-name: s', 'auth: {auth_url: "http://h"}'),
      },
      {},
    ],
    [
      'auth before the top',
      { 'clouds.yaml': cloud(`${AUTH}}`, 'username: other', 'project_name: other') },
      {},
    ],
    [
      'tenants',
      { 'clouds.yaml': cloud('auth: {auth_url: "http://h", username: u, password: p, tenant_name: t}') },
      {},
    ],
    ['projects before tenants', { 'clouds.yaml': cloud(`${AUTH}, tenant_name: t}`) }, {}],
    ['one domain for both', { 'clouds.yaml': cloud(`${AUTH}, domain_name: d}`) }, {}],
    ['one domain by id', { 'clouds.yaml': cloud(`${AUTH}, domain_id: d}`) }, {}],
    [
      'a domain for the user, and one for both',
      { 'clouds.yaml': cloud(`${AUTH}, domain_id: d, user_domain_id: e}`) },
      {},
    ],
    [
      'the older name of the interface',
      { 'clouds.yaml': cloud(`${AUTH}}`, 'endpoint_type: internal', 'interface: admin') },
      {},
    ],
    ['the first of several regions', { 'clouds.yaml': cloud(`${AUTH}}`, 'regions: [a, b]') }, {}],
    [
      'a region of several',
      { 'clouds.yaml': cloud(`${AUTH}}`, 'regions: [a, {name: b, values: {auth: {auth_url: "http://b"}}}]') },
      {},
      'site',
      'b',
    ],
    ['regions with commas', { 'clouds.yaml': cloud(`${AUTH}}`, 'region_name: a,b') }, {}],
    [
      'an application credential',
      {
        'clouds.yaml': cloud(
          'auth_type: v3applicationcredential',
          'auth: {auth_url: "http://h", application_credential_id: i, application_credential_secret: s}',
        ),
      },
      {},
    ],
    [
      'a cloud whatever the variables are',
      { 'clouds.yaml': SITE },
      { OS_USERNAME: 'x', OS_AUTH_URL: 'http://x', OS_CLOUD: 'other' },
    ],
    [
      'variables',
      {},
      {
        OS_AUTH_URL: 'http://e',
        OS_USERNAME: 'u',
        OS_PASSWORD: 'p',
        OS_PROJECT_NAME: 's',
        OS_USER_DOMAIN_NAME: 'Default',
        OS_PROJECT_DOMAIN_ID: 'default',
        OS_REGION_NAME: 'r',
        OS_INTERFACE: 'internal',
        OS_IDENTITY_API_VERSION: '3',
      },
      'envvars',
    ],
    [
      'variables of an application credential',
      {},
      {
        OS_AUTH_TYPE: 'v3applicationcredential',
        OS_AUTH_URL: 'http://e',
        OS_APPLICATION_CREDENTIAL_ID: 'i',
        OS_APPLICATION_CREDENTIAL_SECRET: 's',
      },
      'envvars',
    ],
    ['the cloud that a variable names', { '~/clouds.yaml': SITE }, { OS_CLOUD: 'site' }, 'envvars'],
  ])('%s', async (_what, files, variables, name = 'site', region = undefined) => {
    const place = new Place();
    for (const [path, text] of Object.entries(files)) {
      place.write(path, text);
    }
    const [ours, theirs] = await place.read(variables, name, region);
    expect(ours).toEqual(theirs);
  });

  it('from the file that a variable names', async () => {
    const place = new Place().write('elsewhere.yaml', SITE).write('clouds.yaml', cloud(`${AUTH}}`));
    const [ours, theirs] = await place.read(
      { OS_CLIENT_CONFIG_FILE: join(place.folder, 'elsewhere.yaml') },
      'site',
    );
    expect(ours).toEqual(theirs);
    expect(ours.username).toBe('blazar');
  });
});
