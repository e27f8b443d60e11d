/**
 * The thread that keeps decisions in a file: SQLite works within the thread that calls it, and the one that decides about leases must not
 * wait for it. A crash of the process loses nothing that was committed; a loss of power may lose the last moments.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { type Wait, withinDeadline } from '../../base/deadline.ts';
import { errorText } from '../../base/errors.ts';
import { SqliteDatabase } from '../../ledger/storage/sqlite.ts';
import { DecisionTable } from './table.ts';
import {
  type ThreadAnswer,
  type ThreadQuestion,
  type ThreadResults,
  type ThreadStart,
  type ThreadTask,
  threadError,
} from './thread-messages.ts';
import { schemaMistake } from './verify.ts';

const { file, replica } = workerData as ThreadStart;

interface Opened {
  readonly database: SqliteDatabase;
  readonly table: DecisionTable;
}

let opened: Opened | undefined;

/** A file that cannot be opened now is tried again with the next task. */
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
    return `${file} cannot be opened (${errorText(thrown)}); blazar-enforcement ledger upgrade creates a ledger`;
  }
  return schemaMistake(open().database, { dialect: 'sqlite', file });
}

async function perform(task: ThreadTask, wait: Wait): Promise<ThreadResults[keyof ThreadResults]> {
  switch (task.kind) {
    case 'verify':
      return verify();
    case 'write':
      await open().table.write(task.rows, wait);
      return undefined;
    case 'has':
      return open().table.has(task.row, wait);
    case 'search':
      return open().table.search(task.query, wait);
    case 'newest':
      return open().table.newest(wait);
    case 'trim':
      return open().table.trim(task.retention, wait);
    case 'close':
      await opened?.table.close();
      opened = undefined;
      return undefined;
  }
}

parentPort?.on('message', async ({ id, task, milliseconds }: ThreadQuestion) => {
  const answer = (given: ThreadAnswer) => parentPort?.postMessage(given);
  try {
    answer({ id, result: await withinDeadline(milliseconds / 1000, (deadline) => perform(task, deadline)) });
  } catch (thrown) {
    answer({ id, error: threadError(thrown) });
  }
});
