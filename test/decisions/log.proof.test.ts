/** The decision log on a real disk: every decision once, in order, whatever happens to the file. */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { OverloadedError } from '../../src/base/concurrency-limiter.ts';
import { Deadline, type Wait, waitFor } from '../../src/base/deadline.ts';
import { DecisionLog } from '../../src/decisions/log.ts';
import type { DecisionRecord } from '../../src/decisions/record.ts';
import {
  aRecord,
  decisionsIn,
  decisionsInFile,
  namedPipe,
  openPipe,
  records,
} from '../support/decision-logs.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';

/** The user of the service. */
const SERVICE = 65_534;
const FOREVER = waitFor(undefined);
/** So many wait at most. */
const ROOM = 10_000;
/** A while that is long enough for whatever comes, and is not waited for. */
const LONG_MS = 15_000;
const PATIENT = { timeout: LONG_MS, interval: 10 };

function openLog(destination: string, whenFull: 'drop' | 'block' = 'drop') {
  const logger = recordingLogger();
  const counted = { dropped: 0, failed: 0 };
  const log = new DecisionLog({ destination, whenFull }, logger, {
    dropped: (count) => {
      counted.dropped += count;
    },
    failed: () => {
      counted.failed += 1;
    },
  });
  onTestFinished(() => log.close(0));
  const write = (written: readonly DecisionRecord[], wait: Wait = FOREVER) =>
    written.map((record) => log.write(record, wait));
  const said = () => logger.lines.map(({ level, message }) => `${level}: ${message}`);
  return { log, logger, counted, write, said };
}

const names = (found: readonly DecisionRecord[]) => found.map(({ lease_name }) => lease_name);
const linesIn = (text: string) => text.split('\n').length - 1;
const logFile = () => join(temporaryFolder(), 'decisions.jsonl');

describe('a decision log', () => {
  it('makes files that others cannot read, for the owner of their folder', async () => {
    const file = logFile();
    if (process.geteuid?.() === 0) {
      chownSync(dirname(file), SERVICE, SERVICE);
    }
    const access = (path: string) => [statSync(path).mode & 0o007, statSync(path).uid];
    const { log, write } = openLog(file);
    renameSync(file, `${file}.1`);
    log.reopen();
    write([aRecord()]);
    const own = [0, statSync(dirname(file)).uid];
    expect(access(`${file}.1`)).toEqual(own);
    await expect.poll(() => access(file)).toEqual(own);
  });

  it('has one line a decision, as it was made, in order', async () => {
    const file = logFile();
    const { log, write } = openLog(file);
    const written = records(1234);
    expect(write(written).every((wait) => wait === undefined)).toBe(true);
    await log.close(LONG_MS);
    expect(decisionsInFile(file)).toEqual(written);
  });

  it('writes by itself, a moment after the decision, and again after having had nothing to write', async () => {
    const file = logFile();
    const { write } = openLog(file);
    for (const [index, record] of records(3).entries()) {
      write([record]);
      await expect.poll(() => decisionsInFile(file)).toHaveLength(index + 1);
    }
  });

  it('writes what comes in the moment in which it has nothing left to write', async () => {
    const file = logFile();
    const { log, logger, write } = openLog(file);
    // It says so in that moment.
    vi.spyOn(logger, 'warn').mockImplementation(() =>
      queueMicrotask(() => write([aRecord({ lease_name: 'the last' })])),
    );
    write(records(ROOM + 1));
    await expect.poll(() => linesIn(readFileSync(file, 'utf8'))).toBe(ROOM + 1);
    expect(names(decisionsInFile(file)).at(-1)).toBe('the last');
    await log.close(LONG_MS);
  });

  it('is appended to what is there', async () => {
    const file = logFile();
    writeFileSync(file, `${JSON.stringify(aRecord({ lease_name: 'before' }))}\n`);
    const { log, write } = openLog(file);
    write(records(1));
    await log.close(LONG_MS);
    expect(names(decisionsInFile(file))).toEqual(['before', '0']);
  });

  it('begins a line of its own behind one that was cut off', async () => {
    const file = logFile();
    writeFileSync(file, '{"time":"2026-11-20T08:0');
    const { log, write } = openLog(file);
    write(records(2));
    await log.close(LONG_MS);
    const [cut, ...whole] = readFileSync(file, 'utf8').split('\n');
    expect(cut).toBe('{"time":"2026-11-20T08:0');
    expect(names(decisionsIn(whole.join('\n')))).toEqual(['0', '1']);
  });

  it.skipIf(process.getuid?.() === 0)('can be written by who may not read it', async () => {
    const file = logFile();
    writeFileSync(file, '');
    chmodSync(file, 0o200);
    const { log, write, counted } = openLog(file);
    write(records(1));
    await log.close(LONG_MS);
    expect(counted).toEqual({ dropped: 0, failed: 0 });
  });

  it.each([
    ['a folder', () => temporaryFolder(), 'it is a folder'],
    ['in a folder that is not there', () => join(temporaryFolder(), 'no', 'log'), 'there is no such file'],
    ['behind a file', () => join(import.meta.filename, 'log'), 'a part of its path is not a folder'],
  ])('is refused where it is %s', (_, path, reason) => {
    expect(() => openLog(path())).toThrow(reason);
  });
});

describe('a file that is moved away', () => {
  it('is left for the next of its name, between two decisions', async () => {
    const file = logFile();
    const { log, write, counted } = openLog(file);
    for (const rotation of [0, 1, 2, 3, 4]) {
      write(records(700, rotation * 1000));
      // In the midst of opening the one before, or of writing to it.
      await new Promise((go) => setTimeout(go, Math.max(0, rotation - 2) * 5));
      renameSync(file, `${file}.${rotation}`);
      write(records(300, rotation * 1000 + 700));
      log.reopen();
      write([aRecord({ lease_name: `after ${rotation}` })]);
      while (!existsSync(file)) {
        await new Promise((go) => setImmediate(go));
      }
    }
    await log.close(LONG_MS);
    const found = [0, 1, 2, 3, 4].flatMap((rotation) => names(decisionsInFile(`${file}.${rotation}`)));
    found.push(...names(decisionsInFile(file)));
    const expected = [0, 1, 2, 3, 4].flatMap((rotation) => [
      ...names(records(1000, rotation * 1000)),
      `after ${rotation}`,
    ]);
    expect(found).toEqual(expected);
    expect(counted).toEqual({ dropped: 0, failed: 0 });
  });

  it('goes on being written until the log is reopened, and not afterwards', async () => {
    const file = logFile();
    const { log, write } = openLog(file);
    write(records(1));
    await expect.poll(() => decisionsInFile(file)).toHaveLength(1);
    renameSync(file, `${file}.1`);
    write(records(1, 1));
    await expect.poll(() => decisionsInFile(`${file}.1`)).toHaveLength(2);
    log.reopen();
    write(records(1, 2));
    await log.close(LONG_MS);
    expect(names(decisionsInFile(`${file}.1`))).toEqual(['0', '1']);
    expect(names(decisionsInFile(file))).toEqual(['2']);
  });

  it('is made again where it was removed', async () => {
    const file = logFile();
    const { log, write } = openLog(file);
    rmSync(file);
    log.reopen();
    write(records(2));
    await log.close(LONG_MS);
    expect(names(decisionsInFile(file))).toEqual(['0', '1']);
  });

  it('keeps no half of a line: the next one has it as a whole', async () => {
    // A pipe that nobody reads takes a part of a batch, and not at the end of a line.
    const pipe = namedPipe();
    const reader = openPipe(pipe);
    const { log, write, counted } = openLog(pipe);
    write(records(400));
    await new Promise((go) => setTimeout(go, 5000));
    renameSync(pipe, `${pipe}.1`);
    log.reopen();
    await log.close(LONG_MS);
    const begun = reader.read();
    const rest = names(decisionsInFile(pipe));
    await vi.waitFor(() => {
      const lines = begun.text.split('\n');
      const cut = lines.pop();
      expect(cut).not.toBe('');
      expect([...names(decisionsIn(lines.join('\n'))), ...rest]).toEqual(names(records(400)));
    }, PATIENT);
    expect(rest.length).toBeGreaterThan(0);
    expect(counted).toEqual({ dropped: 0, failed: 0 });
  });
});

describe.each([
  ['a pipe that nobody has opened', () => ({ path: namedPipe(), reader: undefined })],
  [
    'a pipe that nobody reads',
    () => {
      const path = namedPipe();
      return { path, reader: openPipe(path) };
    },
  ],
])('with %s', (_, make) => {
  it('drops what there is no room for, counts every drop, and says it once', async () => {
    const { path, reader } = make();
    const { log, logger, write, counted, said } = openLog(path);
    const all = records(ROOM + 2500);
    expect(write(all.slice(0, ROOM)).every((wait) => wait === undefined)).toBe(true);
    expect(counted.dropped).toBe(0);
    expect(write(all.slice(ROOM)).every((wait) => wait === undefined)).toBe(true);
    expect(counted.dropped).toBe(2500);

    const read = (reader ?? openPipe(path)).read();
    await expect.poll(() => linesIn(read.text)).toBeGreaterThan(0);
    // It is read now, and more comes than can be.
    let total = all.length;
    for (let turn = 0; turn < 20; turn += 1) {
      write(records(2000, total));
      total += 2000;
      await new Promise((go) => setTimeout(go, 1));
    }
    await expect.poll(() => linesIn(read.text) + counted.dropped).toBe(total);
    await log.close(LONG_MS);
    const found = decisionsIn(read.text);
    expect(found.length + counted.dropped).toBe(total);
    expect(names(found.slice(0, ROOM))).toEqual(names(all.slice(0, ROOM)));
    expect(said().filter((line) => !line.endsWith('written') && !line.endsWith('written again'))).toEqual([
      'error: the decision log is too slow: decisions are dropped from it',
      'warn: the decision log is fast enough again',
    ]);
    expect(logger.lines.at(-1)?.fields).toEqual({ decisions: counted.dropped });
  });

  it('ends in time, and counts what was not written', async () => {
    const { path, reader } = make();
    const { log, write, counted, said } = openLog(path);
    write(records(ROOM + 10));
    // A part of it goes into the pipe, the last line perhaps not as a whole.
    await new Promise((go) => setTimeout(go, 3000));
    await log.close(50);
    expect(said()).toContain('error: the end of the decision log was not written');
    const { dropped } = counted;
    if (reader !== undefined) {
      const read = reader.read();
      await expect.poll(() => read.ended).toBe(true);
      expect(linesIn(read.text)).toBeGreaterThan(0);
      expect(linesIn(read.text) + dropped).toBe(ROOM + 10);
    }
    write(records(5));
    expect(counted.dropped).toBe(dropped + 5);
  });

  it('has those wait for whom there is no room, and writes them all when somebody reads', async () => {
    const { path, reader } = make();
    const { log, write, counted } = openLog(path, 'block');
    const all = records(ROOM + 1200);
    const waits = write(all);
    expect(waits.slice(0, ROOM).every((wait) => wait === undefined)).toBe(true);
    expect(waits.slice(ROOM).every((wait) => wait instanceof Promise)).toBe(true);
    let entered = 0;
    const entering = waits.slice(ROOM).map(async (wait) => {
      await wait;
      entered += 1;
    });
    await new Promise((go) => setTimeout(go, 100));
    expect(entered).toBe(0);

    const read = (reader ?? openPipe(path)).read();
    await Promise.all(entering);
    await log.close(LONG_MS);
    await expect.poll(() => linesIn(read.text)).toBe(all.length);
    expect(names(decisionsIn(read.text))).toEqual(names(all));
    expect(counted.dropped).toBe(0);
  });

  it('has nobody wait for longer than they may, and does not write what was not answered', async () => {
    const { path, reader } = make();
    const { log, write } = openLog(path, 'block');
    write(records(ROOM));
    await expect(log.write(aRecord({ lease_name: 'late' }), new Deadline(0.05))).rejects.toThrow(
      new OverloadedError('The decision could not be logged in time. Please try again.'),
    );
    const over = waitFor(AbortSignal.abort());
    await expect(log.write(aRecord({ lease_name: 'too late' }), over)).rejects.toThrow(OverloadedError);
    const patient = log.write(aRecord({ lease_name: 'patient' }), FOREVER);

    const read = (reader ?? openPipe(path)).read();
    await patient;
    await log.close(LONG_MS);
    await expect.poll(() => linesIn(read.text)).toBe(ROOM + 1);
    expect(names(decisionsIn(read.text)).slice(-1)).toEqual(['patient']);
  });
});

describe('a disk that is full', () => {
  it('is tried again and again, counted each time, and said once', async () => {
    const { log, write, counted, said } = openLog('/dev/full');
    write(records(3));
    await expect.poll(() => counted.failed).toBeGreaterThan(1);
    expect(counted.dropped).toBe(0);
    await log.close(0);
    expect(counted.dropped).toBe(3);
    expect(said()).toEqual([
      'error: the decision log could not be written',
      'error: the end of the decision log was not written',
    ]);
  });

  it('costs no decision when there is room again', async () => {
    const folder = temporaryFolder();
    const link = join(folder, 'decisions.jsonl');
    symlinkSync('/dev/full', link);
    const { log, write, counted, said, logger } = openLog(link);
    write(records(700));
    await expect.poll(() => counted.failed).toBeGreaterThan(0);
    expect(logger.lines[0]?.fields.error).toContain('the disk is full');
    mkdirSync(join(folder, 'disk'));
    symlinkSync(join(folder, 'disk', 'log'), `${link}.new`);
    renameSync(`${link}.new`, link);
    log.reopen();
    await expect.poll(said).toContain('info: the decision log is written again');
    await log.close(LONG_MS);
    expect(names(decisionsInFile(link))).toEqual(names(records(700)));
    expect(counted.dropped).toBe(0);
  });

  it('is not left for a file that can’t be opened either', async () => {
    const folder = temporaryFolder();
    const file = join(folder, 'logs', 'decisions.jsonl');
    mkdirSync(join(folder, 'logs'));
    const { log, write, counted } = openLog(file);
    write(records(2));
    await expect.poll(() => decisionsInFile(file)).toHaveLength(2);
    renameSync(join(folder, 'logs'), join(folder, 'away'));
    log.reopen();
    write(records(2, 2));
    await expect.poll(() => counted.failed).toBeGreaterThan(0);
    mkdirSync(join(folder, 'logs'));
    await log.close(LONG_MS);
    expect(names(decisionsInFile(file))).toEqual(['2', '3']);
    expect(counted.dropped).toBe(0);
  });
});
