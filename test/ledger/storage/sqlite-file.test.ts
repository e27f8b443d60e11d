import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CompiledQuery } from 'kysely';
import { expect, it, onTestFinished, vi } from 'vitest';
import { rows } from '../../../src/ledger/storage/database.ts';
import { openSqlite } from '../../../src/ledger/storage/sqlite-driver.ts';
import { verifyIntegrity } from '../../../src/ledger/storage/sqlite-file.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { fileOf, NO_WAIT, newLedger, openedLedger } from '../../support/ledgers.ts';
import { recordMany } from '../many-leases.ts';

/** Opening it takes until somebody writes, as a large file takes long to read. */
async function verifiedForLong() {
  const file = join(temporaryFolder(), 'ledger.db');
  execFileSync('mkfifo', [file]);
  const closing = new AbortController();
  const verification = verifyIntegrity(file, closing.signal);
  await expect.poll(() => readersOf(file)).toHaveLength(1);
  return { file, closing, verification };
}

it('leaves no process that reads the file of a ledger when the verification is aborted', async () => {
  const { file, closing, verification } = await verifiedForLong();
  closing.abort();
  await expect(verification).rejects.toThrow();
  expect(readersOf(file)).toEqual([]);
  await expect(verifyIntegrity(file, closing.signal)).rejects.toThrow('aborted');
  expect(readersOf(file)).toEqual([]);
});

it('does not call a file damaged whose verification somebody ends', async () => {
  const { file, verification } = await verifiedForLong();
  process.kill(Number(readersOf(file)[0]), 'SIGKILL');
  await expect(verification).rejects.toThrow('no process could verify it (SIGKILL)');
});

it('verifies a file whatever NODE_OPTIONS loads, also one that SQLite refuses to read', async () => {
  const folder = temporaryFolder();
  const [loaded, file, damaged] = ['loaded.cjs', "a ledger's.db", 'damaged.db'].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  writeFileSync(loaded, "console.log('instrumented')");
  vi.stubEnv('NODE_OPTIONS', `--require ${loaded}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  openSqlite(file).close();
  writeFileSync(damaged, 'no ledger'.repeat(1000));
  const { signal } = new AbortController();
  await verifyIntegrity(file, signal);
  await expect(verifyIntegrity(damaged, signal)).rejects.toThrow(
    'the file is damaged: file is not a database',
  );
});

it('refuses all from the start where a page of a small file is damaged that nobody has read', async () => {
  const connection = await newLedger();
  await recordMany(connection, 1000);
  const file = fileOf(connection);
  const bytes = readFileSync(file);
  const place = bytes.indexOf('lease 500');
  writeFileSync(file, bytes.fill(0xff, place - (place % 4096), place - (place % 4096) + 64));
  const { database } = await openedLedger(connection);
  const read = () => database.read(() => rows(CompiledQuery.raw('SELECT id FROM ledger')), NO_WAIT);
  await read();
  database.verifyStored?.();
  await expect(read()).rejects.toThrow('the file is damaged');
});

function readersOf(file: string): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && commandOf(name).includes(file));
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
