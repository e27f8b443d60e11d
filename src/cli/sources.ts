/** The flags for the sources of the configuration, which every command that reads it has. */
import { type Command, Option } from 'commander';
import type { LogLevel } from '../base/logger.ts';
import type { ConfigSources } from '../config/sources.ts';

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
        'Configuration file of the server; repeatable, later files override earlier ones. Default: $BLAZAR_ENFORCEMENT_CONFIG, else /etc/blazar/blazar.conf.',
      ).argParser(repeatable),
    )
    .addOption(
      new Option(
        '--config-dir <folder>',
        'Folder whose *.conf and *.yaml files are read after the files, sorted by name; repeatable.',
      ).argParser(repeatable),
    )
    .addOption(
      new Option(
        '--config <section.option=value>',
        'Set an option to a YAML value, which overrides files and environment; repeatable. Or the path of one file.',
      ).argParser(repeatable),
    );
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
