/** Checks the header of a pipeline or job group, and the names of the jobs of a group. Source: SkyPilot 0.13, loading of both. */
import { YamlDocument } from '../../yaml/document.ts';
import { isMapping, type Mapping, member, type Path } from '../../yaml/tree.ts';
import { isHeader } from '../task/pipeline.ts';

/** A problem of a file of tasks. */
export interface PipelineProblem {
  readonly severity: 'error' | 'warning';
  readonly line: number;
  readonly message: string;
}

const GROUP_MEMBERS = ['name', 'execution', 'primary_tasks', 'termination_delay', 'inter_connection'];
/** As Python's `isalnum`, with `-` and `_`. */
const NAME = /^[\p{L}\p{N}_-]+$/u;
/** Seconds, or with a unit. */
const DURATION = /^[0-9]+(s|m|h|d|w|)$/i;

/** What SkyPilot refuses, or ignores with a warning. `text`: a file that `tasksOf` accepts. */
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
