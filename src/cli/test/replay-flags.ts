/** The flags of `test` that are about decision logs. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { UsageError } from '../output.ts';
import { TIME_FORMS } from '../times.ts';

export interface LogFlags {
  readonly replay?: readonly string[];
  readonly record?: readonly string[];
  readonly since?: string;
  readonly until?: string;
  readonly project?: readonly string[];
  readonly user?: readonly string[];
  readonly examples: number;
  readonly assumeRecorded?: boolean;
  readonly allowUndecidable?: boolean;
  readonly out: string;
  readonly max: number;
  readonly force?: boolean;
}

/** Flags that are about cases only. */
const OF_CASES = ['watch', 'coverage', 'threshold', 'filter'];
/** Flags that are about logs only. */
const OF_LOGS = ['since', 'until', 'project', 'user', 'assumeRecorded', 'allowUndecidable', 'force'] as const;

/** @throws UsageError if a flag would have no effect */
export function isAboutLogs(flags: LogFlags): boolean {
  const isAbout = flags.replay !== undefined || flags.record !== undefined;
  const idle = OF_LOGS.find((name) => flags[name] !== undefined);
  if (!isAbout && idle !== undefined) {
    const flag = idle.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    throw new UsageError(`--${flag}: expected --replay or --record with it`);
  }
  return isAbout;
}

export function addLogFlags(command: Command): Command {
  const repeatable = (value: string, before: readonly string[] = []) => [...before, value];
  return command
    .addOption(
      new Option(
        '--replay <log>',
        'Say which decisions of this decision log the configuration would decide otherwise; repeatable; a pattern such as log*, or - for standard input. Exit code: 0 all were judged and none differs, 1 some differ or cannot be judged, 2 a mistake, 3 a filter or rule failed.',
      )
        .argParser(repeatable)
        .conflicts(['record', ...OF_CASES]),
    )
    .addOption(
      new Option(
        '--record <log>',
        'Write cases of the decisions of this decision log; repeatable, as above.',
      ).argParser(repeatable),
    )
    .option('--since <time>', `Of logs, only decisions from this time on: ${TIME_FORMS}.`)
    .option('--until <time>', 'Of logs, only decisions before this time, in the same forms.')
    .addOption(
      new Option(
        '--project <project>',
        'Of logs, only decisions of this project: its id, or name@domain where the log has names; repeatable.',
      ).argParser(repeatable),
    )
    .addOption(
      new Option(
        '--user <user>',
        'Of logs, only decisions about this user: the id, or name@domain where the log has names; repeatable.',
      ).argParser(repeatable),
    )
    .addOption(
      new Option('--examples <count>', 'With --replay: how many examples of each difference are shown.')
        .argParser(countUpTo(10_000))
        .default(10),
    )
    .option(
      '--assume-recorded',
      'With --replay: filters that cannot be asked again, such as those of the ledger, say what the log says that they said.',
    )
    .option(
      '--allow-undecidable',
      'With --replay: exit with 0 even if some decisions could not be judged again.',
    )
    .option('--out <folder>', 'With --record: where cases are written.', 'cases/recorded')
    .addOption(
      new Option('--max <count>', 'With --record: how many cases are written.')
        .argParser(countUpTo(10_000))
        .default(1000),
    )
    .option('--force', 'With --record: replace cases that say something else.');
}

function countUpTo(most: number): (text: string) => number {
  return (text) => {
    if (!/^\d{1,5}$/.test(text) || Number(text) > most) {
      throw new InvalidArgumentError(`Expected a whole number from 0 to ${most}.`);
    }
    return Number(text);
  };
}
