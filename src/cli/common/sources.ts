/** The flags for configuration sources, for all commands that read the configuration. */
import { Command, Option } from 'commander';
import type { LogLevel } from '../../base/logger.ts';
import type { ConfigSources } from '../../config/sources.ts';
import { toInstant } from '../../lease/dates.ts';
import { UsageError } from './output.ts';

export interface SourceFlags {
  readonly configFile?: readonly string[];
  readonly configDir?: readonly string[];
  readonly config?: readonly string[];
}

export interface FormatFlags extends SourceFlags {
  readonly format: 'table' | 'json';
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const satisfies LogLevel[];

/** Parses a repeatable flag. */
export function repeatable(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

export function wholeNumber(flag: string, least: number, most: number) {
  return (text: string): number => {
    const number = /^-?\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (!(number >= least && number <= most)) {
      throw new UsageError(
        `${flag}: expected a whole number from ${least} to ${most}, got ${JSON.stringify(text)}`,
      );
    }
    return number;
  };
}

export function addSourceFlags(command: Command): Command {
  return command
    .option(
      '--config-file <path>',
      'Configuration file of the server; repeatable, later files override earlier ones. Default: $BLAZAR_ENFORCEMENT_CONFIG, else /etc/blazar/blazar.conf.',
      repeatable,
    )
    .option(
      '--config-dir <folder>',
      'Folder whose *.conf and *.yaml files are read after the files, sorted by name; repeatable.',
      repeatable,
    )
    .option(
      '--config <section.option=value>',
      'Set an option to a YAML value, which overrides files and environment; repeatable. Or the path of one file.',
      repeatable,
    );
}

export function sourceCommand(name: string, description: string): Command {
  return addSourceFlags(new Command(name).description(description));
}

export function sourcesOf(flags: SourceFlags): ConfigSources {
  return { configFiles: flags.configFile, configDirs: flags.configDir, config: flags.config };
}

/** `--format` with the formats of a command; the first is the default. */
export function formatFlag(...formats: [string, ...string[]]): Option {
  return new Option('--format <format>', 'Output format.').choices(formats).default(formats[0]);
}

export function logLevelFlag(level: LogLevel): Option {
  return new Option('--log-level <level>', 'Verbosity of the log, which is JSON lines on standard error.')
    .choices(LOG_LEVELS)
    .default(level);
}

const UNIT_SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;
const DAY_MS = UNIT_SECONDS.d * 1000;
/** Midnight in UTC, in days from the current day. */
const NAMED_DAYS: Readonly<Record<string, number>> = { today: 0, yesterday: -1 };

/** For the help text of a flag that `parseTime` reads. */
export const TIME_FORMS =
  'a date in ISO 8601, today, yesterday (midnight UTC), or a duration before now: 90s, 30m, 24h, 7d';

/**
 * A point in time, in milliseconds since 1970. `now`: the time to count from, in milliseconds.
 *
 * @throws UsageError that names the flag
 */
export function parseTime(flag: string, text: string, now = Date.now()): number {
  const seconds = secondsIn(text);
  if (seconds !== undefined) {
    return now - seconds * 1000;
  }
  const days = Object.hasOwn(NAMED_DAYS, text) ? NAMED_DAYS[text] : undefined;
  if (days !== undefined) {
    return (Math.floor(now / DAY_MS) + days) * DAY_MS;
  }
  const instant = toInstant(text);
  if (instant === undefined) {
    throw new UsageError(`${flag}: expected ${TIME_FORMS}, got ${JSON.stringify(text)}`);
  }
  return Number(instant) / 1000;
}

/** The times of `--since` and `--until`, counted from the same moment. @throws UsageError that names the flag */
export function periodOf({ since, until }: { readonly since?: string; readonly until?: string }) {
  const now = Date.now();
  return {
    since: since === undefined ? undefined : parseTime('--since', since, now),
    until: until === undefined ? undefined : parseTime('--until', until, now),
  };
}

/**
 * A duration in seconds: `90s`, `30m`, `24h`, `7d`, or a whole number. `most`: the maximum, in seconds.
 *
 * @throws UsageError that names the flag
 */
export function parseDuration(flag: string, text: string, most: number): number {
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : secondsIn(text);
  if (seconds === undefined || seconds > most) {
    throw new UsageError(
      `${flag}: expected a duration such as 90s, 30m, 24h or 7d of at most ${most} seconds, got ${JSON.stringify(text)}`,
    );
  }
  return seconds;
}

function secondsIn(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS];
}
