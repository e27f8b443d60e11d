/**
 * Where option values come from, and in which order. A layer knows names, values and origins, and nothing of what
 * the options mean: a further source or file format is a further function that makes a layer.
 */
import { existsSync, readdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { Origin, Problem } from '../errors.ts';
import { parseIni } from './ini.ts';
import { readTextFile, systemErrorText } from './read-file.ts';

/** What a caller names. Lowest first: the files in order, the folders in order, the environment, `config`, `values`. */
export interface ConfigSources {
  /**
   * Paths of configuration files; a later one wins. Default: the one that `BLAZAR_ENFORCEMENT_CONFIG` names, else
   * `/etc/blazar/blazar.conf`. An empty list = no file.
   */
  readonly configFiles?: readonly string[] | undefined;
  /** Folders whose `*.conf` files are read in the order of their names, after the files. */
  readonly configDirs?: readonly string[] | undefined;
  /** Variables such as `OS_ENFORCEMENT__MAX_LEASE_DURATION`. Default: `process.env`. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Texts such as `enforcement.max_lease_duration=60`, as behind `--config`; a later one wins. */
  readonly config?: readonly (string | FlagSetting)[] | undefined;
  /** Values from code: section, option, value of the option's type, or text that is read as in a file but for `$`. They win over everything else. */
  readonly values?: Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined;
}

/** An option that has a flag of its own, such as `--port`. */
export interface FlagSetting {
  readonly flag: string;
  readonly section: string;
  readonly option: string;
  readonly value: string;
}

/** A value as a source gave it: text that still wants a type, or a value that has one. */
export interface Entry {
  readonly value: unknown;
  readonly origin: Origin;
}

/** One source: section name in lower case → option name → entry. */
export type Layer = ReadonlyMap<string, ReadonlyMap<string, Entry>>;

/** Used when no file is named, by flag or by `BLAZAR_ENFORCEMENT_CONFIG`. */
export const DEFAULT_CONFIG_FILE = '/etc/blazar/blazar.conf';

/** All layers, lowest first; the files among them in the same order; and what could not be read of them. */
export function readSources(sources: ConfigSources): {
  layers: Layer[];
  files: string[];
  problems: Problem[];
} {
  const problems: Problem[] = [];
  const environment = sources.environment ?? process.env;
  const settings = [
    environmentLayer(environment),
    commandLineLayer(sources.config ?? [], problems),
    codeLayer(sources.values ?? {}),
  ];

  const files = sources.configFiles ?? defaultFiles(sources, environment, settings);
  const folders = sources.configDirs ?? [];
  const paths = [...files, ...folders.flatMap((folder) => listConfigFiles(folder, problems))];
  const layers = [...paths.map((path) => fileLayer(path, problems)), ...settings];
  return { layers, files: paths, problems };
}

function defaultFiles(
  sources: ConfigSources,
  environment: Readonly<Record<string, string | undefined>>,
  settings: readonly Layer[],
): string[] {
  const named = environment.BLAZAR_ENFORCEMENT_CONFIG;
  if (named !== undefined && named !== '') {
    return [named];
  }
  // Unless something else says what to enforce, going on without the file would allow every lease.
  const mayBeMissing =
    (sources.configDirs ?? []).length > 0 ||
    settings.some((layer) => layer.get('enforcement')?.has('enabled_filters'));
  return mayBeMissing && !existsSync(DEFAULT_CONFIG_FILE) ? [] : [DEFAULT_CONFIG_FILE];
}

function listConfigFiles(folder: string, problems: Problem[]): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.conf') && !name.startsWith('.'))
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

function fileLayer(file: string, problems: Problem[]): Layer {
  if (['.yaml', '.yml', '.json'].includes(extname(file))) {
    problems.push({ severity: 'error', message: `${file}: expected a file in the INI form of blazar.conf` });
    return new Map();
  }
  try {
    const document = parseIni(readTextFile(file), file);
    problems.push(...document.problems);
    const layer = new Map<string, Map<string, Entry>>();
    for (const [section, options] of document.sections) {
      const entries = new Map<string, Entry>();
      for (const [option, { value, line }] of options) {
        entries.set(option, { value, origin: { kind: 'file', file, line } });
      }
      layer.set(section, entries);
    }
    return layer;
  } catch (thrown) {
    const hint =
      file === DEFAULT_CONFIG_FILE ? '; name another with --config-file or BLAZAR_ENFORCEMENT_CONFIG' : '';
    const message = `${file}: could not be read: ${systemErrorText(thrown)}${hint}`;
    problems.push({ severity: 'error', message });
    return new Map();
  }
}

/** `OS_<SECTION>__<OPTION>`, as in oslo.config; other variables are none of ours. */
function environmentLayer(environment: Readonly<Record<string, string | undefined>>): Layer {
  const layer = new Map<string, Map<string, Entry>>();
  for (const [variable, value] of Object.entries(environment)) {
    const match = /^OS_([A-Z0-9_]+?)__([A-Z0-9_]+)$/.exec(variable);
    if (match?.[1] !== undefined && match[2] !== undefined && value !== undefined) {
      set(layer, match[1].toLowerCase(), match[2].toLowerCase(), {
        value,
        origin: { kind: 'environment', variable },
      });
    }
  }
  return layer;
}

function commandLineLayer(texts: readonly (string | FlagSetting)[], problems: Problem[]): Layer {
  const layer = new Map<string, Map<string, Entry>>();
  for (const text of texts) {
    if (typeof text !== 'string') {
      const { section, option, value, flag } = text;
      set(layer, section, option, { value, origin: { kind: 'command line', flag } });
      continue;
    }
    const equals = text.indexOf('=');
    const name = equals === -1 ? (/^[\w.-]*/.exec(text)?.[0] ?? '') : text.slice(0, equals);
    const dot = name.lastIndexOf('.');
    if (equals === -1 || dot <= 0 || dot === name.length - 1) {
      // The part behind "=" is left out: it may be a secret.
      problems.push({ severity: 'error', message: `--config: expected section.option=value, got "${name}"` });
      continue;
    }
    set(layer, name.slice(0, dot).trim().toLowerCase(), name.slice(dot + 1).trim(), {
      value: text.slice(equals + 1),
      origin: { kind: 'command line', flag: `--config ${name}` },
    });
  }
  return layer;
}

function codeLayer(values: Readonly<Record<string, Readonly<Record<string, unknown>>>>): Layer {
  const layer = new Map<string, Map<string, Entry>>();
  for (const [section, options] of Object.entries(values)) {
    for (const [option, value] of Object.entries(options)) {
      if (value !== undefined) {
        set(layer, section.toLowerCase(), option, { value, origin: { kind: 'code' } });
      }
    }
  }
  return layer;
}

function set(layer: Map<string, Map<string, Entry>>, section: string, option: string, entry: Entry): void {
  const options = layer.get(section) ?? new Map<string, Entry>();
  options.set(option, entry);
  layer.set(section, options);
}
