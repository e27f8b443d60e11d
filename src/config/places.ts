/** Finds the configuration files of the server, the user and the project. */
import { existsSync, lstatSync, readdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Problem } from '../base/errors.ts';
import { systemErrorText } from './read-file.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Used when neither a flag nor `BLAZAR_ENFORCEMENT_CONFIG` names a file. */
export const DEFAULT_CONFIG_FILE = '/etc/blazar/blazar.conf';

export const SERVER_VARIABLE = 'BLAZAR_ENFORCEMENT_CONFIG';
const USER_VARIABLE = 'BLAZAR_ENFORCEMENT_USER_CONFIG';
const PROJECT_VARIABLE = 'BLAZAR_ENFORCEMENT_PROJECT_CONFIG';
const PROJECT_FILES = ['.blazar-enforcement.conf', '.blazar-enforcement.yaml'];

/** The file that a variable names. It must exist, unlike a file at its default place. */
export function namedBy(variable: string, environment: Environment, problems: Problem[]): string | undefined {
  const file = environment[variable];
  if (file === undefined || file === '') {
    return undefined;
  }
  if (!existsSync(file)) {
    problems.push({
      severity: 'error',
      message: `${variable}: there is no such file: ${file}; name another, or unset ${variable}`,
    });
  }
  return file;
}

/** The files of the user in `~/.config/blazar-enforcement/`, sorted by name; none when the home folder is unknown. */
export function userFiles(environment: Environment, problems: Problem[]): string[] {
  const named = namedBy(USER_VARIABLE, environment, problems);
  if (named !== undefined) {
    return existsSync(named) ? [named] : [];
  }
  const { XDG_CONFIG_HOME: base, HOME: home } = environment;
  const folder = base ? base : home ? join(home, '.config') : undefined;
  const own = folder === undefined ? undefined : join(folder, 'blazar-enforcement');
  return own !== undefined && existsSync(own) ? configFilesIn(own, problems).filter(isTrusted(problems)) : [];
}

/** The file of the project: `.blazar-enforcement.conf` or `.yaml` in the working directory. */
export function projectFiles(folder: string, environment: Environment, problems: Problem[]): string[] {
  const named = namedBy(PROJECT_VARIABLE, environment, problems);
  if (named !== undefined) {
    return existsSync(named) ? [named] : [];
  }
  const found = PROJECT_FILES.map((name) => join(resolve(folder), name)).filter((file) => existsSync(file));
  if (found.length > 1) {
    problems.push({ severity: 'error', message: `${found.join(' and ')}: expected one of them` });
    return [];
  }
  return found.filter(isTrusted(problems));
}

/** Whether a file in a folder is a configuration file, by its name. */
export function isConfigFile(name: string): boolean {
  return /\.(conf|ya?ml)$/.test(name) && !name.startsWith('.');
}

/** The configuration files of a folder, sorted by name. */
export function configFilesIn(folder: string, problems: Problem[]): string[] {
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
 * These files were found, not named, so that anyone who can create one there could change the limits. They must belong to the user
 * of this process or to root, and others may not write to them.
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
    const [link, target] = [lstatSync(file), statSync(file)];
    const mine = process.getuid?.() ?? target.uid;
    if ([link, target].some(({ uid }) => uid !== 0 && uid !== mine)) {
      return 'it belongs to another user';
    }
    return target.mode & 0o002 ? 'everyone may write to it' : undefined;
  } catch (thrown) {
    return `it could not be looked at: ${systemErrorText(thrown)}`;
  }
}

/** The folder for `~` in the paths of flags. */
export function homeOf({ HOME }: Environment): string {
  return HOME === undefined || HOME === '' ? homedir() : HOME;
}
