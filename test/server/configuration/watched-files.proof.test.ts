/** Watches of real files, and every way in which editors and Kubernetes change them. */
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it, type TestContext, vi } from 'vitest';
import { WatchedFiles } from '../../../src/server/configuration/watched-files.ts';

const LONG_AGO = new Date('2020-01-01');

/** What is done to `blazar.conf` in a folder; it was `one`. */
const CHANGES: readonly [what: string, change: (folder: string, file: string) => void][] = [
  ['is written in place', (_, file) => writeFileSync(file, 'two')],
  ['is written in place with as many bytes at the same time', (_, file) => rewriteAtTheSameTime(file)],
  [
    'is replaced by a rename, as editors do',
    (folder, file) => replaceBy(join(folder, '.blazar.conf.swp'), file),
  ],
  ['is gone', (_, file) => rmSync(file)],
  ['is a folder now', (_, file) => becomeFolder(file)],
];

function rewriteAtTheSameTime(file: string): void {
  writeFileSync(file, 'eno');
  utimesSync(file, LONG_AGO, LONG_AGO);
}

function becomeFolder(file: string): void {
  rmSync(file);
  mkdirSync(file);
}

function replaceBy(other: string, file: string): void {
  writeFileSync(other, 'two');
  renameSync(other, file);
}

/** How often it is looked in these tests, in milliseconds. */
const LOOK = 100;
/** In this time a change would have been seen, and have settled. */
const LONG_ENOUGH = 5 * LOOK;
/** Generous: of a machine that is busy elsewhere. */
const SOON = { timeout: 120_000, interval: 20 };

/** A folder with `blazar.conf`, and a watch over some paths in it that has seen how they are. */
async function watching(
  { onTestFinished }: TestContext,
  pathsIn: (folder: string, file: string) => string[] = (_, file) => [file],
  { look = LOOK, start = true } = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-'));
  const file = join(folder, 'blazar.conf');
  writeFileSync(file, 'one');
  utimesSync(file, LONG_AGO, LONG_AGO);
  const changed = vi.fn();
  const files = new WatchedFiles(changed, look);
  onTestFinished(() => {
    files.close();
    rmSync(folder, { recursive: true });
  });
  await files.watch(pathsIn(folder, file));
  if (start) {
    files.start();
  }
  return { folder, file, files, changed };
}

describe.concurrent('a watch', () => {
  it.for(CHANGES)('calls back once when the file %s', async ([, change], context) => {
    const { folder, file, changed } = await watching(context);
    change(folder, file);
    await vi.waitFor(() => context.expect(changed).toHaveBeenCalled(), SOON);
    await sleep(LONG_ENOUGH);
    context.expect(changed).toHaveBeenCalledTimes(1);
  });

  it('calls back when a link on the way leads elsewhere, as Kubernetes does', async (context) => {
    const { folder, changed } = await watching(context, (parent) => {
      mkdirSync(join(parent, '..first'));
      mkdirSync(join(parent, '..second'));
      writeFileSync(join(parent, '..first', 'tokens'), 'a');
      writeFileSync(join(parent, '..second', 'tokens'), 'b');
      symlinkSync('..first', join(parent, '..data'));
      symlinkSync('..data/tokens', join(parent, 'tokens'));
      return [join(parent, 'tokens')];
    });
    symlinkSync('..second', join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    await vi.waitFor(() => context.expect(changed).toHaveBeenCalledTimes(1), SOON);
  });

  it('over a folder calls back when a configuration file in it comes, changes or goes, and for no other', async (context) => {
    const { folder, file, changed } = await watching(context, (parent) => [parent]);
    const further = join(folder, 'further.conf');
    for (const [times, change] of [
      [1, () => writeFileSync(further, 'three')],
      [2, () => writeFileSync(further, 'four!')],
      [3, () => rmSync(file)],
      [4, () => writeFileSync(join(folder, 'further.yaml'), 'service: {}')],
      [5, () => writeFileSync(join(folder, 'policies.json'), '{}')],
    ] as const) {
      change();
      await vi.waitFor(() => context.expect(changed).toHaveBeenCalledTimes(times), SOON);
    }
    writeFileSync(join(folder, 'decisions.jsonl'), 'five');
    await sleep(LONG_ENOUGH);
    context.expect(changed).toHaveBeenCalledTimes(5);
  });

  it('sees what changes before it starts', async (context) => {
    const { file, files, changed } = await watching(context, (_, path) => [path], { start: false });
    writeFileSync(file, 'two');
    await sleep(LONG_ENOUGH);
    context.expect(changed).not.toHaveBeenCalled();
    files.start();
    await vi.waitFor(() => context.expect(changed).toHaveBeenCalledTimes(1), SOON);
  });

  it('waits until a file is no longer written: nothing is read half', async (context) => {
    const look = 500;
    const { file, changed } = await watching(context, (_, path) => [path], { look });
    const read: string[] = [];
    changed.mockImplementation(() => read.push(readFileSync(file, 'utf8')));
    writeFileSync(file, '');
    for (const part of ['1', '2', '3', '4', '5', '6']) {
      appendFileSync(file, part);
      await sleep(0.5 * look);
    }
    await vi.waitFor(() => context.expect(changed).toHaveBeenCalled(), SOON);
    context.expect(read).toEqual(['123456']);
  });

  it('calls back once for files that change together', async (context) => {
    const { folder, file, changed } = await watching(context, (parent, path) => [path, join(parent, 'key')]);
    writeFileSync(file, 'two');
    await sleep(LOOK / 2);
    writeFileSync(join(folder, 'key'), 'two');
    await vi.waitFor(() => context.expect(changed).toHaveBeenCalled(), SOON);
    await sleep(LONG_ENOUGH);
    context.expect(changed).toHaveBeenCalledTimes(1);
  });

  it('over other paths leaves those before alone, and goes on with those that stay', async (context) => {
    const { folder, file, files, changed } = await watching(context, (parent, path) => [
      path,
      join(parent, 'tokens'),
    ]);
    writeFileSync(join(folder, 'tokens'), 'a');
    await files.watch([join(folder, 'tokens')]);
    writeFileSync(file, 'two');
    await vi.waitFor(() => context.expect(changed).toHaveBeenCalledTimes(1), SOON);
    writeFileSync(file, 'three');
    await sleep(LONG_ENOUGH);
    context.expect(changed).toHaveBeenCalledTimes(1);
  });

  it('that is closed never calls back, not even for what is settling', async (context) => {
    const { file, files, changed } = await watching(context);
    writeFileSync(file, 'two');
    await sleep(LOOK * 1.2);
    files.close();
    await files.watch([file]);
    files.start();
    await sleep(LONG_ENOUGH);
    context.expect(changed).not.toHaveBeenCalled();
  });
});
