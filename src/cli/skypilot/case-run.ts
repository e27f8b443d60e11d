/**
 * Runs one case of `skypilot test`, with separate policy threads, its own clock and no network, and compares
 * the answer with the expectation.
 */
import { dirname, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { inTime, withinDeadline } from '../../base/deadline.ts';
import type { Problem } from '../../base/errors.ts';
import { YamlDocument } from '../../base/yaml/document.ts';
import { isMapping, type Mapping, type Path, YamlError } from '../../base/yaml/tree.ts';
import { readTextFile, systemErrorText } from '../../config/read-file.ts';
import type { ConfigSources } from '../../config/sources.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import type { RuleObserver } from '../../filter/services.ts';
import { PolicyChain, type Review } from '../../skypilot/policies/policy-chain.ts';
import { FactsError, requestAsSent, taskAsSent } from '../../skypilot/request/sent-request.ts';
import { InvalidBodyError, type ReceivedRequest } from '../../skypilot/request/wire.ts';
import { answered, haveOneConfiguration } from '../../skypilot/review.ts';
import { validateConfig, validateTask } from '../../skypilot/schema/validate.ts';
import { SecretValues } from '../../skypilot/secrets.ts';
import { skypilotSection } from '../../skypilot/section.ts';
import { headingOf, type PipelineTask, tasksOf } from '../../skypilot/task/pipeline.ts';
import { CaseMistake, type ReadCase } from '../cases/case-files.ts';
import type { CaseResult } from '../cases/case-report.ts';
import { differences, expectsRejection, pathDifferences, plain } from '../cases/expected.ts';
import { causeLogger } from '../cases/explanations.ts';
import { jsonText, unifiedDiff } from '../common/output.ts';
import type { SkypilotCase, TaskExpectation } from '../test/any-case.ts';
import type { Coverage } from '../test/coverage.ts';
import type { TaskConfigurations } from './case-configuration.ts';
import { isIdempotent, whyNotIdempotent } from './review-output.ts';

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
  refuse(wrong);
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

/** @throws CaseMistake */
function refuse(problems: readonly Problem[]): void {
  if (problems.length > 0) {
    throw new CaseMistake(problems);
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
  refuse(wrong);
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
  refuse(wrong);
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

/** Differences as sentences and diffs. Empty if the answer is as expected. */
interface Differences {
  readonly reasons: readonly string[];
  readonly diff: string;
}

/** `again`: the review of the result; `null` after a rejection. */
async function differencesOf(
  expected: TaskExpectation,
  reviewed: Review,
  again: Review | null,
): Promise<Differences> {
  const { task, task_paths, skypilot_config, skypilot_config_paths, idempotent = true } = expected;
  const { outcomes, policy: by } = reviewed;
  const rules = outcomes.flatMap(({ audit, rules = [] }) =>
    rules.flatMap((one) => (audit || one.audit ? [] : [one.rule])),
  );
  const changing = outcomes.filter(({ changed, audit }) => changed && !audit);
  const changedBy = changing.map(({ policy }) => policy);
  const reasons = differences(expected, { ...reviewed, by, rules, changedBy });
  if (!reviewed.allowed || expectsRejection(expected)) {
    return { reasons, diff: '' };
  }
  const config = reviewed.skypilotConfig.toDict();
  if (again !== null && isIdempotent(again) !== idempotent) {
    reasons.push(idempotent ? whyNotIdempotent(again) : 'expected it not to be idempotent, but it is');
  }
  const secrets = SecretValues.of(reviewed.task, config, task, skypilot_config);
  let diff = '';
  const compare = async (name: string, wanted: Mapping, got: Mapping) => {
    if (!isDeepStrictEqual(plain(wanted), plain(got))) {
      reasons.push(`the ${name} differs`);
      diff += await diffOf(name, wanted, got, secrets);
    }
  };
  if (task !== undefined) {
    await compare('task', comparable(task), comparable(reviewed.task));
  }
  if (skypilot_config !== undefined) {
    await compare('skypilot_config', { active_workspace: 'default', ...skypilot_config }, config);
  }
  // The last name of the path decides whether the value is secret.
  const shown = (value: unknown, path: Path) => {
    const last = String(path.findLast((step) => typeof step === 'string'));
    return jsonText((secrets.withoutSecrets({ [last]: value }) as Mapping)[last]);
  };
  reasons.push(
    ...pathDifferences('task', task_paths, [reviewed.task, comparable(reviewed.task)], shown),
    ...pathDifferences('skypilot_config', skypilot_config_paths, [config], shown),
  );
  return { reasons, diff };
}

/** As read by SkyPilot, without the copy of the original: two spellings of one task are equal. */
function comparable(task: Mapping): Mapping {
  const { _user_specified_yaml: _, ...sent } = taskAsSent(YamlDocument.from(task)).task;
  return sent;
}

async function diffOf(name: string, expected: Mapping, got: Mapping, secrets: SecretValues): Promise<string> {
  const [from = '', to = ''] = [expected, got].map((one) =>
    YamlDocument.from(sorted(secrets.withoutSecrets(one))).toString(),
  );
  const diff = await unifiedDiff([`${name} (expected)`, `${name} (got)`], from, to);
  return from === to ? `${diff}(the values that differ are hidden)\n` : diff;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(sorted);
  }
  return isMapping(value)
    ? Object.fromEntries(
        Object.entries(value)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, one]) => [name, sorted(one)]),
      )
    : value;
}
