/**
 * The thread of the decision store in a file: SQLite blocks the calling thread, and the thread that decides
 * about leases must not wait. A crash of the process loses no committed decisions; a power failure may lose
 * the last moments.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { type Wait, withinDeadline } from '../../base/deadline.ts';
import { errorText } from '../../base/errors.ts';
import { SqliteDatabase } from '../../ledger/storage/sqlite.ts';
import { schemaMistake } from './open.ts';
import { DecisionTable } from './table.ts';
import {
  type ThreadAnswer,
  type ThreadMethods,
  type ThreadQuestion,
  type ThreadStart,
  threadError,
} from './thread.ts';

const { file, replica } = workerData as ThreadStart;

interface Opened {
  readonly database: SqliteDatabase;
  readonly table: DecisionTable;
}

let opened: Opened | undefined;

/** A file that cannot be opened now is retried with the next call. */
function open(): Opened {
  if (opened === undefined) {
    const database = new SqliteDatabase(file, 'normal');
    opened = { database, table: new DecisionTable(database, replica) };
  }
  return opened;
}

async function verify(): Promise<string | undefined> {
  try {
    open();
  } catch (thrown) {
    return `${file} cannot be opened: ${errorText(thrown)}`;
  }
  return schemaMistake(open().database, { dialect: 'sqlite', file });
}

async function close(): Promise<void> {
  await opened?.table.close();
  opened = undefined;
}

function perform({ method, given }: ThreadQuestion, wait: Wait): Promise<unknown> {
  switch (method) {
    case 'verify':
      return verify();
    case 'close':
      return close();
    default: {
      const { table }: { readonly table: Omit<ThreadMethods, 'verify'> } = open();
      const ask = table[method] as (...all: readonly unknown[]) => Promise<unknown>;
      return ask.call(table, ...given, wait);
    }
  }
}

parentPort?.on('message', async (question: ThreadQuestion) => {
  const { id, milliseconds } = question;
  const answer = (given: ThreadAnswer) => parentPort?.postMessage(given);
  try {
    answer({
      id,
      result: await withinDeadline(milliseconds / 1000, async (deadline) => perform(question, deadline)),
    });
  } catch (thrown) {
    answer({ id, error: threadError(thrown) });
  }
});
