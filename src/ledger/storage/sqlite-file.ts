/** Checks the file of a SQLite ledger: its integrity, and whether the write-ahead log belongs to it. */

import { execFile } from 'node:child_process';
import { readFileSync, realpathSync, type Stats, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { z } from 'zod';
import type { Wait } from '../../base/deadline.ts';
import { LedgerContentError, LedgerUnavailableError } from '../../base/errors.ts';
import {
  asSqliteError,
  isSqliteError,
  openSqlite,
  type SqliteConnection,
  SqliteError,
  sqliteModule,
} from './sqlite-driver.ts';

const execute = promisify(execFile);

/** Opening may wait for another process that recovers the file. */
export const MILLISECONDS_TO_OPEN = 5000;
/** SQLite's smallest page: a file consists of whole pages. */
const SHORTEST_PAGE = 512;

/** SQLite keeps changes (-wal) and their index (-shm) beside the file itself, not beside a symbolic link to it. */
export function realPathOf(file: string): string {
  try {
    return realpathSync.native(file);
  } catch {
    return file;
  }
}

/**
 * SQLite keeps changes beside the name by which it opens a file. Processes that use different names do not see
 * the changes of each other, and overwrite them. @throws LedgerUnavailableError
 */
export function verifyName(file: string): void {
  const stats = statSync(file);
  if (stats.isDirectory()) {
    throw new LedgerUnavailableError('it is a folder');
  }
  if (stats.nlink > 1) {
    throw new LedgerUnavailableError(
      `the file has ${stats.nlink} names, and what is recorded by one of them is lost by another: remove the other hard links (find -samefile ${file})`,
    );
  }
  if (mountPoints().includes(realpathSync.native(file))) {
    throw new LedgerUnavailableError(
      'the file is mounted without its folder, where SQLite keeps what was recorded last: mount the folder instead',
    );
  }
}

/** Empty where the system does not say. Source: proc_pid_mountinfo(5). */
function mountPoints(): string[] {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .map((line) =>
        (line.split(' ')[4] ?? '').replace(/\\([0-7]{3})/g, (_, code: string) =>
          String.fromCharCode(Number.parseInt(code, 8)),
        ),
      );
  } catch {
    return [];
  }
}

/** The current files of a ledger. */
export interface Files {
  /** Changes if one of them is replaced. */
  readonly identity: string;
  /** Only grows, except after VACUUM: a shorter file is an earlier one that was copied over it. */
  readonly size: number;
  /** The inode of the index of the changes, which all processes share while they use the file. */
  readonly index: number | undefined;
}

export function filesOf(file: string, realPath: string, connection: SqliteConnection): Files {
  if (!connection.inTransaction) {
    // Creates the write-ahead log if it does not exist.
    connection.exec('SELECT 1 FROM sqlite_master LIMIT 1');
  }
  const stats = statSync(file, { throwIfNoEntry: false });
  return {
    identity: [stats?.dev, stats?.ino, isWhole(stats), inodeOf(`${realPath}-wal`)].join(),
    size: stats?.size ?? 0,
    index: inodeOf(`${realPath}-shm`),
  };
}

function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

export function isWhole(stats: Stats | undefined): boolean {
  return stats !== undefined && stats.size > 0 && stats.size % SHORTEST_PAGE === 0;
}

/**
 * Whether this is the file that was last written to, by the mark in it. Refuses a different file with a
 * write-ahead log: SQLite would apply the changes of another file to it. @throws LedgerUnavailableError
 */
export function isMarked(file: string): boolean {
  const realPath = realPathOf(file);
  const changes = `${realPath}-wal`;
  const size = statSync(changes, { throwIfNoEntry: false })?.size ?? 0;
  const reader = openSqlite(file, { readonly: true, timeout: MILLISECONDS_TO_OPEN });
  let mark: unknown;
  try {
    const tables = reader.prepare("SELECT 1 FROM sqlite_master WHERE name = 'ledger'").all([]);
    const [row] = tables.length === 0 ? [] : reader.prepare('SELECT file FROM ledger').all([]);
    mark = (row as { file: unknown } | undefined)?.file;
  } finally {
    reader.close();
  }
  if (mark === null || mark === undefined || mark === markOf(file)) {
    return true;
  }
  if (size > 0) {
    throw new LedgerUnavailableError(
      `${changes} has changes of another file: move it away together with ${realPath}-shm to go on without them; if both were copied together, sqlite3 ${file} 'PRAGMA wal_checkpoint(TRUNCATE)' applies them`,
    );
  }
  return false;
}

/** Marks the file as the current one. A read-only file is marked later. */
export function mark(file: string, connection: SqliteConnection): void {
  try {
    connection.prepare('UPDATE ledger SET file = ? WHERE file IS NOT ?').run([markOf(file), markOf(file)]);
  } catch (thrown) {
    if (!isSqliteError(thrown)) {
      throw thrown;
    }
  }
}

/** The inode, which changes if another file is moved or copied over it. */
function markOf(file: string): string {
  return String(statSync(file).ino);
}

/** Reads the whole file, but does not compare indexes with their tables. @throws LedgerUnavailableError */
export function verifyStructure(file: string, connection: SqliteConnection): void {
  const [found] = unavailable(file, () => connection.prepare('PRAGMA quick_check(1)').all([]));
  const { quick_check: message } = z.object({ quick_check: z.string() }).parse(found);
  if (message !== 'ok') {
    throw new LedgerUnavailableError(`the file is damaged: ${message}`);
  }
}

/** The check as text: it runs without a TypeScript loader. What it finds has the form of an error. */
const CHECK = `
const [, name, file, timeout] = process.argv;
let found;
try {
  const module = require(name);
  const reader = module.DatabaseSync
    ? new module.DatabaseSync(file, { readOnly: true, timeout: Number(timeout) })
    : new module(file, { readonly: true, timeout: Number(timeout) });
  try {
    const { integrity_check: message } = reader.prepare('PRAGMA integrity_check(1)').get();
    found = { message, code: 'SQLITE_CORRUPT' };
  } finally {
    reader.close();
  }
} catch ({ message, code, errcode }) {
  found = { message: String(message), code, errcode };
}
process.stdout.write(JSON.stringify(found));
`;
const FOUND = z.looseObject({ message: z.string() });

/**
 * Reads the whole file, in another process: `signal` ends that at once, which SQLite does not let a thread do.
 * Throws a `LedgerUnavailableError` if the file is damaged, or an error of SQLite.
 */
export async function verifyIntegrity(file: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const words = ['-e', CHECK, sqliteModule(), realPathOf(file), String(MILLISECONDS_TO_OPEN)];
  // What NODE_OPTIONS names may print, or wait for a debugger.
  const env = { ...process.env, NODE_OPTIONS: '' };
  let end = () => {};
  let output: string;
  try {
    const running = execute(process.execPath, words, { env });
    end = () => running.child.kill('SIGKILL');
    signal.addEventListener('abort', end);
    output = (await running).stdout;
  } catch (thrown) {
    const { signal: endedBy, code } = thrown as { signal?: unknown; code?: unknown };
    throw new SqliteError(`no process could verify it (${endedBy ?? code})`, 'SQLITE_CANTOPEN');
  } finally {
    signal.removeEventListener('abort', end);
  }
  const found = FOUND.parse(JSON.parse(output));
  if (found.message === 'ok') {
    return;
  }
  const error = asSqliteError(Object.assign(new Error(found.message), found));
  throw isSqliteError(error) && CONTRADICTORY.test(error.code)
    ? new LedgerUnavailableError(`the file is damaged: ${error.message}`)
    : error;
}

/** Pause between two attempts to lock a file that another process writes to, in milliseconds. */
const SHORTEST_PAUSE = 1;
const LONGEST_PAUSE = 20;

/**
 * A number beyond 64 bits, or a text of more than a gigabyte. Source of all codes: SQLite docs, "Result and
 * Error Codes".
 */
const CONTENT = /^SQLITE_(TOOBIG|MISMATCH|RANGE)/;
/** With these, and with `CONTENT`, only the statement has failed: rolling back to a savepoint is enough. */
const OWN = /^SQLITE_(CONSTRAINT|ERROR)/;
/** With these codes the connection has failed, not only the query. */
const SUSPECT = /^SQLITE_(READONLY|IOERR|CORRUPT|NOTADB|CANTOPEN)/;
/** With these codes the file may be damaged. */
const DAMAGED = /^SQLITE_(IOERR|CORRUPT|NOTADB)/;
/** With these codes it is. */
const CONTRADICTORY = /^SQLITE_(CORRUPT|NOTADB)/;
/** Possible codes if there is no room for the files that SQLite makes, such as its index of 32 KiB. */
const WITHOUT_ROOM = /^SQLITE_(IOERR|CANTOPEN)/;
const LEAST_ROOM = 64 * 1024;

/** Retries until the file is free. SQLite's own wait would block the whole process. */
export async function whenFree<Result>(file: string, wait: Wait, attempt: () => Result): Promise<Result> {
  for (let longest = SHORTEST_PAUSE; ; longest = Math.min(2 * longest, LONGEST_PAUSE)) {
    wait.throwIfOver();
    try {
      return attempt();
    } catch (thrown) {
      if (!isBusy(thrown)) {
        throw asUnavailable(thrown, file);
      }
    }
    await pause(Math.random() * longest, undefined, { signal: wait.signal }).catch(() => {
      wait.throwIfOver();
      throw new LedgerUnavailableError('the file is locked by another process');
    });
  }
}

/** @throws LedgerUnavailableError, LedgerContentError */
export function unavailable<Result>(file: string, work: () => Result): Result {
  try {
    return work();
  } catch (thrown) {
    throw asUnavailable(thrown, file);
  }
}

/** Converts an error of SQLite; a value that cannot be stored gives a `LedgerContentError`. */
export function asUnavailable(thrown: unknown, file?: string): unknown {
  const isContent = thrown instanceof RangeError || (isSqliteError(thrown) && CONTENT.test(thrown.code));
  if (isContent) {
    return new LedgerContentError(thrown.message, { cause: thrown });
  }
  if (!isSqliteError(thrown)) {
    return thrown;
  }
  const { message } = thrown;
  const advice = file === undefined ? undefined : diskAdvice(thrown, file);
  return new LedgerUnavailableError(advice === undefined ? message : `${message}: ${advice}`, {
    cause: thrown,
  });
}

/** What to do about the disk; `undefined` = it is not the reason. */
function diskAdvice({ code }: SqliteError, file: string): string | undefined {
  const folder = dirname(realPathOf(file));
  if (code.startsWith('SQLITE_FULL')) {
    return `make room in ${folder}`;
  }
  const lack = WITHOUT_ROOM.test(code) ? lackIn(folder) : undefined;
  if (lack !== undefined) {
    return lack;
  }
  return code.startsWith('SQLITE_IOERR')
    ? `the disk of ${folder} fails, or a quota is used up; the log of the kernel may say more`
    : undefined;
}

function lackIn(folder: string): string | undefined {
  try {
    const { bavail, bsize, files, ffree } = statfsSync(folder);
    if (bavail * bsize < LEAST_ROOM) {
      return `the disk is full, make room in ${folder}`;
    }
    // Some file systems do not count files.
    return files > 0 && ffree === 0
      ? `the disk has no free inodes, remove files from the file system of ${folder}`
      : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the file may be opened later, as it is. */
export function isDiskFault(thrown: unknown, file: string): boolean {
  return isSqliteError(thrown) && diskAdvice(thrown, file) !== undefined;
}

/** The error for a caller if only its part failed; `undefined` = the transaction failed. */
export function ownError(thrown: unknown): { readonly error: unknown } | undefined {
  const isOwn = !isSqliteError(thrown) || OWN.test(thrown.code) || CONTENT.test(thrown.code);
  return isOwn ? { error: asUnavailable(thrown) } : undefined;
}

/**
 * Whether a commit that failed with this error may still be applied: it can be complete in the write-ahead
 * log although the disk did not confirm it. Recovery of the log, after a crash or when the file is opened
 * again, would apply it.
 */
export function isInDoubt(thrown: unknown): thrown is Error {
  return isSqliteError(thrown) && thrown.code.startsWith('SQLITE_IOERR');
}

/** The state of the connection and the file after an error. */
export function suspicionOf(thrown: unknown): { isSuspect: boolean; mayBeDamaged: boolean } {
  const cause = thrown instanceof LedgerUnavailableError ? thrown.cause : undefined;
  const code = isSqliteError(cause) ? cause.code : '';
  return { isSuspect: SUSPECT.test(code), mayBeDamaged: DAMAGED.test(code) };
}

/** Whether another process has locked the file. */
export function isBusy(thrown: unknown): boolean {
  const code = isSqliteError(thrown) ? thrown.code : '';
  return code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED');
}
