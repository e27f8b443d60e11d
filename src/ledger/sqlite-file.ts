/** The file of a ledger and what lies beside it: whether they belong together, and whether it is whole. */

import { type Stats, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import SqliteConnection from 'better-sqlite3';
import { errorText, LedgerUnavailableError } from '../errors.ts';

/** Another process may be mending what a third one has left behind. Only who opens the file waits for that. */
export const MILLISECONDS_TO_OPEN = 5000;
/** The shortest page that SQLite has: its files are whole pages. */
const SHORTEST_PAGE = 512;
/** A file of so many bytes is verified in some milliseconds; a larger one beside the process, which has others to answer. */
const SMALL = 2 * 1024 * 1024;

/** Which files a ledger is in now: other ones of the same names are others, and so is one that something else was written to. */
export function filesOf(file: string, connection: SqliteConnection.Database): string {
  if (!connection.inTransaction) {
    // Makes the log of changes, where there is none yet.
    connection.exec('SELECT 1 FROM sqlite_master LIMIT 1');
  }
  const stats = statSync(file, { throwIfNoEntry: false });
  const changes = statSync(`${file}-wal`, { throwIfNoEntry: false });
  return [stats?.dev, stats?.ino, isWhole(stats), changes?.ino].join();
}

export function isWhole(stats: Stats | undefined): boolean {
  return stats !== undefined && stats.size > 0 && stats.size % SHORTEST_PAGE === 0;
}

/**
 * Whether it is the file that was last written to as a ledger, by the mark in it. One that is not and has a log of changes beside
 * it is refused: SQLite would put into it what was changed in another one. @throws LedgerUnavailableError
 */
export function isMarked(file: string): boolean {
  const changes = statSync(`${file}-wal`, { throwIfNoEntry: false });
  const reader = new SqliteConnection(file, { readonly: true, timeout: MILLISECONDS_TO_OPEN });
  let mark: unknown;
  try {
    const table = reader.prepare("SELECT 1 FROM sqlite_master WHERE name = 'ledger'").get();
    mark = table === undefined ? null : reader.prepare('SELECT file FROM ledger').pluck().get();
  } finally {
    reader.close();
  }
  if (mark === null || mark === undefined) {
    return true;
  }
  if (mark === markOf(file)) {
    return true;
  }
  if (changes !== undefined && changes.size > 0) {
    throw new LedgerUnavailableError(
      `${file}-wal has changes of another file than the one that is there: move it away together with ${file}-shm to go on without them; where both were copied together, sqlite3 ${file} 'PRAGMA wal_checkpoint(TRUNCATE)' puts them in`,
    );
  }
  return false;
}

/** Makes it the one that is written to. A file that can't be written to now is marked another time. */
export function mark(file: string, connection: SqliteConnection.Database): void {
  try {
    connection.prepare('UPDATE ledger SET file = ? WHERE file IS NOT ?').run(markOf(file), markOf(file));
  } catch (thrown) {
    if (!(thrown instanceof SqliteConnection.SqliteError)) {
      throw thrown;
    }
  }
}

/** Moved or copied over another one it has a number of its own. */
function markOf(file: string): string {
  return String(statSync(file).ino);
}

/** Reads all of it. @throws LedgerUnavailableError where it is not whole */
export async function verifyIntegrity(file: string): Promise<void> {
  const found = statSync(file).size <= SMALL ? integrityOf(file) : await integrityBeside(file);
  if (found !== 'ok') {
    throw new LedgerUnavailableError(`the file is damaged: ${found}`);
  }
}

function integrityOf(file: string): string {
  try {
    const reader = new SqliteConnection(file, { readonly: true, timeout: MILLISECONDS_TO_OPEN });
    try {
      return String(reader.pragma('integrity_check(1)', { simple: true }));
    } finally {
      reader.close();
    }
  } catch (thrown) {
    return errorText(thrown);
  }
}

/** The same, as text: the thread has no loader of ours. */
const BESIDE = `
const { parentPort, workerData } = require('node:worker_threads');
const SqliteConnection = require(workerData.driver);
let found;
try {
  const reader = new SqliteConnection(workerData.file, { readonly: true, timeout: workerData.timeout });
  try {
    found = String(reader.pragma('integrity_check(1)', { simple: true }));
  } finally {
    reader.close();
  }
} catch (thrown) {
  found = String(thrown.message);
}
parentPort.postMessage(found);
`;

function integrityBeside(file: string): Promise<string> {
  const driver = createRequire(import.meta.url).resolve('better-sqlite3');
  return new Promise((resolve) => {
    const thread = new Worker(BESIDE, {
      eval: true,
      execArgv: [],
      workerData: { driver, file, timeout: MILLISECONDS_TO_OPEN },
    });
    thread.once('message', (found: unknown) => resolve(String(found)));
    thread.once('error', (thrown: unknown) => resolve(errorText(thrown)));
    thread.once('exit', () => resolve('nobody could tell'));
  });
}
