/** The command line of the bench. */
import { Command, InvalidArgumentError, Option } from 'commander';

export interface Flags {
  readonly only?: readonly string[];
  readonly runs: number;
  readonly requests?: number;
  /** A tag, branch or commit. */
  readonly against?: string;
  readonly format: 'table' | 'json';
  readonly quick?: boolean;
  /** The folder. */
  readonly output?: string;
  readonly write: boolean;
  readonly render?: boolean;
}

export function benchCommand(
  topics: readonly string[],
  measure: (flags: Flags, command: Command) => Promise<void>,
): Command {
  return new Command('bench')
    .description('Measure the performance and compare it with the targets.')
    .addOption(new Option('--only <name...>', 'Measure only these topics.').choices(topics))
    .option('--runs <count>', 'Number of runs.', positiveInteger(9999), 5)
    .option(
      '--requests <count>',
      'Number of requests for memory and fuzz. Default: a million and a hundred thousand.',
      positiveInteger(1_000_000_000),
    )
    .addOption(
      new Option(
        '--against <ref>',
        'Measure everything with the package of this tag, branch or commit too, in turns, and show this package beside it: above 1, this one is better. It is checked out and built in a temporary folder, with the node_modules of this tree if package-lock.json is the same, else with npm ci. A row is worse if its whole spread is below 0.95.',
      )
        .argParser(commitName)
        .conflicts('render'),
    )
    .addOption(new Option('--format <format>', 'Output format.').choices(['table', 'json']).default('table'))
    .option('--output <folder>', 'Folder of performance.md, performance.json and images. Default: docs.')
    .option('--no-write', 'Write no page. Nor do --quick and --requests, without --output.')
    .option('--render', 'Measure nothing: write the page again, from performance.json.')
    .option('--quick', 'One short turn each, to check that everything runs; the numbers are meaningless.')
    .action((flags: Flags, command: Command) => measure(flags, command));
}

function positiveInteger(most: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (!/^[1-9]\d*$/.test(text) || number > most) {
      throw new InvalidArgumentError(`Expected a whole number from 1 to ${most}.`);
    }
    return number;
  };
}

function commitName(text: string, before: string | undefined): string {
  if (before !== undefined) {
    throw new InvalidArgumentError('Expected it once.');
  }
  // Otherwise the next flag would be used if the name is missing.
  if (text === '' || text.startsWith('-')) {
    throw new InvalidArgumentError('Expected a tag, branch or commit.');
  }
  return text;
}
