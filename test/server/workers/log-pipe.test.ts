/** The pipe of a worker's decisions, with a process that writes into it as a worker does. */
import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { gatherMs, LogPipe, type TakeLines } from '../../../src/server/workers/log-pipe.ts';
import { projectFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';

/** A pipe that this process writes into, and what has come out of it. */
async function opened(take?: TakeLines) {
  const folder = temporaryFolder();
  const pipe = await LogPipe.open(join(folder, 'log'));
  onTestFinished(() => pipe.close());
  const got: string[] = [];
  let counted = 0;
  const ended = pipe.read((lines, count) => {
    got.push(lines.toString());
    counted += count;
    return take?.(lines, count);
  });
  return { pipe, folder, ended, text: () => got.join(''), pieces: got, counted: () => counted };
}

/** Opens a pipe where so many files may still be opened. A program that waits for nothing that can happen ends with 13. */
const OPENS_WITH = `
import fs from 'node:fs';
const { LogPipe } = await import(process.argv[1]);
const open = [];
try { for (;;) open.push(fs.openSync('/dev/null')); } catch {}
for (const one of open.splice(0, Number(process.argv[3]))) fs.closeSync(one);
const opened = await LogPipe.open(process.argv[2]).then(() => 'opened', () => 'refused');
for (const one of open) fs.closeSync(one);
console.log(opened);
process.exit();`;

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `{"line":${index}}\n`);

describe('the pipe of a worker', () => {
  it('is opened or refused, however few files may still be opened', async () => {
    const built = projectFile('dist/src/server/workers/log-pipe.js');
    const few = [0, 1, 2, 3, 4, 5, 6];
    const said = await Promise.all(
      few.map(async (free) => {
        const args = ['--input-type=module', '-e', OPENS_WITH, built, join(temporaryFolder(), 'log'), free];
        const { stdout } = await promisify(execFile)('sh', [
          ...['-c', 'ulimit -n 64; exec "$@"', 'sh', process.execPath],
          ...args.map(String),
        ]);
        return stdout.trim();
      }),
    );
    expect(new Set(said)).toEqual(new Set(['refused', 'opened']));
    expect(said.lastIndexOf('refused')).toBeLessThan(said.indexOf('opened'));
  });

  it('passes on whole lines in their order, however they are cut, and counts them', async () => {
    const { pipe, ended, text, pieces, counted } = await opened();
    const lines = numbered(5000);
    const whole = Buffer.from(lines.join(''));
    for (let at = 0; at < whole.length; at += 777) {
      pipe.far.write(whole.subarray(at, at + 777));
    }
    pipe.far.end();
    await ended;
    expect(text()).toBe(lines.join(''));
    expect(counted()).toBe(lines.length);
    expect(pieces.filter((piece) => !piece.endsWith('\n'))).toEqual([]);
  });

  it('passes on a line that is longer than all that it can hold', async () => {
    const { pipe, ended, text, pieces } = await opened();
    const long = `{"text":"${'x'.repeat(1_000_000)}"}\n`;
    pipe.far.end(`short\n${long}short again\n`);
    await ended;
    expect(text()).toBe(`short\n${long}short again\n`);
    expect(pieces.filter((piece) => !piece.endsWith('\n'))).toEqual([]);
  });

  it('passes on all that a killed process has written, but not the line that it was writing', async () => {
    const { pipe, ended, text, counted } = await opened();
    const source = `require('node:fs').writeSync(3, ${JSON.stringify(`${numbered(50).join('')}{"line":5`)});process.kill(process.pid, 'SIGKILL')`;
    const child = fork('-e', [source], { execArgv: [], stdio: ['ignore', 1, 2, pipe.far, 'ipc'] });
    pipe.far.destroy();
    const [, signal] = await once(child, 'exit');
    expect(signal).toBe('SIGKILL');
    await ended;
    expect(text()).toBe(numbered(50).join(''));
    expect(counted()).toBe(50);
  });

  it('reads nothing while there is no room, holds up who writes, and loses nothing', async () => {
    const room: (() => void)[] = [];
    const { pipe, ended, text, pieces } = await opened(() => new Promise<void>((made) => room.push(made)));
    const lines = numbered(40_000);
    pipe.far.end(lines.join(''));
    await vi.waitFor(() => expect(pieces).toHaveLength(1));
    expect(pipe.far.writableLength).toBeGreaterThan(0);
    let isOver = false;
    void ended.then(() => {
      isOver = true;
    });
    while (!isOver) {
      expect(room.length).toBeLessThanOrEqual(1);
      room.pop()?.();
      await new Promise((next) => setImmediate(next));
    }
    expect(text()).toBe(lines.join(''));
  });

  it('ends only when the last lines are taken', async () => {
    let taken = (): void => {};
    const { pipe, ended, text } = await opened(
      () =>
        new Promise<void>((resolve) => {
          taken = resolve;
        }),
    );
    pipe.far.end('last\n');
    await vi.waitFor(() => expect(text()).toBe('last\n'));
    const first = await Promise.race([ended.then(() => 'ended'), new Promise((next) => setImmediate(next))]);
    expect(first).toBeUndefined();
    taken();
    await ended;
  });

  it('leaves no file behind, and cannot be opened where there can be no socket', async () => {
    const { folder } = await opened();
    await vi.waitFor(() => expect(readdirSync(folder)).toEqual([]));
    await expect(LogPipe.open(join(folder, 'missing', 'log'))).rejects.toThrow();
  });
});

describe('the time in which lines gather', () => {
  it('is never longer than 40 ms, and as short as lines come fast', () => {
    expect([gatherMs(40, 1), gatherMs(40, 64 * 1024), gatherMs(40, 128 * 1024)]).toEqual([40, 40, 20]);
    fc.assert(
      fc.property(
        fc.integer({ min: 5, max: 40 }),
        fc.integer({ min: 1, max: 1024 * 1024 }),
        (before, bytes) => {
          const next = gatherMs(before, bytes);
          expect(next).toBeGreaterThanOrEqual(5);
          expect(next).toBeLessThanOrEqual(40);
          // At the same rate, no more than 64 KiB gather, as far as a pause may be shortened.
          expect(next === 5 || (bytes / before) * next <= 64 * 1024).toBe(true);
        },
      ),
    );
  });
});
