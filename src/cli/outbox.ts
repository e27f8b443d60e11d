/** `outbox`: prints undelivered messages to external services, and retries or discards them. */
import { Command, Option } from 'commander';
import { formatInstant } from '../lease/dates.ts';
import type { OutboxReport } from '../ledger/outbox/reports.ts';
import { onOneLine, printFacts, printItems, printJson, UsageError } from './common/output.ts';
import {
  type FormatFlags,
  formatFlag,
  type SourceFlags,
  sourceCommand,
  wholeNumber,
} from './common/sources.ts';
import { authorOf, NO_DEADLINE, withLedger } from './ledger/access.ts';

interface ListFlags extends FormatFlags {
  readonly state?: 'waiting' | 'dead' | 'discarded';
  readonly project?: string;
  readonly limit: number;
}

interface DecideFlags extends SourceFlags {
  readonly all?: boolean;
  readonly who?: string;
  readonly reason?: string;
}

/** Rows are held in memory. */
const MAX_LIMIT = 100_000;

export function outboxCommand(): Command {
  return new Command('outbox')
    .description('Manage the outbox: messages to external services that are not delivered yet.')
    .addCommand(
      sourceCommand('list', 'Print messages, oldest first.')
        .addOption(
          new Option('--state <state>', 'Only messages in this state. Default: waiting and dead.').choices([
            'waiting',
            'dead',
            'discarded',
          ]),
        )
        .option('--project <id>', "Only messages about this project's leases.")
        .option('--limit <number>', 'Maximum number of messages.', wholeNumber('--limit', 1, MAX_LIMIT), 100)
        .addOption(formatFlag('table', 'json'))
        .action(list),
    )
    .addCommand(
      sourceCommand('show', 'Print a message with its body.')
        .argument('<message>', 'The number of the message, from outbox list.')
        .addOption(formatFlag('table', 'json'))
        .action(show),
    )
    .addCommand(
      decision('retry', 'Retry messages now, dead ones included, for the whole maximum age.')
        .option('--all', 'Every message that is waiting or dead.')
        .option('--reason <text>', 'The reason, for outbox list.')
        .action(retry),
    )
    .addCommand(
      decision('discard', 'Never send messages again. They stay in outbox list --state discarded.')
        .option('--all', 'Every dead message.')
        .requiredOption('--reason <text>', 'The reason, for outbox list.')
        .action(discard),
    );
}

function decision(name: string, description: string): Command {
  return sourceCommand(name, description)
    .argument('[message...]', 'The numbers of the messages, from outbox list.')
    .option('--who <name>', 'Who makes the change. Default: the system user.');
}

async function list(flags: ListFlags): Promise<void> {
  await withLedger(flags, async ({ ledger }) => {
    const { listOutbox } = await import('../ledger/outbox/reports.ts');
    const { state, project: projectId, limit } = flags;
    const messages = await listOutbox(ledger, { state, projectId, limit }, NO_DEADLINE);
    await printItems(messages, flags.format, messageObject, {
      MESSAGE: ({ id }) => id,
      STATE: (message) => message.state,
      FILTER: ({ sender }) => sender,
      PROJECT: ({ project_id }) => project_id,
      LEASE: ({ lease_id }) => lease_id,
      WRITTEN: ({ written_at }) => formatInstant(written_at),
      ATTEMPTS: ({ attempts }) => attempts,
      ERROR: ({ error }) => error,
    });
  });
}

async function show(text: string, flags: FormatFlags): Promise<void> {
  const id = numberOf(text);
  await withLedger(flags, async ({ ledger }) => {
    const { outboxMessage } = await import('../ledger/outbox/reports.ts');
    const message = await outboxMessage(ledger, id, NO_DEADLINE);
    if (message === undefined) {
      throw unknownMessages([id]);
    }
    const facts = messageObject(message);
    if (flags.format === 'json') {
      printJson({ ...facts, body: message.body });
      return;
    }
    await printFacts(['MESSAGE', String(id)], facts);
    process.stdout.write(`\n${onOneLine(message.body)}\n`);
  });
}

async function retry(texts: readonly string[], flags: DecideFlags): Promise<void> {
  const which = chosen(texts, flags);
  await withLedger(flags, async ({ ledger }) => {
    const { retryMessages } = await import('../ledger/outbox/reports.ts');
    report(await retryMessages(ledger, which, authorOf(flags), NO_DEADLINE), 'to be tried again');
  });
}

async function discard(texts: readonly string[], flags: DecideFlags): Promise<void> {
  const which = chosen(texts, flags);
  await withLedger(flags, async ({ ledger }) => {
    const { discardMessages } = await import('../ledger/outbox/reports.ts');
    report(await discardMessages(ledger, which, authorOf(flags), NO_DEADLINE), 'discarded');
  });
}

function report(decided: import('../ledger/outbox/reports.ts').Decided, what: string): void {
  if ('unknown' in decided) {
    throw unknownMessages(decided.unknown);
  }
  process.stdout.write(`${decided.changed} ${decided.changed === 1 ? 'message' : 'messages'} ${what}\n`);
}

function unknownMessages(ids: readonly bigint[]): UsageError {
  return new UsageError(
    `the outbox has no message ${ids.join(', ')} that is not delivered or discarded; outbox list prints its messages`,
  );
}

function chosen(texts: readonly string[], { all = false }: DecideFlags): readonly bigint[] | 'all' {
  if (all === texts.length > 0) {
    throw new UsageError('expected the numbers of messages, or --all');
  }
  return all ? 'all' : [...new Set(texts.map(numberOf))];
}

function numberOf(text: string): bigint {
  if (!/^\d{1,18}$/.test(text)) {
    throw new UsageError(`expected the number of a message, got ${JSON.stringify(text)}`);
  }
  return BigInt(text);
}

function messageObject(message: OutboxReport) {
  const { id, state, sender, project_id, lease_id, written_at, attempts, next_at } = message;
  const { error, settled_at, who, reason } = message;
  return {
    message: Number(id),
    state,
    filter: sender,
    project_id,
    lease_id,
    written_at: formatInstant(written_at),
    attempts: Number(attempts),
    next_attempt_at: state === 'waiting' && next_at > 0n ? formatInstant(next_at) : null,
    error,
    settled_at: settled_at === null ? null : formatInstant(settled_at),
    who,
    reason,
  };
}
