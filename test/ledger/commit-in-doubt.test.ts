/** A database that commits, and can't say so any more; or that goes away before a recording could be taken back. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { withinDeadline } from '../../src/base/deadline.ts';
import { LedgerUnavailableError } from '../../src/base/errors.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { listLeases } from '../../src/ledger/reports/reports.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import { acquireCommitLock } from '../../src/ledger/service.ts';
import { CommitInDoubtError, type Database, rows } from '../../src/ledger/storage/database.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { DIALECTS, ledgerAt, NO_WAIT, newLedgers, openedLedger } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { by, recordLease, recordNewLease } from './recorded-leases.ts';

const newLedger = newLedgers();

interface Fault {
  /** The next commit is made, and its answer lost. */
  losesAnswer: boolean;
  isAway: boolean;
  attempts: number;
  /** What the next transaction waits for. */
  pause: Promise<void> | undefined;
}

function faulty(database: Database, fault: Fault): Database {
  return {
    dialect: database.dialect,
    queries: database.queries,
    whenConnected: undefined,
    memory: undefined,
    async transact(work, wait) {
      const { pause } = fault;
      fault.pause = undefined;
      await pause;
      if (fault.isAway) {
        fault.attempts += 1;
        throw new LedgerUnavailableError('it is away');
      }
      const result = await database.transact(work, wait);
      if (!fault.losesAnswer) {
        return result;
      }
      fault.losesAnswer = false;
      fault.isAway = true;
      throw new CommitInDoubtError('the connection is gone', result, { cause: undefined });
    },
    read: (work, wait) => database.read(work, wait),
    snapshot: (work, wait) => database.snapshot(work, wait),
    close: async () => {},
  };
}

async function newGround() {
  const ledger = await openedLedger(await newLedger('sqlite'));
  const folder = join(temporaryFolder(), 'doubt');
  const process = () => {
    const fault: Fault = { losesAnswer: false, isAway: false, attempts: 0, pause: undefined };
    const logger = recordingLogger();
    const counts: number[] = [];
    const one = new Ledger(faulty(ledger.database, fault), {
      clock: { now: () => new Date('2026-11-21T09:00:30Z') },
      timeout: 10,
      logger,
      doubtFolder: folder,
      observer: { transacted() {}, inDoubt: (count) => counts.push(count) },
    });
    onTestFinished(() => one.close());
    return { ledger: one, fault, logger, counts };
  };
  const states = async () => (await listLeases(ledger, { limit: 9 }, NO_WAIT)).map(({ state }) => state);
  const files = () => readdirSync(folder);
  return { ledger, process, states, files, folder };
}

async function loseAnswer({ ledger, fault }: { ledger: Ledger; fault: Fault }, leaseId = 'A'): Promise<void> {
  fault.losesAnswer = true;
  await expect(recordLease(ledger, { name: 'run', leaseId })).rejects.toThrow('the connection is gone');
}

describe('a commit whose answer is lost', () => {
  it('fails for the caller, and is taken back when the database answers, however late', async () => {
    const { ledger, process, states, files } = await newGround();
    const one = process();
    await loseAnswer(one);
    await expect.poll(() => one.fault.attempts).toBeGreaterThan(1);
    expect(await states()).toEqual(['open']);
    expect(one.counts.at(-1)).toBe(1);
    expect(files()).toHaveLength(1);
    expect(one.logger.lines.map(({ level, message }) => [level, message])).toEqual([
      ['error', expect.stringContaining('a refused lease may be recorded nevertheless')],
    ]);
    one.fault.isAway = false;
    await expect.poll(states).toEqual(['ended']);
    await expect.poll(() => one.counts.at(-1)).toBe(0);
    expect(files()).toEqual([]);
    expect(one.logger.lines.at(-1)?.message).toBe('a refused lease was recorded, and has been taken back');
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
  });

  it('is taken back without a pause when it comes while another one is taken back', async () => {
    const { process, states } = await newGround();
    const one = process();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await loseAnswer(one, 'A');
    let goOn = () => {};
    one.fault.pause = new Promise((resolve) => {
      goOn = resolve;
    });
    vi.advanceTimersByTime(1);
    await expect.poll(() => one.fault.pause === undefined).toBe(true);
    one.fault.isAway = false;
    await loseAnswer(one, 'B');
    one.fault.isAway = false;
    goOn();
    await expect.poll(states).toEqual(['ended', 'ended']);
  });

  it('is taken back by the next process when the first one has ended', async () => {
    const { ledger, process, states, files } = await newGround();
    const one = process();
    await loseAnswer(one);
    await one.ledger.close();
    expect(await states()).toEqual(['open']);
    const next = process();
    next.ledger.attend();
    await expect.poll(states).toEqual(['ended']);
    await expect.poll(files).toEqual([]);
    expect(next.counts).toContain(1);
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
  });

  it('stays when the same lease is granted again meanwhile', async () => {
    const { process, states } = await newGround();
    const one = process();
    const other = process();
    await loseAnswer(one);
    await recordLease(other.ledger, { name: 'run', leaseId: 'A' });
    one.fault.isAway = false;
    await expect.poll(() => one.counts.at(-1)).toBe(0);
    expect(await states()).toEqual(['open']);
  });

  it('takes back nothing that got the same row number when the commit itself was lost', async () => {
    const { ledger, process, states } = await newGround();
    const one = process();
    await loseAnswer(one);
    // As a standby that never had it goes on: the next row has the same number.
    const { queries } = ledger.database;
    const gone = ['entries', 'leases'] as const;
    await ledger.transact(
      'commit',
      function* () {
        for (const table of gone) {
          yield queries.deleteFrom(table).compile();
        }
      },
      NO_WAIT,
    );
    await recordLease(process().ledger, { name: 'other' });
    one.fault.isAway = false;
    await expect.poll(() => one.counts.at(-1)).toBe(0);
    expect(await states()).toEqual(['open']);
  });

  it('is forgotten by a process that has found it in the folder, when another one has settled it', async () => {
    const { process, states, files } = await newGround();
    const one = process();
    const other = process();
    await loseAnswer(one);
    other.fault.isAway = true;
    other.ledger.attend();
    await expect.poll(() => other.fault.attempts).toBeGreaterThan(0);
    one.fault.isAway = false;
    await expect.poll(files).toEqual([]);
    await expect.poll(() => other.counts.at(-1)).toBe(0);
    expect(await states()).toEqual(['ended']);
    expect(other.logger.lines).toEqual([]);
  });

  it('is settled by a commit even where nothing is found: it overwrites what the log may still have', async () => {
    const { ledger } = await newGround();
    const undo = await recordedUndo(ledger);
    const query = ledger.database.queries.selectFrom('projects').select('revision').compile();
    const revision = async () =>
      (await ledger.read('read', () => rows(query), NO_WAIT)).map((row) => row.revision);
    expect(await revision()).toEqual([1n]);
    expect(await ledger.takeBack(undo, by('undo'), NO_WAIT)).toBe(true);
    expect(await ledger.takeBack(undo, by('undo'), NO_WAIT)).toBe(false);
    expect(await revision()).toEqual([3n]);
  });

  it('is left to the processes that have its ledger open', async () => {
    const first = await newGround();
    const one = first.process();
    await loseAnswer(one);
    await one.ledger.close();
    const second = await newGround();
    const found = first.files();
    const stranger = new Ledger(
      faulty(second.ledger.database, { losesAnswer: false, isAway: false, attempts: 0, pause: undefined }),
      {
        clock: { now: () => new Date('2026-11-21T09:00:30Z') },
        timeout: 10,
        observer: undefined,
        doubtFolder: first.folder,
      },
    );
    stranger.attend();
    await recordLease(stranger, { name: 'own' });
    await new Promise((resolve) => setTimeout(resolve, 300));
    await stranger.close();
    expect(first.files()).toEqual(found);
    expect(await first.states()).toEqual(['open']);
  });
});

it('a recording that another filter refuses is taken back as soon as the database answers', async () => {
  const { process, states } = await newGround();
  const one = process();
  const undo = await recordedUndo(one.ledger);
  one.fault.isAway = true;
  await expect(one.ledger.takeBack(undo, by('undo'), NO_WAIT)).rejects.toThrow('it is away');
  expect(one.counts).toEqual([1]);
  one.fault.isAway = false;
  await expect.poll(states).toEqual(['ended']);
});

async function recordedUndo(ledger: Ledger) {
  const { undo } = (await recordNewLease(ledger, { name: 'run' })).recording;
  if (undo === undefined) {
    throw new Error('expected something that can be taken back');
  }
  return undo;
}

describe.each(DIALECTS)('the lock of a lease, on %s', (dialect) => {
  async function processes() {
    const connection = await newLedger(dialect);
    const clock = { now: '2026-11-21T09:00:00Z' };
    const open = async () => {
      const ledger = await ledgerAt(connection, { now: () => clock.now });
      onTestFinished(() => ledger.database.close());
      return ledger;
    };
    return { one: await open(), other: await open(), clock };
  }

  it('is held by one, until it is released', async () => {
    const { one, other } = await processes();
    const seen: string[] = [];
    const release = await acquireCommitLock(one, 'lease', NO_WAIT);
    const later = acquireCommitLock(other, 'lease', NO_WAIT).then(async (end) => {
      seen.push('other');
      await end();
    });
    await (await acquireCommitLock(other, 'another lease', NO_WAIT))();
    await new Promise((resolve) => setTimeout(resolve, 250));
    seen.push('one');
    await release();
    await later;
    expect(seen).toEqual(['one', 'other']);
    await (await acquireCommitLock(one, 'lease', NO_WAIT))();
  });

  it('is waited for within the deadline', async () => {
    const { one, other } = await processes();
    const release = await acquireCommitLock(one, 'lease', NO_WAIT);
    await expect(
      withinDeadline(0.3, (deadline) => acquireCommitLock(other, 'lease', deadline)),
    ).rejects.toThrow();
    await release();
  });

  it.each([
    ['expires after ten seconds, if its process has died', '2026-11-21T09:00:10Z'],
    ['of a clock that was set back does not hold for long', '2026-11-21T08:00:00Z'],
  ])('%s', async (_, now) => {
    const { one, other, clock } = await processes();
    // Nothing renews it.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const release = await acquireCommitLock(one, 'lease', NO_WAIT);
    clock.now = now;
    const end = await acquireCommitLock(other, 'lease', NO_WAIT);
    // It is not its own any more.
    await release();
    clock.now = now.replace('Z', '.5Z');
    await expect(
      withinDeadline(0.3, (deadline) => acquireCommitLock(one, 'lease', deadline)),
    ).rejects.toThrow();
    await end();
  });
});
