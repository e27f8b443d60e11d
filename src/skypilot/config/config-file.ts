/** Reads the files of a SkyPilot configuration, with the line of each value. */
import { statSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { ConfigurationError, errorText, type Problem } from '../../base/errors.ts';
import { YamlDocument } from '../../base/yaml/document.ts';
import { formatPath, isMapping, type Mapping, type Path, valueAt, YamlError } from '../../base/yaml/tree.ts';
import { fileState, readTextFile } from '../../config/read-file.ts';
import { type PipelineTask, pipelineProblems, tasksOf } from '../task/pipeline.ts';
import type { Level, Source } from './config-schema.ts';

/**
 * One file as the source of a level. An empty file is an empty configuration. `name`: shown in place of the
 * level.
 *
 * @throws ConfigurationError if it cannot be read, is not YAML, or is not a mapping. SkyPilot ignores a file
 * that is not YAML, and with it the policy that it names.
 */
export function readConfigFile(level: Level, file: string, name?: string): Source {
  const document = readingYaml(file, (text) => YamlDocument.parse(text));
  const value = document.value ?? {};
  if (!isMapping(value)) {
    const message = 'expected a mapping, such as "kubernetes:" with options below it';
    throw mistake(file, document.lineOf([]), message);
  }
  const typed = document.typed as Mapping | null;
  return {
    level,
    ...(name !== undefined && { name }),
    tree: value,
    ...(typed !== null && { typed }),
    originOf: originsIn(file, document),
  };
}

export interface TaskSource {
  readonly task: PipelineTask;
  readonly source: Source;
  /** The file and line of the value at a path in the task. */
  readonly originOf: Source['originOf'];
  /** The first task also has the problems of the file. */
  readonly problems: readonly Problem[];
}

/** Each task of a file with its configuration. @throws ConfigurationError if it is unreadable or not YAML */
export function readTaskFile(file: string): TaskSource[] {
  return readingYaml(file, (text) => {
    const ofFile = pipelineProblems(text).map(
      ({ severity, line, message }): Problem => ({ severity, origin: { kind: 'file', file, line }, message }),
    );
    return tasksOf(text).map((task, index) => {
      const originOf = originsIn(file, task.document);
      const { tree, at, problems } = taskConfig(task.value, originOf);
      const source: Source = { level: 'task', tree, originOf: (path: Path) => originOf([...at, ...path]) };
      return { task, source, originOf, problems: index === 0 ? [...ofFile, ...problems] : problems };
    });
  });
}

/** Whether two paths name one file. `false` for devices such as `/dev/null`, pipes and unreadable files. */
export function isSameFile(first: string, second: string): boolean {
  try {
    const one = statSync(first);
    const other = statSync(second);
    return one.isFile() && one.dev === other.dev && one.ino === other.ino;
  } catch {
    return false;
  }
}

function originsIn(file: string, document: YamlDocument): Source['originOf'] {
  return (at) => ({ kind: 'file', file, line: document.lineOf(at) });
}

function readingYaml<Result>(file: string, read: (text: string) => Result): Result {
  let text: string;
  try {
    text = readTextFile(file);
  } catch (thrown) {
    const message = `${file}: could not be read: ${errorText(thrown)}`;
    throw new ConfigurationError([{ severity: 'error', message }]);
  }
  try {
    return read(text);
  } catch (thrown) {
    throw thrown instanceof YamlError
      ? mistake(file, thrown.line ?? 1, `expected YAML: ${thrown.reason}`)
      : thrown;
  }
}

function mistake(file: string, line: number, message: string): ConfigurationError {
  return new ConfigurationError([{ severity: 'error', origin: { kind: 'file', file, line }, message }]);
}

// Reads the configuration in a SkyPilot task: `config`, its old name, and SkyPilot's own form of it.

interface TaskConfig {
  readonly tree: Mapping;
  /** Its path in the task. */
  readonly at: Path;
  readonly problems: readonly Problem[];
}

interface Written {
  readonly path: Path;
  /** `undefined` = missing or null. */
  readonly tree: unknown;
}

/**
 * Reads `config`, its old name `experimental.config_overrides`, or the form that SkyPilot gives them within
 * `resources`. Lifecycle hooks in `config` are not configuration.
 */
export function taskConfig(task: Mapping, originOf: Source['originOf']): TaskConfig {
  const problems: Problem[] = [];
  const report = (severity: Problem['severity'], path: Path, message: string) =>
    problems.push({ severity, origin: originOf(path), message: `${formatPath(path)}: ${message}` });

  const { experimental = null } = task;
  if (isMapping(experimental)) {
    for (const name of Object.keys(experimental).filter((one) => one !== 'config_overrides')) {
      report('error', ['experimental', name], 'expected only config_overrides here');
    }
  } else if (experimental !== null) {
    report('error', ['experimental'], 'expected a mapping');
  }

  const own = withoutHooks(written(task, ['config']));
  const old = written(task, ['experimental', 'config_overrides']);
  const [made = written(task, MADE), ...others] = madeBySkyPilot(task);
  if (old.tree !== undefined) {
    const message = own.tree === undefined ? 'deprecated: use config' : 'ignored, because config is set';
    report('warning', old.path, message);
  }
  const chosen = own.tree === undefined ? old : own;
  for (const one of [made, ...others]) {
    if (chosen.tree !== undefined && one.tree !== undefined) {
      report('error', one.path, `cannot be combined with ${formatPath(chosen.path)}`);
    } else if (!isDeepStrictEqual(one.tree ?? {}, made.tree ?? {})) {
      const message = `expected the same as in ${formatPath(made.path)}: give each alternative a task of its own`;
      report('error', one.path, message);
    }
  }
  const { path: at, tree = {} } = chosen.tree === undefined ? made : chosen;
  if (!isMapping(tree)) {
    report('error', at, 'expected a mapping');
    return { tree: {}, at, problems };
  }
  return { tree, at, problems };
}

const MADE = ['resources', '_cluster_config_overrides'] as const;

/** One for each alternative: its own, or that of the whole task. */
function madeBySkyPilot(task: Mapping): Written[] {
  const ofAll = written(task, MADE);
  const alternatives = ['any_of', 'ordered'].flatMap((name) => {
    const list = valueAt(task, ['resources', name]);
    return Array.isArray(list)
      ? list.map((_, index) => written(task, ['resources', name, index, MADE[1]]))
      : [];
  });
  return alternatives.length === 0
    ? [ofAll]
    : alternatives.map((one) => (one.tree === undefined ? ofAll : one));
}

function written(task: Mapping, path: Path): Written {
  return { path, tree: valueAt(task, path) ?? undefined };
}

function withoutHooks({ path, tree }: Written): Written {
  if (!isMapping(tree)) {
    return { path, tree };
  }
  const { hooks: _, ...rest } = tree;
  return { path, tree: rest };
}

/**
 * The configuration file of SkyPilot's server, for policies that compare requests with it. Read as SkyPilot
 * reads it (YAML 1.1), and again whenever it changes.
 */
export class ServerConfigFile {
  readonly #path: string;
  #tree: Mapping;
  /** Its last line ended with a line break. */
  #isEnded: boolean;
  /** State of the file when it was last read; `undefined` = not read by a request. */
  #state: string | undefined;

  /**
   * Reads the file.
   *
   * @throws ConfigurationError with file and line if it cannot be read, is not one mapping, or names a database
   * (`db`): SkyPilot then keeps its configuration there
   */
  constructor(path: string) {
    this.#path = path;
    this.#tree = treeOf(path);
    this.#isEnded = isEnded(path);
  }

  /**
   * The configuration. Treat it as read-only. @throws ConfigurationError as the constructor does, and for a file
   * that was most likely cut off since: it lacks values of the server
   */
  async current(): Promise<Mapping> {
    const state = await fileState(this.#path);
    if (state === undefined || state !== this.#state) {
      this.#state = undefined;
      const isWhole = isEnded(this.#path);
      const tree = treeOf(this.#path);
      const isEmptied = Object.keys(tree).length === 0 && Object.keys(this.#tree).length > 0;
      if (isEmptied || (this.#isEnded && !isWhole)) {
        const what = isEmptied ? 'became empty' : 'no longer ends with a line break';
        const message = `${this.#path}: the file ${what}, so it was most likely cut off; reload to accept it`;
        throw new ConfigurationError([{ severity: 'error', message }]);
      }
      this.#tree = tree;
      this.#isEnded = isWhole;
      this.#state = state;
    }
    return this.#tree;
  }
}

function isEnded(path: string): boolean {
  return readingYaml(path, (text) => text.endsWith('\n'));
}

function treeOf(path: string): Mapping {
  const { tree, originOf } = readConfigFile('server', path);
  if (tree.db !== undefined && tree.db !== null) {
    const message =
      'SkyPilot keeps its configuration in the database that db names; name a file with that configuration, without db';
    throw new ConfigurationError([{ severity: 'error', origin: originOf(['db']), message }]);
  }
  return tree;
}
