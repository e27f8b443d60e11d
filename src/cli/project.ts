/** `project`: prints projects of a service. For the ledger itself: `budget`, `ledger` and `decisions`. */
import { Command, Option } from 'commander';
import { requireEndpoint } from './common/endpoint.ts';
import { formatFlag, wholeNumber } from './common/sources.ts';
import type { DecisionsFlags, Flags, ListFlags } from './project/answers.ts';

/** Rows are held in memory. */
const MAX_LIMIT = 10_000;

export function projectCommand(): Command {
  return new Command('project')
    .description('Ask a service for the projects that you may see: budgets, leases, decisions.')
    .addCommand(
      requireEndpoint(
        new Command('list').description('Print projects with leases or budgets, and what is left.'),
      )
        .option('--search <text>', 'Only projects whose id contains this text, whatever the case.')
        .addOption(formatFlag('table', 'json'))
        .action(async (flags: ListFlags) => (await import('./project/answers.ts')).list(flags)),
    )
    .addCommand(
      requireEndpoint(
        new Command('show').description(
          'Print the budgets of a project that are in force, and its newest pending and active leases.',
        ),
      )
        .argument('<project>', 'The project: its id, or name@domain.')
        .addOption(formatFlag('table', 'json'))
        .action(async (id: string, flags: Flags) => (await import('./project/answers.ts')).show(id, flags)),
    )
    .addCommand(
      requireEndpoint(
        new Command('decisions').description(
          'Print what was decided about leases of a project, newest first.',
        ),
      )
        .argument('<project>', 'The project: its id, or name@domain.')
        .addOption(
          new Option(
            '--outcome <outcome>',
            'Only decisions with this outcome; refused = rejected and failed.',
          ).choices(['allowed', 'refused', 'rejected', 'failed']),
        )
        .option('--limit <number>', 'Maximum number of decisions.', wholeNumber('--limit', 1, MAX_LIMIT), 20)
        .addOption(formatFlag('table', 'json'))
        .action(async (id: string, flags: DecisionsFlags) =>
          (await import('./project/answers.ts')).decisions(id, flags),
        ),
    );
}
