/** Finds the cases of folders, and the configuration of each. */
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { systemErrorText } from '../../config/read-file.ts';
import type { ConfigSources } from '../../config/sources.ts';
import { boundedCases, yamlFilesIn } from '../cases/case-files.ts';
import { UsageError } from '../output.ts';

/** The folder of cases beside a configuration. */
const CASES = 'cases';
/** A case elsewhere. */
const CASE_FILE = /[.-]case\.ya?ml$/i;
/** The configuration beside cases. */
export const CONFIG_FILES = ['blazar.conf', 'blazar-enforcement.conf'] as const;

/** A folder or a file that a command line names. */
export interface CaseFolder {
  /** What the ids of its cases begin after. */
  readonly folder: string;
  readonly files: readonly string[];
}

/** `which`: all YAML files are cases, or those in folders called `cases` and those called `*.case.yaml`. @throws UsageError */
export function caseFolder(path: string, which: 'all' | 'named'): CaseFolder {
  if (isFile(path)) {
    return { folder: dirname(path), files: [path] };
  }
  const isOfCases = basename(resolve(path)) === CASES;
  const files = yamlFilesIn(path).filter(
    (file) =>
      which === 'all' ||
      isOfCases ||
      CASE_FILE.test(file) ||
      relative(path, file).split(sep).slice(0, -1).includes(CASES),
  );
  const whyNone =
    which === 'all' || isOfCases
      ? 'no file that ends in .yaml or .yml'
      : `no .yaml file in a folder called ${CASES}, and none called *.case.yaml`;
  return { folder: path, files: boundedCases(path, files, whyNone) };
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch (thrown) {
    throw new UsageError(`${path}: ${systemErrorText(thrown)}`);
  }
}

/**
 * Where the configuration of a case is: what the flags name, otherwise the nearest file beside the case or above it, up to the folder that
 * is tested; beside a folder called `cases`, too. `undefined` = there is none.
 */
export function sourcesOfCase(
  file: string,
  folder: string,
  flags: Pick<ConfigSources, 'configFiles' | 'configDirs' | 'config'>,
): ConfigSources | undefined {
  if (flags.configFiles !== undefined || flags.configDirs !== undefined) {
    return { configFiles: [], ...defined(flags) };
  }
  const found = nearestConfig(dirname(file), folder);
  return found === undefined ? undefined : { ...defined(flags), configFiles: [found] };
}

function nearestConfig(from: string, folder: string): string | undefined {
  const tested = resolve(folder);
  const top = basename(tested) === CASES ? dirname(tested) : tested;
  for (let at = resolve(from); ; at = dirname(at)) {
    const found = CONFIG_FILES.map((name) => join(at, name)).find((one) => existsSync(one));
    if (found !== undefined || at === top || at === dirname(at)) {
      return found && shortest(found);
    }
  }
}

/** As somebody in the working directory would write it. */
function shortest(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith('..') ? path : short;
}

function defined<Value extends object>(value: Value): Partial<Value> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Partial<Value>;
}
