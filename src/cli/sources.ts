/** The flags that say where the configuration is, the same for every command that reads one. */
import { type Command, Option } from 'commander';
import type { ConfigSources } from '../config/sources.ts';
import type { LogLevel } from '../logger.ts';

export interface SourceFlags {
  readonly configFile?: readonly string[];
  readonly configDir?: readonly string[];
  readonly config?: readonly string[];
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const satisfies LogLevel[];

const repeatable = (value: string, before: readonly string[] = []) => [...before, value];

export function addSourceFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--config-file <path>',
        "A file of the server's configuration; repeatable, a later one wins. Default: $BLAZAR_ENFORCEMENT_CONFIG, else /etc/blazar/blazar.conf.",
      ).argParser(repeatable),
    )
    .addOption(
      new Option(
        '--config-dir <folder>',
        'A folder whose *.conf and *.yaml files are read after the files, sorted by name; repeatable.',
      ).argParser(repeatable),
    )
    .addOption(
      new Option(
        '--config <section.option=value>',
        'Sets one option, over files and environment, with a value in YAML; repeatable. Or one file with options.',
      ).argParser(repeatable),
    );
}

export function sourcesOf(flags: SourceFlags): ConfigSources {
  return { configFiles: flags.configFile, configDirs: flags.configDir, config: flags.config };
}

/** `--format`, with the formats that a command knows; the first is the default. */
export function formatFlag(...formats: [string, ...string[]]): Option {
  return new Option('--format <format>', 'How to print it.').choices(formats).default(formats[0]);
}

/** What is written to standard error, as JSON lines. */
export function logLevelFlag(level: LogLevel): Option {
  return new Option('--log-level <level>', 'What is logged, as JSON lines on standard error.')
    .choices(LOG_LEVELS)
    .default(level);
}
