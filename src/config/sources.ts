/**
 * The sources of the configuration, and their order. A new source or file format needs a function that makes
 * a layer.
 */
import { existsSync, lstatSync, readdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { formatOrigin, type Problem } from '../base/errors.ts';
import {
  codeLayer,
  type Entry,
  environmentLayer,
  type FileLayer,
  type FlagSetting,
  fileLayer,
  flagsLayer,
  type Layer,
  pairsLayer,
  shownName,
} from './layer.ts';
import { nearestName } from './nearest.ts';
import { systemErrorText, whyWritable } from './read-file.ts';
import type { Setting } from './resolve.ts';

/**
 * The sources, lowest first: the server's files and folders in their order, the environment, `config`,
 * `values`. Nothing is read from the home or working directory of the process.
 */
export interface ConfigSources {
  /**
   * Paths of the server's configuration files; later ones override earlier ones. Default: the file in
   * `BLAZAR_ENFORCEMENT_CONFIG`, else `/etc/blazar/blazar.conf`. An empty list = no file. `.yaml`, `.yml` and
   * `.json` are YAML, all others INI.
   */
  readonly configFiles?: readonly string[] | undefined;
  /** Folders whose `*.conf` and `*.yaml` files are read after the files, sorted by name. */
  readonly configDirs?: readonly string[] | undefined;
  /**
   * Variables such as `OS_ENFORCEMENT__MAX_LEASE_DURATION`, and `BLAZAR_ENFORCEMENT_CONFIG`, the path of a file. Default:
   * `process.env`.
   */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /**
   * Values of `--config`: pairs `enforcement.max_lease_duration=60`, later ones override earlier ones, or one
   * file; and options with their own flag.
   */
  readonly config?: readonly (string | FlagSetting)[] | undefined;
  /**
   * Values from code: section → option → a value of the option's type, or a text as in a file, with a literal
   * `$`. They override all others.
   */
  readonly values?: Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined;
}

const SOURCE_NAMES: readonly string[] = [
  'configFiles',
  'configDirs',
  'environment',
  'config',
  'values',
] satisfies (keyof ConfigSources)[];

export interface ReadSources {
  /** Lowest first. */
  readonly layers: readonly Layer[];
  /** The files that were read, lowest first, with their layers. */
  readonly files: readonly FileLayer[];
  /** The layers of the user and of the project, which may not set all options. */
  readonly clientLayers: ReadonlySet<Layer>;
  /** The files of `clientLayers`. */
  readonly clientFiles: readonly string[];
  readonly problems: readonly Problem[];
}

/**
 * Reads all sources. Throws nothing: a source that cannot be read is a problem. With a `projectFolder` (never
 * in a service) it also reads the files of the user and of the project, between the server's and the
 * environment.
 */
export async function readSources(sources: ConfigSources, projectFolder?: string): Promise<ReadSources> {
  const environment = sources.environment ?? process.env;
  const problems = [...unknownSources(sources), ...misspelledVariables(environment)];
  const commandLine = await commandLineLayers(sources.config ?? [], environment, problems);
  const settings = [environmentLayer(environment), ...commandLine.layers, codeLayer(sources.values ?? {})];

  const server = [
    ...(sources.configFiles ?? defaultFiles(sources, environment, settings, problems)),
    ...(sources.configDirs ?? []).flatMap((folder) => configFilesIn(folder, problems)),
  ];
  const client =
    projectFolder === undefined
      ? []
      : [...userFiles(environment, problems), ...projectFiles(projectFolder, environment, problems)];

  for (const path of [
    ...(sources.configDirs ?? []),
    ...server,
    ...client,
    ...commandLine.files.map(({ file }) => file),
  ]) {
    const reason = whyWritable(path);
    if (reason !== undefined) {
      problems.push({ severity: 'error', message: `${path}: ${reason}` });
    }
  }
  const files: FileLayer[] = [];
  for (const file of [...server, ...client]) {
    const isDefault = file === DEFAULT_CONFIG_FILE;
    const hint = isDefault ? `; name another with --config-file or ${SERVER_VARIABLE}` : '';
    files.push(await fileLayer(file, problems, hint));
  }
  return {
    layers: [...files.map(({ layer }) => layer), ...settings],
    files: [...files, ...commandLine.files],
    clientLayers: new Set(files.slice(server.length).map(({ layer }) => layer)),
    clientFiles: client,
    problems,
  };
}

const MEANT_FOR_US = /^OS_(ENFORCEMENT|LEDGER|SERVICE)_+([A-Z0-9]\w{0,79})$/i;
/** Older clients of Keystone read these. */
const OF_KEYSTONE = ['OS_SERVICE_TOKEN', 'OS_SERVICE_ENDPOINT'];

/** A limit in `OS_ENFORCEMENT_MAX_LEASE_DURATION` would not apply. Other programs may read such variables: warnings. */
function misspelledVariables(environment: Readonly<Record<string, string | undefined>>): Problem[] {
  return Object.keys(environment).flatMap((variable) => {
    const [, section = '', option = ''] = MEANT_FOR_US.exec(variable) ?? [];
    const right = `OS_${section}__${option}`.toUpperCase();
    const message = `${variable} is ignored: if it is an option, its name is ${right}, with two underscores`;
    return section === '' || variable === right || OF_KEYSTONE.includes(variable)
      ? []
      : [{ severity: 'warning' as const, message }];
  });
}

/** From JavaScript: with `configFile`, the default file would be read instead of the one that is meant. */
function unknownSources(sources: ConfigSources): Problem[] {
  return Object.keys(sources)
    .filter((name) => !SOURCE_NAMES.includes(name))
    .map((name) => ({
      severity: 'error',
      message: `${name}: unknown source of the configuration${nearestName(name, SOURCE_NAMES)}`,
    }));
}

function defaultFiles(
  sources: ConfigSources,
  environment: Readonly<Record<string, string | undefined>>,
  settings: readonly Layer[],
  problems: Problem[],
): string[] {
  const named = namedBy(SERVER_VARIABLE, environment, problems);
  if (named !== undefined) {
    return named;
  }
  // Without the file, and without another source of enabled_filters, every lease would be allowed.
  const mayBeMissing =
    (sources.configDirs ?? []).length > 0 ||
    settings.some((layer) => layer.get('enforcement')?.has('enabled_filters'));
  return mayBeMissing && !existsSync(DEFAULT_CONFIG_FILE) ? [] : [DEFAULT_CONFIG_FILE];
}

/** A file in `--config` overrides all other files. */
async function commandLineLayers(
  config: readonly (string | FlagSetting)[],
  environment: Readonly<Record<string, string | undefined>>,
  problems: Problem[],
): Promise<{ layers: Layer[]; files: ReadSources['files'] }> {
  const texts = config.filter((one) => typeof one === 'string');
  const flags = flagsLayer(config.filter((one) => typeof one !== 'string'));
  if (texts.length === 0) {
    return { layers: [flags], files: [] };
  }
  const { readDotlist } = await import('./dotlist.ts');
  const dotlist = readDotlist(texts, homeOf(environment));
  if ('file' in dotlist) {
    const file = await fileLayer(dotlist.file, problems);
    return { layers: [file.layer, flags], files: [file] };
  }
  problems.push(...dotlist.problems.map((message) => ({ severity: 'error', message }) as const));
  return { layers: [pairsLayer(dotlist.pairs, problems), flags], files: [] };
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Used when neither a flag nor `BLAZAR_ENFORCEMENT_CONFIG` names a file. */
export const DEFAULT_CONFIG_FILE = '/etc/blazar/blazar.conf';

export const SERVER_VARIABLE = 'BLAZAR_ENFORCEMENT_CONFIG';
const USER_VARIABLE = 'BLAZAR_ENFORCEMENT_USER_CONFIG';
const PROJECT_VARIABLE = 'BLAZAR_ENFORCEMENT_PROJECT_CONFIG';
const PROJECT_FILES = ['.blazar-enforcement.conf', '.blazar-enforcement.yaml'];

/** The file named by a variable; unlike a default file, it must exist. `undefined` = the variable is not set. */
function namedBy(variable: string, environment: Environment, problems: Problem[]): string[] | undefined {
  const file = environment[variable];
  if (file === undefined || file === '') {
    return undefined;
  }
  if (existsSync(file)) {
    return [file];
  }
  const message = `${variable}: there is no such file: ${file}; name another, or unset ${variable}`;
  problems.push({ severity: 'error', message });
  return [];
}

/** The files of the user in `~/.config/blazar-enforcement/`, sorted by name; none if the home folder is unknown. */
function userFiles(environment: Environment, problems: Problem[]): string[] {
  const named = namedBy(USER_VARIABLE, environment, problems);
  if (named !== undefined) {
    return named;
  }
  const { XDG_CONFIG_HOME: base, HOME: home } = environment;
  const folder = base ? base : home ? join(home, '.config') : undefined;
  const own = folder === undefined ? undefined : join(folder, 'blazar-enforcement');
  return own !== undefined && existsSync(own) ? configFilesIn(own, problems).filter(isTrusted(problems)) : [];
}

/** The file of the project: `.blazar-enforcement.conf` or `.yaml` in the working directory. */
function projectFiles(folder: string, environment: Environment, problems: Problem[]): string[] {
  const named = namedBy(PROJECT_VARIABLE, environment, problems);
  if (named !== undefined) {
    return named;
  }
  const found = PROJECT_FILES.map((name) => join(resolve(folder), name)).filter((file) => existsSync(file));
  if (found.length > 1) {
    problems.push({ severity: 'error', message: `${found.join(' and ')}: expected one of them` });
    return [];
  }
  return found.filter(isTrusted(problems));
}

/** Whether a file in a folder is a configuration file, by name. */
export function isConfigFile(name: string): boolean {
  return /\.(conf|ya?ml)$/.test(name) && !name.startsWith('.');
}

function configFilesIn(folder: string, problems: Problem[]): string[] {
  try {
    return readdirSync(folder)
      .filter(isConfigFile)
      .sort()
      .map((name) => join(folder, name));
  } catch (thrown) {
    problems.push({
      severity: 'error',
      message: `${folder}: the folder could not be read: ${systemErrorText(thrown)}`,
    });
    return [];
  }
}

/**
 * These files were found, not named: anyone who can create one there could change the limits. The owner must
 * be the process's user or root, and no one else may write to them.
 */
function isTrusted(problems: Problem[]): (file: string) => boolean {
  return (file) => {
    const reason = whyNotTrusted(file);
    if (reason !== undefined) {
      problems.push({
        severity: 'error',
        message: `${file}: not read, because ${reason}; to read it anyway, pass it with --config-file`,
      });
    }
    return reason === undefined;
  };
}

function whyNotTrusted(file: string): string | undefined {
  try {
    // The owner of a link decides which file is read.
    const link = lstatSync(file);
    const target = statSync(file);
    const mine = process.getuid?.() ?? target.uid;
    if ([link, target].some(({ uid }) => uid !== 0 && uid !== mine)) {
      return 'it belongs to another user';
    }
    return target.mode & 0o002 ? 'everyone may write to it' : undefined;
  } catch (thrown) {
    return `it could not be examined: ${systemErrorText(thrown)}`;
  }
}

/** The home folder for `~` in paths of flags. */
function homeOf({ HOME }: Environment): string {
  return HOME === undefined || HOME === '' ? homedir() : HOME;
}

/** Layers without options that their source may not set. */
interface PermittedLayers {
  readonly layers: readonly Layer[];
  /** One warning with all removed options; empty = none. */
  readonly problems: readonly Problem[];
}

/**
 * Removes the options for which `isServers` is true from the layers of users and projects. It must be true
 * for every option of other sections too, because a server option may refer to it with `$name`.
 */
export function permittedLayers(
  { layers, clientLayers }: Pick<ReadSources, 'layers' | 'clientLayers'>,
  isServers: (section: string, option: string) => boolean,
): PermittedLayers {
  const ignored: string[] = [];
  const permitted = layers.map((layer) => {
    if (!clientLayers.has(layer)) {
      return layer;
    }
    const kept = new Map<string, Map<string, Entry>>();
    for (const [section, entries] of layer) {
      for (const [option, entry] of entries) {
        if (isServers(section, option)) {
          ignored.push(`[${shownName(section)}] ${shownName(option)} (${formatOrigin(entry.origin)})`);
        } else {
          const options = kept.get(section) ?? new Map<string, Entry>();
          kept.set(section, options.set(option, entry));
        }
      }
    }
    return kept;
  });
  const [what, verb] = ignored.length === 1 ? ['option', 'is'] : ['options', 'are'];
  const message = `${ignored.length} ${what} that only the server's files may set ${verb} ignored: ${ignored.join(', ')}`;
  return {
    layers: permitted,
    problems: ignored.length === 0 ? [] : [{ severity: 'warning', message }],
  };
}

/** One warning with the options from such files: a service does not read them. */
export function notServed(
  { clientFiles }: Pick<ReadSources, 'clientFiles'>,
  settings: readonly Setting[],
): Problem[] {
  const set = settings.flatMap(({ option, origin, members = [] }) =>
    [{ name: option.name, origin }, ...members]
      .filter((place) => place.origin.kind === 'file' && clientFiles.includes(place.origin.file))
      .slice(0, 1)
      .map((place) => `[${option.section}] ${option.name} (${formatOrigin(place.origin)})`),
  );
  const what = set.length === 1 ? '1 option comes' : `${set.length} options come`;
  const message = `${what} from a file that serve does not read: ${set.join(', ')}`;
  return set.length === 0 ? [] : [{ severity: 'warning', message }];
}
