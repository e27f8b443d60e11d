/**
 * Splits a file into tasks like SkyPilot: one task, or several documents of which the first may be a header.
 * SkyPilot calls its admin policy for each task. Source: SkyPilot 0.13, loading of task chains and job
 * groups.
 */

import { YamlDocument } from '../../base/yaml/document.ts';
import { isMapping, type Mapping, member, type Path, YamlError } from '../../base/yaml/tree.ts';

export interface PipelineTask {
  /** As written; contains only the task. */
  readonly document: YamlDocument;
  readonly value: Mapping;
  /** Starts at 1 and does not count the header. */
  readonly number: number;
  readonly of: number;
  /** `null` = no name. */
  readonly name: string | null;
}

/** Whether the first document is a header, not a task. `documents`: their number. */
function isHeader(first: Mapping, documents: number): boolean {
  const names = Object.keys(first).sort().join();
  // SkyPilot ignores unknown keys in the header of a job group.
  return names === 'name' || names === 'execution,name' || (documents > 1 && first.execution === 'parallel');
}

/** All tasks of a file, at least one. @throws YamlError for invalid YAML, and for other than mappings */
export function tasksOf(text: string): PipelineTask[] {
  const documents = YamlDocument.parseStream(text).map((document, index) => {
    const { value } = document;
    if (value !== null && !isMapping(value)) {
      throw new YamlError(`document ${index + 1}: expected a mapping`, document.lineOf([]));
    }
    return { document, value };
  });
  const [first, ...further] = documents;
  const withoutHeader =
    first?.value != null && further.length > 0 && isHeader(first.value, documents.length)
      ? further
      : documents;
  const tasks = withoutHeader.flatMap(({ document, value }) => (value === null ? [] : { document, value }));
  // An empty file, or one with only a header, is one empty task.
  const all = tasks.length > 0 ? tasks : [trivial(first)];
  return all.map(({ document, value }, index) => {
    const name = typeof value.name === 'string' ? value.name : null;
    return { document, value, number: index + 1, of: all.length, name };
  });
}

function trivial(
  first: { document: YamlDocument; value: Mapping | null } | undefined,
): Pick<PipelineTask, 'document' | 'value'> {
  const { document, value } = first ?? {};
  return document === undefined || value == null
    ? { document: YamlDocument.from({}), value: {} }
    : { document, value };
}

/** `task 2 of 3: train` */
export function headingOf({ number, of, name }: PipelineTask): string {
  return `task ${number} of ${of}${name === null ? '' : `: ${name}`}`;
}

interface PipelineProblem {
  readonly severity: 'error' | 'warning';
  readonly line: number;
  readonly message: string;
}

const GROUP_MEMBERS = ['name', 'execution', 'primary_tasks', 'termination_delay', 'inter_connection'];
/** As Python's `isalnum`, with `-` and `_`. */
const NAME = /^[\p{L}\p{N}_-]+$/u;
/** Seconds, or with a unit. */
const DURATION = /^[0-9]+(s|m|h|d|w|)$/i;

/** Problems that SkyPilot refuses, or ignores with a warning. `text`: a file that `tasksOf` accepts. */
export function pipelineProblems(text: string): PipelineProblem[] {
  const documents = YamlDocument.parseStream(text);
  const [header, ...jobs] = documents;
  const value = header?.typed;
  if (header === undefined || !isMapping(value) || !isHeader(value, documents.length)) {
    return [];
  }
  const problems: PipelineProblem[] = [];
  const reporter =
    (document: YamlDocument) =>
    (path: Path, message: string, severity: 'error' | 'warning' = 'error') =>
      problems.push({ severity, line: document.lineOf(path), message });
  const report = reporter(header);
  if (jobs.length === 0 || value.execution !== 'parallel') {
    if (value.execution !== undefined && value.execution !== null && value.execution !== 'serial') {
      const several = jobs.length === 0 ? ', or parallel with further documents' : ' or parallel';
      report(['execution'], `execution: expected serial${several}`);
    }
    return problems;
  }
  checkName(value, 'a job group', report);
  const names = new Set<string>();
  for (const job of jobs) {
    const { typed: task } = job;
    if (isMapping(task)) {
      checkName(task, 'a job of a group', reporter(job));
      const { name } = task;
      if (typeof name === 'string') {
        if (names.has(name)) {
          reporter(job)(['name'], 'name: expected another name for each job of a group');
        }
        names.add(name);
      }
    }
  }
  checkMembers(value, names, report);
  return problems;
}

type Report = (path: Path, message: string, severity?: 'error' | 'warning') => void;

function checkName(value: Mapping, what: string, report: Report): void {
  const { name } = value;
  if (typeof name !== 'string' || !NAME.test(name)) {
    const path = member(value, 'name') === undefined ? [] : ['name'];
    report(path, `name: expected ${what} to have a name of letters, digits, - and _`);
  }
}

function checkMembers(value: Mapping, names: ReadonlySet<string>, report: Report): void {
  const unknown = Object.keys(value).filter((name) => !GROUP_MEMBERS.includes(name));
  for (const name of unknown) {
    report([name], `${name}: ignored in a header; expected one of ${GROUP_MEMBERS.join(', ')}`, 'warning');
  }
  const {
    primary_tasks: primary = null,
    termination_delay: delay = null,
    inter_connection: inter = null,
  } = value;
  if (primary !== null && !(Array.isArray(primary) && primary.every((name) => names.has(name)))) {
    report(['primary_tasks'], 'primary_tasks: expected a list of names of jobs of this file');
  }
  if (delay !== null && !isDelay(delay, names)) {
    const expected = 'expected a duration such as 30s, or durations by the name of a job or default';
    report(['termination_delay'], `termination_delay: ${expected}`);
  }
  if (inter !== null && typeof inter !== 'boolean') {
    report(['inter_connection'], 'inter_connection: expected true or false');
  }
}

function isDelay(delay: unknown, names: ReadonlySet<string>): boolean {
  return isMapping(delay)
    ? Object.entries(delay).every(([name, one]) => (name === 'default' || names.has(name)) && isDuration(one))
    : isDuration(delay);
}

function isDuration(value: unknown): boolean {
  return ['string', 'number', 'bigint'].includes(typeof value) && DURATION.test(String(value));
}
