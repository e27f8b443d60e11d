/** The flags that select decisions of a log. */
import { type Command, InvalidArgumentError } from 'commander';
import {
  type DecisionOutcome,
  type DecisionRecord,
  OPERATIONS,
  SIDES,
  type Side,
} from '../../decisions/record.ts';
import { isSelected, type Selection } from '../../decisions/selection.ts';
import { periodOf, repeatable, TIME_FORMS } from '../common/sources.ts';

export interface SelectionFlags {
  readonly project?: readonly string[];
  readonly user?: readonly string[];
  readonly filter?: readonly string[];
  readonly outcome?: readonly DecisionOutcome[];
  readonly operation?: readonly DecisionRecord['operation'][];
  readonly side?: readonly Side[];
  readonly since?: string;
  readonly until?: string;
}

const OUTCOMES = [
  'allowed',
  'changed',
  'rejected',
  'failed',
  'exempt',
  'audit',
  'allowed-on-error',
  'bypassed',
] as const satisfies DecisionOutcome[];

export function addSelectionFlags(command: Command): Command {
  return command
    .option('--project <id>', 'Only this project, by id or name@domain; repeatable.', repeatable)
    .option('--user <id>', 'Only this user, by id or name@domain; repeatable.', repeatable)
    .option(
      '--filter <name>',
      'Only where this filter did more than allow: it refused, failed, changed something, or would have refused (audit_filters); repeatable.',
      repeatable,
    )
    .option('--outcome <outcome>', `Only this outcome; repeatable: ${OUTCOMES.join(', ')}.`, oneOf(OUTCOMES))
    .option(
      '--operation <operation>',
      `Only this operation; repeatable: ${OPERATIONS.join(', ')}.`,
      oneOf(OPERATIONS),
    )
    .option('--side <side>', `Only requests of SkyPilot from this side: ${SIDES.join(', ')}.`, oneOf(SIDES))
    .option('--since <time>', `Only from this time on: ${TIME_FORMS}.`)
    .option('--until <time>', 'Only before this time, in the same forms.');
}

/** Returns whether a decision is selected. @throws UsageError */
export function selector(flags: SelectionFlags): (record: DecisionRecord) => boolean {
  const selection = selectionOf(flags);
  return (record) => isSelected(record, selection);
}

/** @throws UsageError */
export function selectionOf(flags: SelectionFlags): Selection {
  return {
    projects: flags.project,
    users: flags.user,
    filters: flags.filter,
    outcomes: flags.outcome,
    operations: flags.operation,
    sides: flags.side,
    ...periodOf(flags),
  };
}

function oneOf<Value extends string>(values: readonly Value[]) {
  return (text: string, before: readonly Value[] = []): Value[] => {
    const value = values.find((candidate) => candidate === text);
    if (value === undefined) {
      throw new InvalidArgumentError(`Allowed choices are ${values.join(', ')}.`);
    }
    return [...before, value];
  };
}
