/** The flags that say which decisions of a log are meant. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { DecisionOutcome, DecisionRecord } from '../decisions/record.ts';
import { OPERATIONS } from '../decisions/recorded-operation.ts';
import { isSelected, type Selection } from '../decisions/selection.ts';
import { toInstant } from '../lease/dates.ts';
import { UsageError } from './output.ts';

export interface SelectionFlags {
  readonly project?: readonly string[];
  readonly user?: readonly string[];
  readonly filter?: readonly string[];
  readonly outcome?: readonly DecisionOutcome[];
  readonly operation?: readonly DecisionRecord['operation'][];
  readonly since?: string;
}

const OUTCOMES = [
  'allowed',
  'changed',
  'rejected',
  'failed',
  'exempt',
  'audit',
  'allowed-on-error',
] as const satisfies DecisionOutcome[];
const AGE_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

export function addSelectionFlags(command: Command): Command {
  const repeatable = (value: string, before: readonly string[] = []) => [...before, value];
  return command
    .addOption(new Option('--project <id>', 'Only of this project; repeatable.').argParser(repeatable))
    .addOption(new Option('--user <id>', 'Only of this user; repeatable.').argParser(repeatable))
    .addOption(
      new Option('--filter <name>', 'Only where this filter decided; repeatable.').argParser(repeatable),
    )
    .addOption(
      new Option(
        '--outcome <outcome>',
        `Only with this outcome; repeatable: ${OUTCOMES.join(', ')}.`,
      ).argParser(oneOf(OUTCOMES)),
    )
    .addOption(
      new Option(
        '--operation <operation>',
        `Only this operation; repeatable: ${OPERATIONS.join(', ')}.`,
      ).argParser(oneOf(OPERATIONS)),
    )
    .addOption(
      new Option(
        '--since <when>',
        'Only from then on: a date in ISO 8601, or how long ago: 90s, 30m, 24h, 7d.',
      ),
    );
}

/** Whether a decision is meant. @throws UsageError */
export function selector(flags: SelectionFlags): (record: DecisionRecord) => boolean {
  const selection: Selection = {
    projects: flags.project,
    users: flags.user,
    filters: flags.filter,
    outcomes: flags.outcome,
    operations: flags.operation,
    since: flags.since === undefined ? undefined : parseSince(flags.since),
  };
  return (record) => isSelected(record, selection);
}

/** In milliseconds since 1970. */
function parseSince(text: string): number {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) {
    return Date.now() - Number(count) * AGE_MS[unit as keyof typeof AGE_MS];
  }
  const instant = toInstant(text);
  if (instant === undefined) {
    throw new UsageError(
      `--since: expected a date in ISO 8601, or a time such as 90s, 30m, 24h or 7d, got ${JSON.stringify(text)}`,
    );
  }
  return Number(instant) / 1000;
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
