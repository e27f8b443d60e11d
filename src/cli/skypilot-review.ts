/** `skypilot review`: runs the admin policies on a request, without SkyPilot. */
import { existsSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { Command } from 'commander';
import { DEFAULT_CONFIG_FILE, SERVER_VARIABLE } from '../config/places.ts';
import type { ConfigSources } from '../config/sources.ts';
import { inTime, withinDeadline } from '../deadline.ts';
import { createLogger, type LogLevel } from '../logger.ts';
import { headingOf, type PipelineTask } from '../skypilot/pipeline.ts';
import type { PolicyChain, Review } from '../skypilot/policy-chain.ts';
import type { SecretValues } from '../skypilot/secrets.ts';
import type { ReceivedRequest } from '../skypilot/wire.ts';
import { isMapping } from '../yaml/tree.ts';
import { readText, shownName } from './input.ts';
import { ExitCode, onOneLine, printJson, printTable, printWarnings, UsageError } from './output.ts';
import { addSourceFlags, formatFlag, logLevelFlag, type SourceFlags, sourcesOf } from './sources.ts';
import { unifiedDiff } from './unified-diff.ts';

interface ReviewFlags extends SourceFlags {
  readonly format: 'diff' | 'json';
  readonly checkIdempotence?: boolean;
  readonly skypilotConfig?: string;
  readonly requestName?: string;
  readonly clusterName?: string;
  readonly logLevel: LogLevel;
}

export function skypilotReviewCommand(): Command {
  const command = new Command('review')
    .description(
      'Run the policies of [skypilot] admin_policies on a request and show their changes as a diff. Reviews every task of a pipeline. Exit code: 0 allowed, 1 rejected, 2 an error in the configuration, the request or the command, 3 a policy failed or is not idempotent.',
    )
    .argument(
      '<file>',
      'A request body as SkyPilot sends it, or a task or pipeline in YAML; - reads standard input.',
    )
    .addOption(formatFlag('diff', 'json'))
    .option('--check-idempotence', 'Run the policies again on their own result, which must not change again.')
    .option('--skypilot-config <file>', 'For a task: the configuration, in YAML. Default: empty.')
    .option(
      '--request-name <name>',
      'For a task: the request name. Default: launch, or jobs.launch for a pipeline.',
    )
    .option('--cluster-name <name>', 'For a task: the cluster name.')
    .addOption(logLevelFlag('warn'));
  return addSourceFlags(command).action(review);
}

async function review(file: string, flags: ReviewFlags): Promise<void> {
  const { requireConfiguration, sectionOf } = await import('../enforcement/configuration.ts');
  const { SECTIONS } = await import('../server/sections.ts');
  const { skypilotSection } = await import('../skypilot/options.ts');
  const { serviceSection } = await import('../server/options.ts');
  const { PolicyChain: Chain } = await import('../skypilot/policy-chain.ts');
  const configuration = await requireConfiguration(reviewSources(flags), SECTIONS);
  // Warnings about filters do not matter here.
  printWarnings(configuration.problems.filter(({ section }) => section !== 'enforcement'));
  const { deadline: seconds } = sectionOf(configuration, skypilotSection);
  const { body_limit } = sectionOf(configuration, serviceSection);
  const requests = await readRequests(file, flags, body_limit);
  const policies = await Chain.fromConfiguration(configuration, { logger: createLogger(flags.logLevel) });
  if (policies.isEmpty) {
    throw new UsageError(
      '[skypilot] admin_policies names no policy; name a configuration with --config-file',
    );
  }
  try {
    const reviews: Review[] = [];
    let code: number = ExitCode.ok;
    // Reviews the remaining tasks even after a rejection, because SkyPilot sends one request per task.
    for (const { request, task } of requests) {
      const reviewed = await asked(policies, request, seconds);
      const again =
        flags.checkIdempotence === true && reviewed.allowed
          ? await asked(policies, answered(request, reviewed), seconds)
          : null;
      if (flags.format !== 'json' && task !== null) {
        process.stdout.write(`${task.number === 1 ? '' : '\n'}${onOneLine(headingOf(task))}\n`);
      }
      await print(file, { request, task }, reviewed, again, flags.format);
      code = Math.max(code, exitCode(reviewed, again));
      reviews.push(reviewed);
    }
    process.exitCode = hasOneConfiguration(reviews) ? code : ExitCode.failed;
  } finally {
    await close(policies, seconds);
  }
  // A policy may leave timers and connections open, above all one that never answered.
  process.stdout.write('', () => process.exit());
}

/**
 * A review enforces nothing, so unlike other commands it does not need the server's file if policies are configured
 * elsewhere.
 */
function reviewSources(flags: ReviewFlags): ConfigSources {
  const isNamed = flags.configFile !== undefined || (process.env[SERVER_VARIABLE] ?? '') !== '';
  return { ...sourcesOf(flags), ...(!isNamed && !existsSync(DEFAULT_CONFIG_FILE) && { configFiles: [] }) };
}

function asked(policies: PolicyChain, request: ReceivedRequest, seconds: number): Promise<Review> {
  return withinDeadline(seconds, (deadline) => policies.review(request, { deadline }));
}

/** The output does not wait for a policy that does not close. */
async function close(policies: PolicyChain, seconds: number): Promise<void> {
  await withinDeadline(seconds, (deadline) => inTime(policies.close(), deadline)).catch(() => {});
}

/** The next request that SkyPilot would send. */
function answered(request: ReceivedRequest, { task, skypilotConfig }: Review): ReceivedRequest {
  return {
    ...request,
    task: request.task.with(task),
    skypilotConfig: request.skypilotConfig.with(skypilotConfig.toDict()),
  };
}

/**
 * SkyPilot uses one configuration for a whole pipeline, and rejects a pipeline whose tasks end up with different
 * ones.
 */
function hasOneConfiguration(reviews: readonly Review[]): boolean {
  const [first, ...others] = reviews
    .filter(({ allowed }) => allowed)
    .map(({ skypilotConfig }) => skypilotConfig);
  if (first === undefined || others.every((one) => isDeepStrictEqual(one.toDict(), first.toDict()))) {
    return true;
  }
  process.stderr.write(
    'error: the policies return different configurations for the tasks, and SkyPilot rejects such a pipeline\n',
  );
  return false;
}

/** A request and its task; `null` if it is not part of a pipeline. */
interface Requested {
  readonly request: ReceivedRequest;
  readonly task: PipelineTask | null;
}

async function readRequests(file: string, flags: ReviewFlags, maxBytes: number): Promise<Requested[]> {
  const { decodeRequest, encodeRequest, InvalidBodyError } = await import('../skypilot/wire.ts');
  const { tasksOf } = await import('../skypilot/pipeline.ts');
  const { YamlError } = await import('../yaml/error.ts');
  const { skypilotConfig, requestName, clusterName } = flags;
  if (file === '-' && skypilotConfig === '-') {
    throw new UsageError('standard input (-) can only be read once');
  }
  const text = await readText(file, maxBytes);
  if (text.trim() === '') {
    throw new UsageError(`${shownName(file)}: expected a request or a task, got nothing`);
  }
  const body = bodyOf(text);
  if (body !== undefined && [skypilotConfig, requestName, clusterName].some((flag) => flag !== undefined)) {
    throw new UsageError(
      `${shownName(file)}: --skypilot-config, --request-name and --cluster-name apply to a task, but this is a request body`,
    );
  }
  try {
    if (body !== undefined) {
      return [{ request: decodeRequest(body), task: null }];
    }
    const config = skypilotConfig === undefined ? '{}' : await readText(skypilotConfig, maxBytes);
    return tasksOf(text).map((task) => {
      // SkyPilot launches a single task; several tasks are a managed job.
      const name = requestName ?? (task.of === 1 ? 'launch' : 'jobs.launch');
      const options = {
        clusterName: clusterName ?? null,
        idleMinutesToAutostop: null,
        down: false,
        dryrun: false,
      };
      const request = encodeRequest({
        task: task.document.toString(),
        skypilotConfig: config,
        requestName: name,
        requestOptions: task.of > 1 && clusterName === undefined ? null : options,
        atClientSide: false,
        user: null,
        clientApiVersion: null,
        clientVersion: null,
      });
      return { request: decodeRequest(JSON.parse(request)), task: task.of === 1 ? null : task };
    });
  } catch (thrown) {
    if (thrown instanceof YamlError) {
      throw new UsageError(`${shownName(file)}: task: expected YAML, and ${thrown.message}`);
    }
    if (!(thrown instanceof InvalidBodyError)) {
      throw thrown;
    }
    const { message } = thrown;
    const isConfig = skypilotConfig !== undefined && message.startsWith('skypilot_config:');
    throw new UsageError(`${shownName(isConfig ? skypilotConfig : file)}: ${message}`);
  }
}

/** A task in JSON has no members of these names. */
function bodyOf(text: string): unknown {
  try {
    const body: unknown = JSON.parse(text);
    const isBody =
      typeof body === 'string' || (isMapping(body) && ('task' in body || 'skypilot_config' in body));
    return isBody ? body : undefined;
  } catch {
    return undefined;
  }
}

async function print(
  file: string,
  { request, task: part }: Requested,
  reviewed: Review,
  again: Review | null,
  format: ReviewFlags['format'],
): Promise<void> {
  const { allowed, message, policy, failed, changed, outcomes } = reviewed;
  const { SecretValues } = await import('../skypilot/secrets.ts');
  const after = reviewed.skypilotConfig.toDict();
  // A secret of one text is hidden in all of them.
  const secrets = SecretValues.of(request.task.value, request.skypilotConfig.value, reviewed.task, after);
  const task = await changes('task', request.task, reviewed.task, secrets);
  const config = await changes('skypilot_config', request.skypilotConfig, after, secrets);
  if (format === 'json') {
    const diff = { task, skypilot_config: config };
    const idempotent = again && isIdempotent(again);
    const pipeline = part && { task: part.number, of: part.of, name: part.name };
    printJson({
      file,
      ...(pipeline && { pipeline }),
      allowed,
      message,
      policy,
      failed,
      changed,
      idempotent,
      outcomes,
      diff,
    });
    return;
  }
  await printTable(
    ['POLICY', 'ANSWER', 'MESSAGE'],
    outcomes.map((outcome) => [outcome.policy, answerOf(outcome), outcome.message ?? '']),
  );
  for (const diff of [task, config]) {
    if (diff !== '') {
      process.stdout.write(`\n${diff.split('\n').map(onOneLine).join('\n')}`);
    }
  }
  if (again !== null && !isIdempotent(again)) {
    process.stderr.write(`error: ${onOneLine(whyNot(again))}\n`);
  }
}

function isIdempotent(again: Review): boolean {
  return again.allowed && !again.changed;
}

/** SkyPilot calls the policies several times for one command, each time with the previous result. */
function whyNot({ allowed, failed, policy, message, outcomes }: Review): string {
  if (failed) {
    return `${policy} failed when called with its own result`;
  }
  if (!allowed) {
    return `not idempotent: ${policy} rejects the result: ${message}`;
  }
  const changing = outcomes.filter(({ changed }) => changed).map((outcome) => outcome.policy);
  return `not idempotent: the result is changed again by ${changing.join(', ')}`;
}

/** A unified diff without secrets; empty if nothing changed. */
async function changes(
  name: string,
  before: ReceivedRequest['task'],
  after: unknown,
  secrets: SecretValues,
): Promise<string> {
  const changed = before.with(after);
  if (changed === before) {
    return '';
  }
  const [from, to] = [before, changed].map((one) => one.with(secrets.withoutSecrets(one.value)).format());
  const names = [name, `${name} (changed by policies)`] as const;
  const diff = await unifiedDiff(names, from ?? '', to ?? '');
  return from === to ? `${diff}(the changed values are hidden)\n` : diff;
}

function answerOf({ allowed, failed, changed }: Review['outcomes'][number]): string {
  if (failed) {
    return 'failed';
  }
  return !allowed ? 'rejected' : changed ? 'changed' : 'allowed';
}

function exitCode({ allowed, failed }: Review, again: Review | null): number {
  if (failed || (again !== null && !isIdempotent(again))) {
    return ExitCode.failed;
  }
  return allowed ? ExitCode.ok : ExitCode.rejected;
}
