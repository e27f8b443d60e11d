/**
 * Which files a SkyPilot configuration consists of: flags, environment variables, and default files. Source: SkyPilot docs,
 * "Configuration Sources and Overrides", and the behaviour of SkyPilot 0.13.
 */
import { existsSync } from 'node:fs';
import { ConfigurationError } from '../../base/errors.ts';
import { expandHome } from '../../config/dotlist.ts';
import type { Level } from './levels.ts';

/** In the order in which they are read. */
const FILE_LEVELS = ['server', 'user', 'project'] as const satisfies Level[];
type FileLevel = (typeof FILE_LEVELS)[number];

/** Files that the caller names. They may start with `~`. */
export type NamedFiles = { readonly [level in FileLevel]?: string | undefined };

export interface PlannedFile {
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

export interface FilePlan {
  readonly files: readonly PlannedFile[];
  readonly unread: readonly UnreadFile[];
}

type Environment = Readonly<NodeJS.ProcessEnv>;

/** Names one file that is the whole configuration. SkyPilot sets it for the processes that it starts itself. */
export const WHOLE = 'SKYPILOT_CONFIG';

/** Its presence counts, whatever its value. */
const SERVER_MODE = 'IS_SKYPILOT_SERVER';

/** As in SkyPilot. A server and a user have the same ones. */
const OWN = { variable: 'SKYPILOT_GLOBAL_CONFIG', path: '~/.sky/config.yaml' };
const DEFAULTS = {
  server: OWN,
  user: OWN,
  project: { variable: 'SKYPILOT_PROJECT_CONFIG', path: '.sky.yaml' },
} as const;

/**
 * - The default files are those of a user and a project. On a server (`IS_SKYPILOT_SERVER`), it is that of the server.
 * - `SKYPILOT_CONFIG` names one file that is the whole configuration of this process. A client sends it to its server: a
 *   `server` that the caller names stays below it.
 *
 * @throws ConfigurationError if a variable names a file that does not exist
 */
export function planFiles(named: NamedFiles, environment: Environment): FilePlan {
  const isServer = environment[SERVER_MODE] !== undefined;
  const whole = environment[WHOLE];
  return whole === undefined
    ? separateFiles(named, environment, isServer)
    : oneFile(existing(WHOLE, whole), named, environment, isServer);
}

function separateFiles(named: NamedFiles, environment: Environment, isServer: boolean): FilePlan {
  const files = FILE_LEVELS.flatMap((level): PlannedFile[] => {
    const flag = named[level];
    if (flag !== undefined) {
      return [{ level, file: expandHome(flag) }];
    }
    return hasDefault(level, isServer) ? defaultFile(level, environment) : [];
  });
  const project = environment[DEFAULTS.project.variable] ?? '';
  const ignored = isServer && named.project === undefined && project !== '';
  const message = `not read: a server (${SERVER_MODE} is set) has no project`;
  return { files, unread: ignored ? [{ level: 'project', file: project, message }] : [] };
}

function oneFile(file: string, named: NamedFiles, environment: Environment, isServer: boolean): FilePlan {
  const server = isServer ? undefined : named.server;
  const unread = FILE_LEVELS.filter((level) => level !== 'server' || server === undefined).flatMap(
    (level) => {
      const { variable, path } = DEFAULTS[level];
      const other = named[level] ?? (hasDefault(level, isServer) ? environment[variable] || path : undefined);
      const isThere = other !== undefined && (named[level] !== undefined || existsSync(expandHome(other)));
      return isThere ? [{ level, file: other, message: `not read, because ${WHOLE} is set` }] : [];
    },
  );
  const files: PlannedFile[] =
    server === undefined
      ? [{ level: 'server', file, name: WHOLE }]
      : [
          { level: 'server', file: expandHome(server) },
          { level: 'user', file, name: WHOLE },
        ];
  return { files, unread };
}

function hasDefault(level: FileLevel, isServer: boolean): boolean {
  return isServer === (level === 'server');
}

/** A default file may be missing, one that a variable names may not. */
function defaultFile(level: FileLevel, environment: Environment): PlannedFile[] {
  const { variable, path } = DEFAULTS[level];
  const named = environment[variable] ?? '';
  if (named !== '') {
    return [{ level, file: existing(variable, named) }];
  }
  const file = expandHome(path);
  return existsSync(file) ? [{ level, file }] : [];
}

function existing(variable: string, named: string): string {
  const file = expandHome(named);
  if (!existsSync(file)) {
    const message = `${variable}: there is no such file: ${named || "''"}; name another, or unset ${variable}`;
    throw new ConfigurationError([{ severity: 'error', message }]);
  }
  return file;
}
