/** `skypilot review`: what the admin policies make of a request, without a SkyPilot. */
import { Command, Option } from 'commander';
import { readTextFile } from '../config/read-file.ts';
import { withinDeadline } from '../deadline.ts';
import { errorText } from '../errors.ts';
import { createLogger, type LogLevel } from '../logger.ts';
import type { PolicyChain, Review } from '../skypilot/policy-chain.ts';
import type { ReceivedRequest } from '../skypilot/wire.ts';
import { ExitCode, onOneLine, printJson, printTable, printWarnings, UsageError } from './output.ts';
import { addSourceFlags, formatFlag, logLevelFlag, type SourceFlags, sourcesOf } from './sources.ts';
import { readStandardInput } from './standard-input.ts';

interface ReviewFlags extends SourceFlags {
  readonly format: 'diff' | 'json';
  readonly checkIdempotence?: boolean;
  readonly skypilotConfig?: string;
  readonly requestName: string;
  readonly clusterName?: string;
  readonly logLevel: LogLevel;
}

export function skypilotReviewCommand(): Command {
  const command = new Command('review')
    .description(
      'Put a request to the policies of [skypilot] admin_policies, and show what they change as a diff. Exit code: 0 allowed, 1 rejected, 2 a mistake in the configuration, the request or the command, 3 a policy failed or is not idempotent.',
    )
    .argument('<file>', 'The body of a request as SkyPilot sends it, or a task in YAML; - is standard input.')
    .addOption(formatFlag('diff', 'json'))
    .option('--check-idempotence', 'Put the answer to the policies once more: it must not change again.')
    .option('--skypilot-config <file>', 'Beside a task: the configuration, in YAML. Default: an empty one.')
    .addOption(new Option('--request-name <name>', 'Beside a task: what is asked for.').default('launch'))
    .option('--cluster-name <name>', 'Beside a task: the cluster.')
    .addOption(logLevelFlag('warn'));
  return addSourceFlags(command).action(review);
}

async function review(file: string, flags: ReviewFlags): Promise<void> {
  const { requireConfiguration, sectionOf } = await import('../configuration.ts');
  const { SECTIONS } = await import('../server/sections.ts');
  const { skypilotSection } = await import('../skypilot/options.ts');
  const { serviceSection } = await import('../server/options.ts');
  const { PolicyChain: Chain } = await import('../skypilot/policy-chain.ts');
  const configuration = await requireConfiguration(sourcesOf(flags), SECTIONS);
  // That no filter is enforced says nothing of policies.
  printWarnings(configuration.problems.filter(({ section }) => section !== 'enforcement'));
  const { deadline: seconds } = sectionOf(configuration, skypilotSection);
  const { body_limit } = sectionOf(configuration, serviceSection);
  const request = await readRequest(file, flags, body_limit);
  const policies = await Chain.fromConfiguration(configuration, { logger: createLogger(flags.logLevel) });
  try {
    if (policies.isEmpty) {
      throw new UsageError('[skypilot] admin_policies names no policy');
    }
    const reviewed = await asked(policies, request, seconds);
    const again =
      flags.checkIdempotence === true && reviewed.allowed
        ? await asked(policies, await answered(request, reviewed), seconds)
        : undefined;
    const isIdempotent = again === undefined ? null : again.allowed && !again.changed;
    await print(file, request, reviewed, isIdempotent, flags.format);
    process.exitCode = exitCode(reviewed, isIdempotent);
  } finally {
    await policies.close();
  }
}

function asked(policies: PolicyChain, request: ReceivedRequest, seconds: number): Promise<Review> {
  return withinDeadline(seconds, (deadline) => policies.review(request, { deadline }));
}

/** The request as SkyPilot would send it the next time. */
async function answered(
  request: ReceivedRequest,
  { task, skypilotConfig }: Review,
): Promise<ReceivedRequest> {
  return {
    ...request,
    task: request.task.with(task),
    skypilotConfig: request.skypilotConfig.with(skypilotConfig.toDict()),
  };
}

async function readRequest(file: string, flags: ReviewFlags, maxBytes: number): Promise<ReceivedRequest> {
  const { decodeRequest, encodeRequest } = await import('../skypilot/wire.ts');
  const shown = file === '-' ? 'standard input' : file;
  try {
    const text = file === '-' ? await readStandardInput(maxBytes) : readTextFile(file, maxBytes);
    const body = bodyOf(text);
    if (body !== undefined) {
      return decodeRequest(body);
    }
    const { skypilotConfig: config } = flags;
    const encoded = encodeRequest({
      task: text,
      skypilotConfig: config === undefined ? '{}' : readTextFile(config, maxBytes),
      requestName: flags.requestName,
      requestOptions: {
        clusterName: flags.clusterName ?? null,
        idleMinutesToAutostop: null,
        down: false,
        dryrun: false,
      },
      atClientSide: false,
      user: null,
      clientApiVersion: null,
      clientVersion: null,
    });
    return decodeRequest(JSON.parse(encoded));
  } catch (thrown) {
    throw new UsageError(`${shown}: ${errorText(thrown)}`);
  }
}

/** A body is JSON; a task that happens to be JSON has no member of that name. */
function bodyOf(text: string): unknown {
  try {
    const body: unknown = JSON.parse(text);
    const isBody =
      typeof body === 'string' || (typeof body === 'object' && body !== null && 'skypilot_config' in body);
    return isBody ? body : undefined;
  } catch {
    return undefined;
  }
}

async function print(
  file: string,
  request: ReceivedRequest,
  reviewed: Review,
  isIdempotent: boolean | null,
  format: ReviewFlags['format'],
): Promise<void> {
  const { allowed, message, policy, failed, changed, outcomes } = reviewed;
  const task = await changes('task', request.task, reviewed.task);
  const config = await changes('skypilot_config', request.skypilotConfig, reviewed.skypilotConfig.toDict());
  if (format === 'json') {
    const diff = { task, skypilot_config: config };
    printJson({ file, allowed, message, policy, failed, changed, idempotent: isIdempotent, outcomes, diff });
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
  if (isIdempotent === false) {
    process.stderr.write('error: the policies change their own answer: they are not idempotent\n');
  }
}

/** A unified diff without secrets; empty when nothing is changed. */
async function changes(name: string, before: ReceivedRequest['task'], after: unknown): Promise<string> {
  const { createTwoFilesPatch } = await import('diff');
  const { withoutSecrets } = await import('../skypilot/secrets.ts');
  const changed = before.with(after);
  if (changed === before) {
    return '';
  }
  const [from, to] = [before, changed].map((one) => one.with(withoutSecrets(one.value)).format());
  const patch = createTwoFilesPatch(
    name,
    `${name}, as the policies leave it`,
    from ?? '',
    to ?? '',
    undefined,
    undefined,
    {
      context: 3,
    },
  );
  // Without the line that stands for the head of a mail.
  return patch.replace(/^=+\n/, '');
}

function answerOf({ allowed, failed, changed }: Review['outcomes'][number]): string {
  if (failed) {
    return 'failed';
  }
  return !allowed ? 'rejected' : changed ? 'changed' : 'allowed';
}

function exitCode({ allowed, failed }: Review, isIdempotent: boolean | null): number {
  if (failed || isIdempotent === false) {
    return ExitCode.failed;
  }
  return allowed ? ExitCode.ok : ExitCode.rejected;
}
