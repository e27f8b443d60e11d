import {
  appendFileSync,
  existsSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { followChunks } from '../../src/decisions/reader.ts';
import { namedPipe } from '../support/decision-logs.ts';
import { temporaryFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

/** Follows a file until the end of the test, and notes what comes. */
function follow(path: string) {
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const seen = { text: '', caughtUp: 0, files: 1 };
  const following = (async () => {
    for await (const chunk of followChunks(path, ended.signal, 20)) {
      if (chunk === 'caught up') {
        seen.caughtUp += 1;
      } else if (chunk === 'begins anew') {
        seen.files += 1;
        seen.text += '|';
      } else {
        seen.text += chunk;
      }
    }
  })();
  const until = (text: string) => expect.poll(() => seen.text).toBe(text);
  return { seen, until, following, end: () => ended.abort() };
}

describe('followChunks', () => {
  it('reads what is there, says so, and goes on with what is appended', async () => {
    const path = temporaryFile('log', 'a\n');
    const { seen, until } = follow(path);
    await until('a\n');
    await expect.poll(() => seen.caughtUp).toBeGreaterThan(0);
    appendFileSync(path, 'b\nc');
    await until('a\nb\nc');
    appendFileSync(path, 'd\n');
    await until('a\nb\ncd\n');
    expect(seen.files).toBe(1);
  });

  it('goes on with the next file of the name, when something stands in it and the old one has been read', async () => {
    const path = temporaryFile('log', 'a\n');
    const { seen, until } = follow(path);
    await until('a\n');
    renameSync(path, `${path}.1`);
    appendFileSync(`${path}.1`, 'b\n');
    await until('a\nb\n');
    // As logrotate makes it, before the service has been told.
    writeFileSync(path, '');
    const { caughtUp } = seen;
    await expect.poll(() => seen.caughtUp).toBeGreaterThan(caughtUp + 2);
    appendFileSync(`${path}.1`, 'c\n');
    await until('a\nb\nc\n');
    appendFileSync(`${path}.1`, 'd\n');
    appendFileSync(path, 'e\n');
    await until('a\nb\nc\nd\n|e\n');
    appendFileSync(path, 'f\n');
    await until('a\nb\nc\nd\n|e\nf\n');
    expect(seen.files).toBe(2);
  });

  it('waits for a file that was removed to come back', async () => {
    const path = temporaryFile('log', 'a\n');
    const { seen, until } = follow(path);
    await until('a\n');
    rmSync(path);
    const { caughtUp } = seen;
    await expect.poll(() => seen.caughtUp).toBeGreaterThan(caughtUp + 1);
    writeFileSync(path, 'b\n');
    await until('a\n|b\n');
  });

  it('reads a file from its start when it was cut', async () => {
    const path = temporaryFile('log', 'a long line\n');
    const { until } = follow(path);
    await until('a long line\n');
    truncateSync(path);
    await until('a long line\n|');
    appendFileSync(path, 'b\n');
    await until('a long line\n|b\n');
  });

  it('ends when it is told to, and leaves no file open', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'log');
    writeFileSync(path, 'a\n');
    const { until, following, end } = follow(path);
    await until('a\n');
    renameSync(path, `${path}.1`);
    writeFileSync(path, 'b\n');
    await until('a\n|b\n');
    end();
    await following;
    if (existsSync('/proc/self/fd')) {
      const open = readdirSync('/proc/self/fd').flatMap((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`);
        } catch {
          return [];
        }
      });
      expect(open.filter((name) => name.startsWith(folder))).toEqual([]);
    }
  });

  it('follows files only: whoever opens a pipe waits for who writes', async () => {
    for (const path of [namedPipe(), temporaryFolder(), '/dev/null']) {
      await expect(follow(path).following).rejects.toThrow('only a file can be followed, or standard input');
    }
    await expect(follow('/nowhere/log').following).rejects.toThrow('ENOENT');
  });
});
