import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { verifyIntegrity } from '../../../src/ledger/storage/sqlite-file.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';

it('leaves no process that reads the file of a ledger when the verification is aborted', async () => {
  const file = join(temporaryFolder(), 'ledger.db');
  // Opening it takes until somebody writes, as a large file takes long to read.
  execFileSync('mkfifo', [file]);
  const closing = new AbortController();
  const verification = verifyIntegrity(file, closing.signal);
  await expect.poll(() => readersOf(file)).toHaveLength(1);
  closing.abort();
  await expect(verification).rejects.toThrow();
  expect(readersOf(file)).toEqual([]);
  await expect(verifyIntegrity(file, closing.signal)).rejects.toThrow('aborted');
  expect(readersOf(file)).toEqual([]);
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
