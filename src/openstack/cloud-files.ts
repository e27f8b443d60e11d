/**
 * `clouds.yaml` and `secure.yaml`, where openstacksdk looks for them (`openstack/config/loader.py`): the file that `OS_CLIENT_CONFIG_FILE`
 * (`OS_CLIENT_SECURE_FILE`) names, then the working folder, `~/.config/openstack`, `/etc/xdg/openstack`, `/etc/openstack`. The first
 * file that is there and can be read counts; `secure.yaml` is merged over it. Unlike there, a file that a variable names must be there,
 * and one in the working folder must not belong to another user.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorText } from '../base/errors.ts';
import { isReadByEveryone, whyWritable } from '../config/file-modes.ts';
import { readTextFile } from '../config/read-file.ts';
import { isMapping, type Mapping, member, setMember } from '../yaml/tree.ts';
import { KeystoneError } from './keystone-error.ts';

/** What `cloud` is looked up in. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The working folder. */
  readonly folder: string;
}

export interface CloudFiles {
  /** By name. */
  readonly clouds: Mapping;
  /** The files that were read. */
  readonly files: readonly string[];
  readonly warnings: readonly string[];
}

const SUFFIXES = ['yaml', 'yml', 'json'];
/** Such a file has some dozens of lines. More tokens than these cost time. */
const MAX_TOKENS = 20_000;

/** @throws KeystoneError for a file that cannot be trusted or is not YAML. The message contains nothing of its content. */
export async function readCloudFiles(surroundings: Surroundings): Promise<CloudFiles> {
  const files = (['clouds', 'secure'] as const).flatMap((name) => firstFile(name, surroundings) ?? []);
  const trees = await Promise.all(files.map((file) => read(file, surroundings.folder)));
  const clouds = trees.map((tree) => member(tree, 'clouds')).filter(isMapping);
  return {
    clouds: clouds.reduce(merged, {}),
    files,
    warnings: files
      .filter(isReadByEveryone)
      .map((file) => `everyone may read the secrets in ${file}; remove that permission: chmod o-r`),
  };
}

function firstFile(name: 'clouds' | 'secure', { environment, folder }: Surroundings): string | undefined {
  const named = environment[name === 'clouds' ? 'OS_CLIENT_CONFIG_FILE' : 'OS_CLIENT_SECURE_FILE'];
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
    const what = `${named}, which ${name === 'clouds' ? 'OS_CLIENT_CONFIG_FILE' : 'OS_CLIENT_SECURE_FILE'} names,`;
    throw new KeystoneError('configuration', `${what} cannot be read`);
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
  const { YamlDocument } = await import('../yaml/document.ts');
  try {
    const value = YamlDocument.parse(readTextFile(file), MAX_TOKENS).value ?? {};
    if (isMapping(value)) {
      return value;
    }
  } catch (thrown) {
    // The first line only: the others may show the text around a mistake.
    const [why = ''] = errorText(thrown).split('\n');
    throw new KeystoneError('configuration', `${file} could not be read: ${why}`);
  }
  throw new KeystoneError('configuration', `${file}: expected a mapping with "clouds"`);
}

/** Somebody else's file in the folder where a command is started would choose the Keystone that is believed. */
function whyForeign(file: string, folder: string): string | undefined {
  const own = process.getuid?.();
  return own === undefined || dirname(file) !== folder || [0, own].includes(statSync(file).uid)
    ? undefined
    : 'it belongs to another user';
}

/** As openstacksdk merges `secure.yaml` over `clouds.yaml`: mappings by their keys, everything else whole. */
export function merged(lower: Mapping, higher: Mapping): Mapping {
  const result: Record<string, unknown> = { ...lower };
  for (const [name, value] of Object.entries(higher)) {
    const below = member(lower, name);
    setMember(result, name, isMapping(value) && isMapping(below) ? merged(below, value) : value);
  }
  return result;
}
