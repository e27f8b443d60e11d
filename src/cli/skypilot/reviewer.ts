/** Who answers a review: the policies of a configuration, in this process. */
import { existsSync } from 'node:fs';
import { inTime, withinDeadline } from '../../base/deadline.ts';
import { createLogger, type LogLevel } from '../../base/logger.ts';
import { type ConfigSources, DEFAULT_CONFIG_FILE, SERVER_VARIABLE } from '../../config/sources.ts';
import type { Places } from '../../skypilot/config/config-validation.ts';
import type { SkypilotOptions } from '../../skypilot/options.ts';
import type { Review } from '../../skypilot/policies/policy-chain.ts';
import type { ReceivedRequest } from '../../skypilot/request/wire.ts';
import { printWarnings, UsageError } from '../output.ts';
import { type SourceFlags, sourcesOf } from '../sources.ts';

/** Answers requests as SkyPilot would be answered. */
export interface Reviewer {
  /** Maximum size of what is asked about, in bytes. */
  readonly maxBytes: number;
  /** `[skypilot] config_validation`, for what is part of no request. */
  readonly validation: SkypilotOptions['config_validation'];
  /** `places`: where the request was written, for messages. */
  review(request: ReceivedRequest, places?: Places): Promise<Review>;
  close(): Promise<void>;
}

/** The policies of `[skypilot] admin_policies`. @throws ConfigurationError @throws UsageError */
export async function localReviewer(flags: SourceFlags & { readonly logLevel: LogLevel }): Promise<Reviewer> {
  const { requireConfiguration, sectionOf } = await import('../../enforcement/configuration.ts');
  const { SECTIONS } = await import('../../server/configuration/sections.ts');
  const { skypilotSection } = await import('../../skypilot/section.ts');
  const { serviceSection } = await import('../../server/configuration/options.ts');
  const { PolicyChain } = await import('../../skypilot/policies/policy-chain.ts');
  const configuration = await requireConfiguration(reviewSources(flags), SECTIONS);
  // Warnings about filters do not matter here.
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
