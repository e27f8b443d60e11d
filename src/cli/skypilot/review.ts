/** `skypilot review`: sends a request to admin policies, without SkyPilot. */

import { existsSync } from 'node:fs';
import { Command } from 'commander';
import { inTime, withinDeadline } from '../../base/deadline.ts';
import type { Problem } from '../../base/errors.ts';
import { createLogger, type LogLevel } from '../../base/logger.ts';
import { type ConfigSources, DEFAULT_CONFIG_FILE, SERVER_VARIABLE } from '../../config/sources.ts';
import type { Review } from '../../skypilot/policies/policy-chain.ts';
import { ExitCode, onOneLine, printProblems, printWarnings, UsageError } from '../common/output.ts';
import { addSourceFlags, formatFlag, logLevelFlag, type SourceFlags, sourcesOf } from '../common/sources.ts';
import { exitWhenWritten } from '../common/standard-streams.ts';
import { addRequestFlags, type RequestFlags, readRequests } from './requests.ts';
import { isIdempotent, printReview, type Reviewer } from './review-output.ts';

interface ReviewFlags extends SourceFlags, RequestFlags {
  readonly format: 'diff' | 'json';
  readonly checkIdempotence?: boolean;
  readonly against?: string;
  readonly caFile?: string;
  readonly logLevel: LogLevel;
}

const MORE_HELP = `
A task is sent as SkyPilot sends it: num_nodes, file_mounts and volumes have their defaults; infra, accelerators,
alternatives, autostop, image_id and the like have one form; config moves into resources._cluster_config_overrides;
_user_specified_yaml has what was written; variables are replaced in file_mounts, workdir, volumes and service. Left as
written: accelerators by memory, storages, the contents of service, logins to registries. The configuration gets
active_workspace. A request body is sent as it is.

With --against, a running service is asked, as SkyPilot asks it: the token is in the address, as a password or as
?token=, or in $NETRC or ~/.netrc, which counts before the address. It has 30 seconds. 400 is a rejection; any other
answer but a changed request is a failure. Redirects are followed on the same host for 307 and 308 only,
and never with a token. Proxies are not used.

Examples:
  blazar-enforcement skypilot review task.yaml --config-file policy-service.conf --check-idempotence
  blazar-enforcement skypilot review task.yaml --user 0a1b2c3d:alice --idle-minutes 30 --down
  blazar-enforcement skypilot review task.yaml --against https://policy.example.org/skypilot/admin-policy`;

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
    .option(
      '--against <url>',
      'Ask the service at this address, the admin_policy of SkyPilot, instead of the policies of a configuration.',
    )
    .option('--ca-file <path>', 'With --against: the authorities to trust, in PEM.');
  return addSourceFlags(addRequestFlags(command).addOption(logLevelFlag('warn')))
    .addHelpText('after', MORE_HELP)
    .action(review);
}

async function review(file: string, flags: ReviewFlags): Promise<void> {
  const { answered, haveOneConfiguration } = await import('../../skypilot/review.ts');
  const { headingOf } = await import('../../skypilot/task/pipeline.ts');
  const reviewer = await reviewerOf(flags);
  try {
    const { requests, problems } = await readRequests(file, flags, reviewer.maxBytes);
    const reviews: Review[] = [];
    let code = reportHeader(problems, reviewer.validation);
    // Reviews the remaining tasks even after a rejection, because SkyPilot sends one request per task.
    for (const { request, task, places } of requests) {
      const reviewed = await reviewer.review(request, places);
      const again =
        flags.checkIdempotence === true && reviewed.allowed
          ? await reviewer.review(answered(request, reviewed))
          : null;
      if (flags.format !== 'json' && task !== null) {
        process.stdout.write(`${task.number === 1 ? '' : '\n'}${onOneLine(headingOf(task))}\n`);
      }
      await printReview(file, { request, task }, reviewed, again, flags.format);
      code = Math.max(code, exitCode(reviewed, again));
      reviews.push(reviewed);
    }
    if (!haveOneConfiguration(reviews)) {
      code = ExitCode.failed;
      process.stderr.write(
        'error: the policies return different configurations for the tasks, and SkyPilot rejects such a pipeline\n',
      );
    }
    process.exitCode = code;
  } finally {
    await reviewer.close();
  }
  // A policy may leave timers and connections open, especially one that never answered.
  exitWhenWritten();
}

async function reviewerOf(flags: ReviewFlags): Promise<Reviewer> {
  const { against, caFile, configFile, configDir, config } = flags;
  if (against === undefined) {
    if (caFile !== undefined) {
      throw new UsageError('--ca-file applies to --against');
    }
    return localReviewer(flags);
  }
  if ([configFile, configDir, config].some((flag) => flag !== undefined)) {
    throw new UsageError(
      '--against asks a service, which has its own configuration: leave out --config-file and the like',
    );
  }
  const { remoteReviewer } = await import('./against.ts');
  return remoteReviewer(against, caFile);
}

/** SkyPilot itself rejects a file with a wrong header. Here, `config_validation` decides, as for a task. */
function reportHeader(problems: readonly Problem[], validation: Reviewer['validation']): number {
  if (validation === 'ignore') {
    return ExitCode.ok;
  }
  const found = problems.map((problem) =>
    validation === 'warning' ? ({ ...problem, severity: 'warning' } as const) : problem,
  );
  printProblems(found);
  return found.some(({ severity }) => severity === 'error') ? ExitCode.rejected : ExitCode.ok;
}

function exitCode({ allowed, failed }: Review, again: Review | null): number {
  if (failed || (again !== null && !isIdempotent(again))) {
    return ExitCode.failed;
  }
  return allowed ? ExitCode.ok : ExitCode.rejected;
}

/** The policies of `[skypilot] admin_policies`. @throws ConfigurationError @throws UsageError */
async function localReviewer(flags: SourceFlags & { readonly logLevel: LogLevel }): Promise<Reviewer> {
  const { requireConfiguration, sectionOf } = await import('../../enforcement/configuration.ts');
  const { SECTIONS } = await import('../../server/configuration/sections.ts');
  const { skypilotSection } = await import('../../skypilot/section.ts');
  const { serviceSection } = await import('../../server/configuration/options.ts');
  const { PolicyChain } = await import('../../skypilot/policies/policy-chain.ts');
  const configuration = await requireConfiguration(reviewSources(flags), SECTIONS);
  // Warnings about filters are irrelevant here.
  printWarnings(configuration.problems.filter(({ section }) => section !== 'enforcement'));
  const { deadline: seconds, config_validation: validation } = sectionOf(configuration, skypilotSection);
  const { body_limit: maxBytes } = sectionOf(configuration, serviceSection);
  const policies = await PolicyChain.fromConfiguration(configuration, {
    logger: createLogger(flags.logLevel),
  });
  if (policies.isEmpty) {
    throw new UsageError(
      '[skypilot] admin_policies names no policy; name a configuration with --config-file',
    );
  }
  return {
    maxBytes,
    validation,
    review: (request, places) =>
      withinDeadline(seconds, (deadline) => policies.review(request, { deadline, places })),
    // The output does not wait for a policy that does not close.
    close: () => withinDeadline(seconds, (deadline) => inTime(policies.close(), deadline)).catch(() => {}),
  };
}

/**
 * A review enforces nothing, so unlike other commands it does not need the server's file if policies are configured
 * elsewhere.
 */
export function reviewSources(flags: SourceFlags): ConfigSources {
  const isNamed = flags.configFile !== undefined || (process.env[SERVER_VARIABLE] ?? '') !== '';
  return { ...sourcesOf(flags), ...(!isNamed && !existsSync(DEFAULT_CONFIG_FILE) && { configFiles: [] }) };
}
