/** Where configuration files are: the server's, the user's, the project's. */
import { existsSync, lstatSync, readdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Problem } from '../errors.ts';
import { systemErrorText } from './read-file.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Used when no file is named, by flag or by `BLAZAR_ENFORCEMENT_CONFIG`. */
export const DEFAULT_CONFIG_FILE = '/etc/blazar/blazar.conf';

export const SERVER_VARIABLE = 'BLAZAR_ENFORCEMENT_CONFIG';
const USER_VARIABLE = 'BLAZAR_ENFORCEMENT_USER_CONFIG';
const PROJECT_VARIABLE = 'BLAZAR_ENFORCEMENT_PROJECT_CONFIG';
const PROJECT_FILES = ['.blazar-enforcement.conf', '.blazar-enforcement.yaml'];

/** What a variable names: it must be there, whereas a file at its usual place need not. */
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

/** The user's own: the files in `~/.config/blazar-enforcement/`, by name. None where no home is known. */
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

/** That of the working directory, `.blazar-enforcement.conf` or `.yaml`. */
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

/** Whether a file of a folder is a configuration file, by its name. */
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
 * Nobody has named these files: whoever can put one where the service runs would change its limits. So they must be those
 * of who runs it, or of root, and nobody else may write to them.
 */
function isTrusted(problems: Problem[]): (file: string) => boolean {
  return (file) => {
    const reason = whyNotTrusted(file);
    if (reason !== undefined) {
      problems.push({
        severity: 'error',
        message: `${file}: not read, since ${reason}; name it with --config-file if it is meant`,
      });
    }
    return reason === undefined;
  };
}

function whyNotTrusted(file: string): string | undefined {
  try {
    // A link is somebody's as the file is: it says which file is read.
    const [link, target] = [lstatSync(file), statSync(file)];
    const mine = process.getuid?.() ?? target.uid;
    if ([link, target].some(({ uid }) => uid !== 0 && uid !== mine)) {
      return 'it belongs to somebody else';
    }
    return target.mode & 0o002 ? 'everybody may write to it' : undefined;
  } catch (thrown) {
    return `it could not be looked at: ${systemErrorText(thrown)}`;
  }
}

/** Where `~` is, for the paths of flags. */
export function homeOf({ HOME }: Environment): string {
  return HOME === undefined || HOME === '' ? homedir() : HOME;
}
