/** Reads the sources of a SkyPilot configuration: files and command line. */

import { existsSync } from 'node:fs';
import { ConfigurationError, type Origin, type Problem, refuseErrors } from '../../base/errors.ts';
import { formatPath, nested, valueAt } from '../../base/yaml/tree.ts';
import { expandHome, readDotlist } from '../../config/dotlist.ts';
import { isSameFile, readConfigFile, readTaskFile, type TaskSource } from './config-file.ts';
import { CLIENT_KEYS, type Level, type Source } from './config-schema.ts';
import { formatKeys } from './permitted-keys.ts';

/** Warnings about keys in a server's configuration that only clients use: clients do not receive them. */
function clientKeyProblems({ level, tree, originOf }: Source): Problem[] {
  return level !== 'server'
    ? []
    : CLIENT_KEYS.filter((key) => (valueAt(tree, key) ?? null) !== null).map((key) => ({
        severity: 'warning',
        origin: originOf(key),
        message: `${formatPath(key)}: clients do not get it from a server; only a client may set ${formatKeys(CLIENT_KEYS)}`,
      }));
}

/** Sources that the caller names. Paths may start with `~`. */
export interface NamedSources extends NamedFiles {
  readonly task?: string | undefined;
  /** `key=value`, or one file. */
  readonly config?: readonly string[] | undefined;
}

/** The sources, as `mergeSources` takes them. */
export interface FoundSources {
  /** Without the sources of tasks. */
  readonly sources: readonly Source[];
  /** Empty without a task file. */
  readonly tasks: readonly TaskSource[];
  readonly unread: readonly UnreadFile[];
  /** Problems that do not prevent merging. */
  readonly problems: readonly Problem[];
}

/** @throws ConfigurationError for an unusable file or flag, and for a database together with other keys */
export function findSources(named: NamedSources, environment: Environment = process.env): FoundSources {
  const plan = planFiles(named, environment);
  const { sources, again } = readFiles(plan.files);
  const unread = [...plan.unread, ...again];
  const problems = [
    ...plan.files
      .filter(({ name }) => name === WHOLE)
      .map(({ file }) => warning(`${WHOLE}: ${file} is the whole configuration`)),
    ...unread.map(({ file, message }) => warning(`${file}: ${message}`)),
    // SkyPilot does not check the file that `SKYPILOT_CONFIG` names.
    ...sources
      .filter(({ name }) => name !== WHOLE)
      .flatMap((source) => [...databaseProblems(source, environment), ...clientKeyProblems(source)]),
  ];
  refuseErrors(problems);
  const tasks = named.task === undefined ? [] : readTaskFile(expandHome(named.task));
  problems.push(...tasks.flatMap((task) => task.problems));
  return { sources: [...sources, ...commandLineSources(named.config ?? [])], problems, tasks, unread };
}

const warning = (message: string): Problem => ({ severity: 'warning', message });

/** Reads each file once: merging it twice would duplicate list items. */
function readFiles(files: readonly PlannedFile[]) {
  const read: PlannedFile[] = [];
  const again: UnreadFile[] = [];
  for (const next of files) {
    const { level, file } = next;
    const same = read.find((other) => isSameFile(other.file, file));
    if (same === undefined) {
      read.push(next);
    } else {
      const message = `already used as the ${same.level}'s configuration, not read again as the ${level}'s`;
      again.push({ level, file, message });
    }
  }
  return { sources: read.map(({ level, file, name }) => readConfigFile(level, file, name)), again };
}

function commandLineSources(texts: readonly string[]): Source[] {
  if (texts.length === 0) {
    return [];
  }
  const dotlist = readDotlist(texts);
  if ('file' in dotlist) {
    return [readConfigFile('command line', dotlist.file)];
  }
  if (dotlist.problems.length > 0) {
    throw new ConfigurationError([{ severity: 'error', message: dotlist.problems.join('; ') }]);
  }
  return dotlist.pairs.map(({ path, value }) => {
    const origin: Origin = { kind: 'command line', flag: `--config ${path.join('.')}` };
    const below = (leaf: unknown) => nested(path, leaf) as Source['tree'];
    return {
      level: 'command line',
      tree: below(value.value),
      typed: below(value.typed),
      originOf: () => origin,
    };
  });
}

/** A server may keep its configuration in a database. The address contains a password and is never shown. */
const VARIABLE = 'SKYPILOT_DB_CONNECTION_URI';

/**
 * SkyPilot's rule: with a database, named by `db` or the environment, its server refuses a file with more
 * than one other key. The database has precedence over that one.
 */
function databaseProblems({ level, tree, originOf }: Source, environment: Environment): Problem[] {
  const inFile = isSet(tree.db);
  if (level !== 'server' || !(inFile || isSet(environment[VARIABLE]))) {
    return [];
  }
  const origin = originOf(inFile ? ['db'] : []);
  const by = inFile ? 'db' : VARIABLE;
  const others = Object.keys(tree).filter((name) => name !== 'db');
  if (others.length < 2) {
    const overridden =
      'the configuration in the database of the server overrides this file, and is not shown here';
    return [{ ...warning(`${by}: ${overridden}`), origin }];
  }
  const message = `${by}: expected no other configuration beside a database, got ${others.join(', ')}; SkyPilot's server does not start`;
  return [{ severity: 'error', origin, message }];
}

/** Whether Python treats the value as true. */
function isSet(value: unknown): boolean {
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value);
}

/** In the order in which they are read. */
const FILE_LEVELS = ['server', 'user', 'project'] as const satisfies Level[];
type FileLevel = (typeof FILE_LEVELS)[number];

/** Files that the caller names. They may start with `~`. */
type NamedFiles = { readonly [level in FileLevel]?: string | undefined };

interface PlannedFile {
  readonly level: FileLevel;
  readonly file: string;
  /** Shown in place of the level. */
  readonly name?: string;
}

/** A file that would be a source, but is not read. */
export interface UnreadFile {
  readonly level: FileLevel;
  readonly file: string;
  readonly message: string;
}

type Environment = Readonly<NodeJS.ProcessEnv>;

/** One file that is the whole configuration. SkyPilot sets it for the processes that it starts itself. */
const WHOLE = 'SKYPILOT_CONFIG';

/** Counts if set, whatever its value. */
const SERVER_MODE = 'IS_SKYPILOT_SERVER';

/** As in SkyPilot. A server and a user have the same default. */
const OWN = { variable: 'SKYPILOT_GLOBAL_CONFIG', path: '~/.sky/config.yaml' };
const DEFAULTS = {
  server: OWN,
  user: OWN,
  project: { variable: 'SKYPILOT_PROJECT_CONFIG', path: '.sky.yaml' },
} as const;

/**
 * - The defaults are the files of the user and the project; on a server (`IS_SKYPILOT_SERVER`), the server's
 *   file.
 * - `SKYPILOT_CONFIG` names one file that is the whole configuration of this process. A client sends it to
 *   its server: a `server` that the caller names has lower precedence.
 *
 * @throws ConfigurationError if a variable names a file that does not exist
 */
function planFiles(named: NamedFiles, environment: Environment) {
  const isServer = environment[SERVER_MODE] !== undefined;
  const whole = environment[WHOLE];
  const hasDefault = (level: FileLevel) => isServer === (level === 'server');
  const files: PlannedFile[] = [];
  const unread: UnreadFile[] = [];
  if (whole === undefined) {
    for (const level of FILE_LEVELS) {
      const { variable, path } = DEFAULTS[level];
      const flag = named[level];
      const set = environment[variable] ?? '';
      if (flag !== undefined) {
        files.push({ level, file: expandHome(flag) });
      } else if (hasDefault(level) && set !== '') {
        files.push({ level, file: existing(variable, set) });
      } else if (hasDefault(level) && existsSync(expandHome(path))) {
        // A default file may be missing, a file that a variable names may not.
        files.push({ level, file: expandHome(path) });
      } else if (level === 'project' && isServer && set !== '') {
        const message = `not read: a server (${SERVER_MODE} is set) has no project`;
        unread.push({ level, file: set, message });
      }
    }
    return { files, unread };
  }
  const file = existing(WHOLE, whole);
  const below = isServer ? undefined : named.server;
  if (below !== undefined) {
    files.push({ level: 'server', file: expandHome(below) });
  }
  files.push({ level: below === undefined ? 'server' : 'user', file, name: WHOLE });
  for (const level of FILE_LEVELS) {
    const { variable, path } = DEFAULTS[level];
    const byDefault = hasDefault(level) ? environment[variable] || path : undefined;
    const other = named[level] ?? byDefault;
    const isRead = level === 'server' && below !== undefined;
    if (!isRead && other !== undefined && (other === named[level] || existsSync(expandHome(other)))) {
      unread.push({ level, file: other, message: `not read, because ${WHOLE} is set` });
    }
  }
  return { files, unread };
}

function existing(variable: string, named: string): string {
  const file = expandHome(named);
  if (!existsSync(file)) {
    const message = `${variable}: there is no such file: ${named || "''"}; name another, or unset ${variable}`;
    throw new ConfigurationError([{ severity: 'error', message }]);
  }
  return file;
}
