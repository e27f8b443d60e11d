/** A single filter, with a blazar.conf on disk or options in code, and a clock that the test sets. */
import { expect, onTestFinished } from 'vitest';
import { ConfigurationError, UsageEnforcement } from '../../src/index.ts';
import { configFile, shown } from '../config/helpers.ts';
import { valuesOnly } from '../support/files.ts';
import { recordingLogger } from '../support/logger.ts';

export interface Setup {
  /** Default: `NOW`. */
  readonly now?: () => string;
  /** Audited instead of enforced. */
  readonly audit?: boolean;
  /** The text of a YAML file to use instead of blazar.conf. */
  readonly yaml?: string;
}

/** Half a minute after a full minute, ten days before the captured leases start. */
export const NOW = '2026-11-21T09:00:30.500Z';

/** The first line is line 3 of blazar.conf. */
export function loadFilter(
  name: string,
  lines: readonly string[],
  { now = () => NOW, audit = false, yaml }: Setup = {},
): Promise<UsageEnforcement> {
  const text = ['[enforcement]', `${audit ? 'audit' : 'enabled'}_filters = ${name}`, ...lines].join('\n');
  const file = yaml === undefined ? configFile(text) : configFile(yaml, 'blazar.yaml');
  return UsageEnforcement.load(
    { configFiles: [file], environment: {} },
    { logger: recordingLogger(), clock: { now: () => new Date(now()) } },
  );
}

/** A chain with these options of `[enforcement]`, and of other sections. It is closed when the test is over. */
export async function loadValues(
  enforcement: Readonly<Record<string, unknown>>,
  sections: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {},
  now?: () => string | number,
) {
  const logger = recordingLogger();
  const chain = await UsageEnforcement.load(valuesOnly({ enforcement, ...sections }), {
    logger,
    ...(now && { clock: { now: () => new Date(now()) } }),
  });
  onTestFinished(() => chain.close());
  return { enforcement: chain, logger };
}

/** The errors of such a configuration, with file names instead of paths. */
export async function mistakes(name: string, lines: readonly string[], setup?: Setup): Promise<string[]> {
  try {
    await (await loadFilter(name, lines, setup)).close();
    return [];
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(ConfigurationError);
    return shown((thrown as ConfigurationError).problems, 'error');
  }
}
