/** Runs one case of `skypilot test`: separate policy threads, its own clock, no network. */
import { dirname, resolve } from 'node:path';
import { inTime, withinDeadline } from '../../base/deadline.ts';
import { YamlDocument } from '../../base/yaml/document.ts';
import { type Mapping, type Path, YamlError } from '../../base/yaml/tree.ts';
import { readTextFile, systemErrorText } from '../../config/read-file.ts';
import type { ConfigSources } from '../../config/sources.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import type { RuleObserver } from '../../filter/services.ts';
import { PolicyChain, type Review } from '../../skypilot/policies/policy-chain.ts';
import { FactsError, requestAsSent } from '../../skypilot/request/sent-request.ts';
import { InvalidBodyError, type ReceivedRequest } from '../../skypilot/request/wire.ts';
import { answered, haveOneConfiguration } from '../../skypilot/review.ts';
import { validateConfig, validateTask } from '../../skypilot/schema/validate.ts';
import { skypilotSection } from '../../skypilot/section.ts';
import { headingOf, type PipelineTask, tasksOf } from '../../skypilot/task/pipeline.ts';
import { CaseMistake, type ReadCase } from '../cases/case-files.ts';
import type { CaseResult } from '../cases/case-report.ts';
import { causeLogger } from '../cases/explanations.ts';
import type { SkypilotCase, TaskExpectation } from '../test/any-case.ts';
import type { Coverage } from '../test/coverage.ts';
import { type Differences, differencesOf } from './case-answer.ts';
import type { TaskConfigurations } from './case-configuration.ts';

const MAX_BYTES = 1_048_576;

type ReadTaskCase = ReadCase<SkypilotCase>;

/**
 * `sources`: of policies unless the case names its own; `undefined` = none.
 * @throws CaseMistake, ConfigurationError
 */
export async function runTaskCase(
  read: ReadTaskCase,
  sources: ConfigSources | undefined,
  { coverage, tasks: configurations }: { readonly coverage: Coverage; readonly tasks: TaskConfigurations },
): Promise<Pick<CaseResult, 'status'> & Partial<CaseResult>> {
  const { requests, tasks } = requestsOf(read);
  const configuration = await configurations.of(read, sources ?? { configFiles: [] });
  const seen = coverage.of(configuration);
  const { reviews, causes } = await reviewed(configuration, read.case, requests, seen);
  for (const named of sectionOf(configuration, skypilotSection).admin_policies) {
    seen.expect('admin-policy', named.replace(/^.*#/, ''));
  }
  for (const { policy, allowed, failed } of reviews.flatMap(({ first }) => first.outcomes)) {
    seen.saw('admin-policy', policy, failed ? 'failed' : allowed ? 'allowed' : 'refused');
  }
  const broken = reviews.flatMap(({ first, again }) =>
    [first, again].flatMap((one) => (one?.failed === true ? `${one.policy} failed` : [])),
  );
  if (broken.length > 0) {
    return { status: 'broken', reasons: [...new Set([...broken, ...causes])] };
  }
  const { reasons, diff } = await allDifferences(read.case.expect, reviews, tasks);
  return { status: reasons.length === 0 ? 'passed' : 'failed', reasons, diff };
}

function requestsOf(read: ReadTaskCase): { requests: ReceivedRequest[]; tasks: PipelineTask[] } {
  const { skypilot_config, request = {} } = read.case;
  const { name, cluster_name, idle_minutes, down, dry_run, client_side, user, workspace } = request;
  const { client_version: clientVersion, client_api_version: clientApiVersion } = request;
  const tasks = tasksIn(read);
  if (Array.isArray(read.case.expect) && read.case.expect.length !== tasks.length) {
    throw CaseMistake.at(read, ['expect'], `expected one expectation for each of ${tasks.length} tasks`);
  }
  const originOf = (path: Path) => ({
    ...({ kind: 'file', file: read.file } as const),
    line: read.lineOf(['skypilot_config', ...path]),
  });
  const wrong =
    skypilot_config === undefined
      ? []
      : validateConfig(read.typedAt(['skypilot_config']) as Mapping, originOf);
  if (wrong.length > 0) {
    throw new CaseMistake(wrong);
  }
  const facts = {
    requestName: name,
    clusterName: cluster_name,
    idleMinutes: idle_minutes,
    down,
    dryRun: dry_run,
    clientSide: client_side,
    user,
    workspace,
    clientVersion,
    clientApiVersion,
  };
  try {
    const config = YamlDocument.from(skypilot_config ?? {}).toString();
    return { requests: tasks.map((task) => requestAsSent(task, config, facts)), tasks };
  } catch (thrown) {
    if (thrown instanceof FactsError || thrown instanceof InvalidBodyError || thrown instanceof YamlError) {
      throw CaseMistake.at(read, thrown instanceof FactsError ? ['request'] : ['task'], thrown.message);
    }
    throw thrown;
  }
}

function tasksIn(read: ReadTaskCase): PipelineTask[] {
  const { task, task_file } = read.case;
  if (task_file !== undefined) {
    return tasksInFile(read, resolve(dirname(read.file), task_file));
  }
  const list = Array.isArray(task) ? task : [task as Mapping];
  const wrong = list.flatMap((_, index) => {
    const at = ['task', ...(Array.isArray(task) ? [index] : [])];
    return validateTask(read.typedAt(at) as Mapping, (path) => ({
      ...({ kind: 'file', file: read.file } as const),
      line: read.lineOf([...at, ...path]),
    }));
  });
  if (wrong.length > 0) {
    throw new CaseMistake(wrong);
  }
  return list.map((value, index) => ({
    document: YamlDocument.from(value),
    value,
    number: index + 1,
    of: list.length,
    name: typeof value.name === 'string' ? value.name : null,
  }));
}

function tasksInFile(read: ReadTaskCase, file: string): PipelineTask[] {
  let tasks: PipelineTask[];
  try {
    tasks = tasksOf(readTextFile(file, MAX_BYTES));
  } catch (thrown) {
    const why =
      thrown instanceof YamlError ? `expected YAML, and ${thrown.message}` : systemErrorText(thrown);
    throw CaseMistake.at(read, ['task_file'], `task_file: ${file}: ${why}`);
  }
  const wrong = tasks.flatMap(({ document }) =>
    validateTask(document.typed as Mapping, (path) => ({ kind: 'file', file, line: document.lineOf(path) })),
  );
  if (wrong.length > 0) {
    throw new CaseMistake(wrong);
  }
  return tasks;
}

interface Reviewed {
  readonly first: Review;
  readonly again: Review | null;
}

async function reviewed(
  configuration: Configuration,
  { now, network }: SkypilotCase,
  requests: readonly ReceivedRequest[],
  ruleObserver: RuleObserver,
): Promise<{ reviews: Reviewed[]; causes: string[] }> {
  const { deadline: seconds } = sectionOf(configuration, skypilotSection);
  const causes: string[] = [];
  const chain = await PolicyChain.fromConfiguration(configuration, {
    logger: causeLogger(causes),
    ruleObserver,
    trial: { now: now === undefined ? null : Date.parse(now), network },
  });
  try {
    const reviews: Reviewed[] = [];
    for (const request of requests) {
      const ask = (one: ReceivedRequest) =>
        withinDeadline(seconds, (deadline) => chain.review(one, { deadline }));
      const first = await ask(request);
      reviews.push({ first, again: first.allowed ? await ask(answered(request, first)) : null });
    }
    return { reviews, causes };
  } finally {
    await withinDeadline(seconds, (deadline) => inTime(chain.close(), deadline)).catch(() => {});
  }
}

async function allDifferences(
  expected: TaskExpectation | readonly TaskExpectation[],
  reviews: readonly Reviewed[],
  tasks: readonly PipelineTask[],
): Promise<Differences> {
  const reasons: string[] = [];
  let diff = '';
  for (const [index, { first, again }] of reviews.entries()) {
    const own = Array.isArray(expected)
      ? (expected as readonly TaskExpectation[])[index]
      : (expected as TaskExpectation);
    const found = await differencesOf(own ?? { answer: 'allowed' }, first, again);
    const [task] = tasks.slice(index);
    const heading = task === undefined || task.of === 1 ? '' : `${headingOf(task)}: `;
    reasons.push(...found.reasons.map((reason) => heading + reason));
    diff += found.diff;
  }
  if (!haveOneConfiguration(reviews.map(({ first }) => first))) {
    reasons.push(
      'the policies return different configurations for the tasks, and SkyPilot rejects such a pipeline',
    );
  }
  return { reasons, diff };
}
