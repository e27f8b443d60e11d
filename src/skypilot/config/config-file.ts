/** Reads the files of a SkyPilot configuration, with the line of each value. */
import { statSync } from 'node:fs';
import { readTextFile } from '../../config/read-file.ts';
import { ConfigurationError, errorText, type Problem } from '../../errors.ts';
import { YamlDocument } from '../../yaml/document.ts';
import { YamlError } from '../../yaml/error.ts';
import { isMapping, type Mapping, type Path } from '../../yaml/tree.ts';
import { type PipelineTask, tasksOf } from '../pipeline.ts';
import type { Level, Source } from './levels.ts';
import { pipelineProblems } from './pipeline-problems.ts';
import { taskConfig } from './task-config.ts';

/**
 * One file as the source of a level. An empty file is an empty configuration. `name`: shown in place of the level.
 *
 * @throws ConfigurationError if it cannot be read, is not YAML, or is not a mapping. SkyPilot ignores a file that is
 * not YAML, and with it the policy that it names.
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
    ...{ level, ...(name !== undefined && { name }) },
    ...{ tree: value, ...(typed !== null && { typed }), originOf: originsIn(file, document) },
  };
}

/** The configuration of one task of a file. */
export interface TaskSource {
  readonly task: PipelineTask;
  readonly source: Source;
  /** The file and line of the value at a path in the task. */
  readonly originOf: Source['originOf'];
  /** Those of the file are with the first task. */
  readonly problems: readonly Problem[];
}

/** Each task of a file with its configuration. @throws ConfigurationError if it cannot be read or is not YAML */
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

/** Whether two paths name the same file. Devices and pipes, such as `/dev/null`, are never the same. */
export function isSameFile(first: string, second: string): boolean {
  const [one, other] = [first, second].map((file) => statSync(file, { throwIfNoEntry: false }));
  return one?.isFile() === true && one.dev === other?.dev && one.ino === other.ino;
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
