/** Which sources there are, and in which order. A further source or file format is a further function that makes a layer. */
import { existsSync } from 'node:fs';
import type { Problem } from '../errors.ts';
import { whyWritable } from './file-modes.ts';
import {
  codeLayer,
  environmentLayer,
  type FlagSetting,
  fileLayer,
  flagsLayer,
  type Layer,
  pairsLayer,
} from './layer.ts';
import {
  configFilesIn,
  DEFAULT_CONFIG_FILE,
  homeOf,
  namedBy,
  projectFiles,
  SERVER_VARIABLE,
  userFiles,
} from './places.ts';

/**
 * What a caller names. Lowest first: the server's files in order and its folders in order, the environment, `config`,
 * `values`. Nothing is read from the home or the working directory of whoever starts the process.
 */
export interface ConfigSources {
  /**
   * Paths of the server's configuration files; a later one wins. Default: the one that `BLAZAR_ENFORCEMENT_CONFIG` names, else
   * `/etc/blazar/blazar.conf`. An empty list = no file. `.yaml` and `.json` are YAML, any other name is the INI form.
   */
  readonly configFiles?: readonly string[] | undefined;
  /** Folders whose `*.conf` and `*.yaml` files are read in the order of their names, after the files. */
  readonly configDirs?: readonly string[] | undefined;
  /**
   * Variables such as `OS_ENFORCEMENT__MAX_LEASE_DURATION`, and `BLAZAR_ENFORCEMENT_CONFIG`, which names a file. Default:
   * `process.env`.
   */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** What stands behind `--config`: `enforcement.max_lease_duration=60`, a later one wins; or one file. Options with a flag of their own. */
  readonly config?: readonly (string | FlagSetting)[] | undefined;
  /** Values from code: section, option, value of the option's type, or text that is read as in a file but for `$`. They win over everything else. */
  readonly values?: Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined;
}

/** What has been read of the sources. */
export interface ReadSources {
  /** Lowest first. */
  readonly layers: readonly Layer[];
  /** The files that were read, lowest first, with what was in them. */
  readonly files: readonly { readonly file: string; readonly layer: Layer }[];
  /** The layers of the user and of the project, who may not set everything. */
  readonly clientLayers: ReadonlySet<Layer>;
  /** Where those layers are from. */
  readonly clientFiles: readonly string[];
  readonly problems: readonly Problem[];
}

/**
 * Reads everything, and throws nothing: what could not be read is a problem. The user's and the project's files come between the
 * server's and the environment, and only where a command names a `projectFolder`: no service is configured by them.
 */
export async function readSources(sources: ConfigSources, projectFolder?: string): Promise<ReadSources> {
  const problems: Problem[] = [];
  const environment = sources.environment ?? process.env;
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
  const files: { file: string; layer: Layer }[] = [];
  for (const file of [...server, ...client]) {
    const isDefault = file === DEFAULT_CONFIG_FILE;
    const hint = isDefault ? `; name another with --config-file or ${SERVER_VARIABLE}` : '';
    files.push({ file, layer: await fileLayer(file, problems, hint) });
  }
  return {
    layers: [...files.map(({ layer }) => layer), ...settings],
    files: [...files, ...commandLine.files],
    clientLayers: new Set(files.slice(server.length).map(({ layer }) => layer)),
    clientFiles: client,
    problems,
  };
}

function defaultFiles(
  sources: ConfigSources,
  environment: Readonly<Record<string, string | undefined>>,
  settings: readonly Layer[],
  problems: Problem[],
): string[] {
  const named = namedBy(SERVER_VARIABLE, environment, problems);
  if (named !== undefined) {
    return existsSync(named) ? [named] : [];
  }
  // Unless something else says what to enforce, going on without the file would allow every lease.
  const mayBeMissing =
    (sources.configDirs ?? []).length > 0 ||
    settings.some((layer) => layer.get('enforcement')?.has('enabled_filters'));
  return mayBeMissing && !existsSync(DEFAULT_CONFIG_FILE) ? [] : [DEFAULT_CONFIG_FILE];
}

/** A file that is named behind `--config` is read last of all files: it is what was said for this once. */
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
    const layer = await fileLayer(dotlist.file, problems);
    return { layers: [layer, flags], files: [{ file: dotlist.file, layer }] };
  }
  problems.push(...dotlist.problems.map((message) => ({ severity: 'error', message }) as const));
  return { layers: [pairsLayer(dotlist.pairs, problems), flags], files: [] };
}
