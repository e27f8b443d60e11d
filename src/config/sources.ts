/** The sources of the configuration and their order. To add a source or a file format, add a function that makes a layer. */
import { existsSync } from 'node:fs';
import type { Problem } from '../base/errors.ts';
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
 * The sources, lowest first: the server's files and folders in their order, the environment, `config`, `values`. Nothing is read
 * from the home or the working directory of the process.
 */
export interface ConfigSources {
  /**
   * Paths of the server's configuration files; later ones override earlier ones. Default: the file that `BLAZAR_ENFORCEMENT_CONFIG`
   * names, else `/etc/blazar/blazar.conf`. An empty list = no file. `.yaml`, `.yml` and `.json` are YAML, all others INI.
   */
  readonly configFiles?: readonly string[] | undefined;
  /** Folders whose `*.conf` and `*.yaml` files are read after the files, sorted by name. */
  readonly configDirs?: readonly string[] | undefined;
  /**
   * Variables such as `OS_ENFORCEMENT__MAX_LEASE_DURATION`, and `BLAZAR_ENFORCEMENT_CONFIG`, the path of a file. Default:
   * `process.env`.
   */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Values of `--config`: `enforcement.max_lease_duration=60`, later ones override earlier ones; or one file. Options with a flag of their own. */
  readonly config?: readonly (string | FlagSetting)[] | undefined;
  /** Values from code: section → option → a value of the option's type, or a text as in a file, in which `$` is literal. They override all others. */
  readonly values?: Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined;
}

/** What the sources contain. */
export interface ReadSources {
  /** Lowest first. */
  readonly layers: readonly Layer[];
  /** The files that were read, lowest first, with their layers. */
  readonly files: readonly { readonly file: string; readonly layer: Layer }[];
  /** The layers of the user and of the project, which may not set every option. */
  readonly clientLayers: ReadonlySet<Layer>;
  /** The files of those layers. */
  readonly clientFiles: readonly string[];
  readonly problems: readonly Problem[];
}

/**
 * Reads all sources. Throws nothing: a source that cannot be read is a problem. With a `projectFolder` it also reads the files of the
 * user and of the project, between those of the server and the environment. A service never does.
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
  // Without the file, and without another source of enabled_filters, every lease would be allowed.
  const mayBeMissing =
    (sources.configDirs ?? []).length > 0 ||
    settings.some((layer) => layer.get('enforcement')?.has('enabled_filters'));
  return mayBeMissing && !existsSync(DEFAULT_CONFIG_FILE) ? [] : [DEFAULT_CONFIG_FILE];
}

/** A file that `--config` names overrides all other files. */
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
