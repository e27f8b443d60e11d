/** A cloud of `clouds.yaml`, or of the `OS_*` variables, as options of `[keystone]`. */

import { accessSync, constants, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { errorText } from '../base/errors.ts';
import { isMapping, type Mapping, member } from '../base/yaml/tree.ts';
import { merge } from '../config/merge.ts';
import { isReadByEveryone, readTextFile, whyWritable } from '../config/read-file.ts';
import { KeystoneError } from './contract.ts';
import type { KeystoneOptions } from './keystone-options.ts';

/** openstacksdk's name for the cloud defined by the variables. */
const ENVIRONMENT = 'envvars';

const AUTH_TYPES = ['password', 'v3password', 'v3applicationcredential'];

/** Unsupported settings of token requests: ignoring them would lead to another account, or to none. */
const UNSUPPORTED = [
  'profile',
  'cloud',
  'user_id',
  'application_credential_name',
  'token',
  'auth_token',
  'passcode',
  'trust_id',
  'system_scope',
  'cert',
  'key',
];

interface Cloud {
  readonly options: Partial<KeystoneOptions>;
  /** For messages: `the cloud "site" of /etc/openstack/clouds.yaml`. */
  readonly source: string;
  readonly warnings: readonly string[];
}

/**
 * `envvars` stands for the variables: the cloud of `clouds.yaml` in `OS_CLOUD`, else the other `OS_*`
 * variables. `region`: for a cloud with several. Default: the first. @throws KeystoneError
 */
export async function cloudNamed(
  name: string,
  region: string | undefined,
  lookup: LookupContext,
): Promise<Cloud> {
  const { environment } = lookup;
  const chosen = name === ENVIRONMENT ? environment.OS_CLOUD || name : name;
  if (chosen === ENVIRONMENT) {
    return { options: optionsOf(ofEnvironment(environment), region, 'OS_*'), source: 'OS_*', warnings: [] };
  }
  const { clouds, files, warnings } = await readCloudFiles(lookup);
  const cloud = member(clouds, chosen);
  if (!isMapping(cloud)) {
    const known = Object.keys(clouds).slice(0, 20).join(', ') || 'none';
    const where = files.length === 0 ? 'there is no clouds.yaml' : `${files.join(' and ')} has: ${known}`;
    throw wrong(`the cloud "${chosen}" was not found: ${where}`);
  }
  const source = `the cloud "${chosen}" of ${files.join(' and ')}`;
  return { options: optionsOf(cloud, region, source), source, warnings };
}

function ofEnvironment(environment: LookupContext['environment']): Mapping {
  const variables = Object.entries(environment).filter(
    // Variables with two underscores are options of our own sections.
    ([name, value]) => /^OS_(?!CLOUD$|TEST|STD|LOG)/.test(name) && !name.includes('__') && value !== '',
  );
  return Object.fromEntries(variables.map(([name, value]) => [name.slice(3).toLowerCase(), value]));
}

function optionsOf(whole: Mapping, region: string | undefined, source: string): Partial<KeystoneOptions> {
  const { cloud, region_name } = inRegion(withUnderscores(whole), region, source);
  const auth = member(cloud, 'auth');
  const all = { ...cloud, ...(isMapping(auth) ? withUnderscores(auth) : {}) };
  const get = (...names: readonly string[]) =>
    names.map((name) => textOf(member(all, name), name, source)).find((text) => text !== undefined);

  const unsupported = UNSUPPORTED.find((name) => get(name) !== undefined);
  if (unsupported !== undefined) {
    throw wrong(`${source}: ${unsupported} is not supported; use a password or an application credential id`);
  }
  const authType = get('auth_type', 'auth_plugin') ?? 'password';
  if (!AUTH_TYPES.includes(authType)) {
    throw wrong(`${source}: expected auth_type to be one of ${AUTH_TYPES.join(', ')}, got another one`);
  }
  if (all.verify === false || /^(true|1|yes)$/i.test(String(all.insecure ?? ''))) {
    throw wrong(`${source}: certificates are always verified: set cacert instead of verify or insecure`);
  }
  const cafile = get('cacert');
  const place = {
    auth_url: get('auth_url'),
    region_name,
    interface: interfaceOf(get('endpoint_type', 'interface'), source),
    cafile: cafile?.startsWith('~/') ? join(homedir(), cafile.slice(2)) : cafile,
  };
  if (authType === 'v3applicationcredential' || get('application_credential_id') !== undefined) {
    return {
      ...place,
      application_credential_id: get('application_credential_id'),
      application_credential_secret: get('application_credential_secret'),
    };
  }
  return {
    ...place,
    username: get('username', 'user_name'),
    password: get('password'),
    project_id: get('project_id', 'tenant_id'),
    project_name: get('project_name', 'tenant_name'),
    ...domain('user', get),
    ...domain('project', get),
  };
}

/** One domain may be set for both. */
function domain(whose: 'user' | 'project', get: (...names: readonly string[]) => string | undefined) {
  const own = { id: get(`${whose}_domain_id`), name: get(`${whose}_domain_name`) };
  const isOwn = own.id !== undefined || own.name !== undefined;
  const id = isOwn ? own.id : get('domain_id', 'default_domain_id');
  const name = isOwn ? own.name : get('domain_name', 'default_domain_name');
  return { [`${whose}_domain_id`]: id, [`${whose}_domain_name`]: id === undefined ? name : undefined };
}

function inRegion(cloud: Mapping, wanted: string | undefined, source: string) {
  const listed = member(cloud, 'regions') ?? member(cloud, 'region_name') ?? [];
  const list: unknown[] = Array.isArray(listed) ? listed : String(listed).split(',');
  const regions = list.map((one) => (isMapping(one) ? one : { name: one })).map(withUnderscores);
  const names = regions.map(({ name }) => textOf(name, 'region_name', source) ?? '');
  const index = wanted === undefined ? 0 : names.indexOf(wanted);
  if (regions.length > 0 && index < 0) {
    throw wrong(`${source}: it has no region ${wanted}; it has ${names.join(', ')}`);
  }
  const values = regions[index]?.values;
  return {
    cloud: isMapping(values) ? merge(cloud, withUnderscores(values)) : cloud,
    region_name: wanted ?? (names[0] || undefined),
  };
}

/** `publicURL` is the older form of `public`. */
function interfaceOf(text: string | undefined, source: string): KeystoneOptions['interface'] {
  const name = text?.replace(/URL$/, '');
  if (name === undefined || name === 'public' || name === 'internal' || name === 'admin') {
    return name;
  }
  throw wrong(`${source}: expected interface to be public, internal or admin`);
}

/** Accepts numbers as texts, as openstacksdk does. */
function textOf(value: unknown, name: string, source: string): string | undefined {
  if (value === undefined || value === null || value === '') {
    return undefined;
  }
  if (typeof value === 'string') {
    return value;
  }
  if (typeof value === 'bigint' || Number.isInteger(value)) {
    return String(value);
  }
  throw wrong(`${source}: expected ${name} to be a text; write it in quotes`);
}

function withUnderscores(mapping: Mapping): Mapping {
  return Object.fromEntries(
    Object.entries(mapping).map(([name, value]) => [name.replaceAll('-', '_'), value]),
  );
}

function wrong(message: string): KeystoneError {
  return new KeystoneError('configuration', `[keystone] cloud: ${message}`);
}

/** Where `cloud` is looked up. */
export interface LookupContext {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The working directory. */
  readonly folder: string;
}

interface CloudFiles {
  readonly clouds: Mapping;
  readonly files: readonly string[];
  readonly warnings: readonly string[];
}

const SUFFIXES = ['yaml', 'yml', 'json'];
/** Such a file has some dozens of lines. More tokens than this cost time. */
const MAX_TOKENS = 20_000;

/** @throws KeystoneError for a file that is not trusted or not YAML. The message contains nothing of its content. */
async function readCloudFiles(lookup: LookupContext): Promise<CloudFiles> {
  const files = (['clouds', 'secure'] as const).flatMap((name) => firstFile(name, lookup) ?? []);
  const trees = await Promise.all(files.map((file) => read(file, lookup.folder)));
  const clouds = trees.map((tree) => member(tree, 'clouds')).filter(isMapping);
  return {
    // As openstacksdk: mappings by key, everything else is replaced.
    clouds: clouds.reduce((lower, higher) => merge(lower, higher), {}),
    files,
    warnings: files
      .filter(isReadByEveryone)
      .map((file) => `everyone may read the secrets in ${file}; remove that permission: chmod o-r`),
  };
}

function firstFile(name: 'clouds' | 'secure', { environment, folder }: LookupContext): string | undefined {
  const variable = name === 'clouds' ? 'OS_CLIENT_CONFIG_FILE' : 'OS_CLIENT_SECURE_FILE';
  const named = environment[variable];
  const { HOME: home, XDG_CONFIG_HOME: config, XDG_CONFIG_DIRS: shared } = environment;
  const folders = [
    folder,
    ...(config ? [join(config, 'openstack')] : []),
    ...(home ? [join(home, '.config', 'openstack')] : []),
    ...(shared || '/etc/xdg').split(':').map((one) => join(one, 'openstack')),
    '/etc/openstack',
  ];
  const candidates = folders.flatMap((one) => SUFFIXES.map((suffix) => join(one, `${name}.${suffix}`)));
  if (named && !isReadable(named)) {
    throw new KeystoneError('configuration', `${named}, which ${variable} names, cannot be read`);
  }
  return named || candidates.find(isReadable);
}

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

async function read(file: string, folder: string): Promise<Mapping> {
  const reason = whyWritable(file) ?? whyForeign(file, folder);
  if (reason !== undefined) {
    throw new KeystoneError('configuration', `${file}: ${reason}`);
  }
  const { YamlDocument } = await import('../base/yaml/document.ts');
  try {
    const value = YamlDocument.parse(readTextFile(file), MAX_TOKENS).value ?? {};
    if (isMapping(value)) {
      return value;
    }
  } catch (thrown) {
    // Only the first line: the others may show the text around a mistake.
    const [why = ''] = errorText(thrown).split('\n');
    throw new KeystoneError('configuration', `${file} could not be read: ${why}`);
  }
  throw new KeystoneError('configuration', `${file}: expected a mapping with "clouds"`);
}

/** Another user's file in the working directory could choose the Keystone that is trusted. */
function whyForeign(file: string, folder: string): string | undefined {
  const own = process.getuid?.();
  return own === undefined || dirname(file) !== folder || [0, own].includes(statSync(file).uid)
    ? undefined
    : 'it belongs to another user';
}
