/** Old leases are folded, and restored, while services decide about new ones of the same project: nobody is charged wrong, and nobody is shut out. */
import { spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { listBudgets } from '../../src/ledger/budgets/budgets.ts';
import { foldedOfLedger } from '../../src/ledger/folding/totals.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import { rows } from '../../src/ledger/storage/database.ts';
import { recordLease } from '../ledger/recorded-leases.ts';
import { confFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { newClients, startClients } from '../support/lease-clients.ts';
import { inspect } from '../support/ledger-inspection.ts';
import { SCALE, startServices, withBudget } from '../support/ledger-processes.ts';
import { DIALECTS, fileOf, ledgerAt, NO_WAIT, newLedgers, openedLedger, runSql } from '../support/ledgers.ts';
import { PROJECT } from '../support/requests.ts';
import { COMMAND } from '../support/run-command.ts';
import { canMount, mounted } from './mounts.ts';

const newLedger = newLedgers();
const TIMEOUT = 1_200_000 * SCALE;
/** Of each project: those of the clients' project wait for the same lock as the clients. */
const OLD = 200 * SCALE;
const PROJECTS = [PROJECT, 'ocean', 'desert'];
const ALL = BigInt(OLD * PROJECTS.length);
const BEFORE = ['--before', '2017-01-01'];

/** What makes a project notice that its leases have ended. */
const LATER = 'notices that others have ended';

const filled = new Map<string, Promise<string>>();

/** Leases of 2016, all of which have ended, and a budget for the clients' project. They are recorded once, and copied. */
async function filledLedger(dialect: (typeof DIALECTS)[number]): Promise<string> {
  const first = filled.get(dialect) ?? newLedger(dialect).then(recordOld);
  filled.set(dialect, first);
  return newLedger(dialect, await first);
}

/** Resolves to the connection. */
async function recordOld(connection: string): Promise<string> {
  await (await withBudget(connection, String(24 * (OLD + 1) + 9000))).close();
  let now = '2016-01-01T00:00:00Z';
  const ledger = await ledgerAt(connection, { now: () => now });
  const recordAll = async (projectId: string) => {
    for (let number = 0; number < OLD; number += 1) {
      await recordLease(ledger, { name: `old ${number}`, projectId, start: '2016-02-01', end: '2016-02-02' });
    }
  };
  await Promise.all(PROJECTS.map(recordAll));
  now = '2017-01-01T00:00:00Z';
  for (const projectId of PROJECTS) {
    await recordLease(ledger, { name: LATER, projectId, start: '2017-01-02', end: '2017-01-03' });
  }
  await ledger.close();
  return connection;
}

/** Rows and entries of old leases, as they are in the ledger. */
async function oldIn(ledger: Ledger) {
  const { queries } = ledger.database;
  const leases = queries.selectFrom('leases').selectAll().where('name', 'like', 'old %').orderBy('id');
  const found = await ledger.read('read', () => rows(leases.compile()), NO_WAIT);
  const numbers = new Set(found.map(({ id }) => id));
  const entries = queries.selectFrom('entries').selectAll().orderBy('id');
  const posted = await ledger.read('read', () => rows(entries.compile()), NO_WAIT);
  return { leases: found, entries: posted.filter(({ lease }) => numbers.has(lease)) };
}

/** How often each old lease is in a file. */
function namesIn(file: string): string[] {
  if (!existsSync(file)) {
    return [];
  }
  const bytes = readFileSync(file);
  const lines = String(file.endsWith('.gz') ? gunzipSync(bytes) : bytes).split('\n');
  return lines.slice(1, -1).map((line) => {
    const { lease } = JSON.parse(line) as { lease: { name: string; project_id: string } };
    return `${lease.project_id} ${lease.name}`;
  });
}

function commandLine(connection: string) {
  const conf = confFile(
    `[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 86400\n[ledger]\nconnection = ${connection}\n`,
  );
  return (...args: string[]) => [COMMAND, 'ledger', ...args, '--config-file', conf];
}

/** Killed as soon as it is time, if it still runs. Resolves to its exit code, or the signal. */
async function killedWhen(args: string[], isTime: () => Promise<boolean>): Promise<number | string | null> {
  const child = spawn(process.execPath, args, { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = new Promise<number | string | null>((resolve) =>
    child.once('exit', (code, signal) => resolve(signal ?? code)),
  );
  while (child.exitCode === null && child.signalCode === null && !(await isTime())) {
    await pause(1);
  }
  child.kill('SIGKILL');
  return ended;
}

describe.each(DIALECTS)('folding beside 3 services and 16 clients on %s', (dialect) => {
  it('loses no lease, overdraws no budget and shuts nobody out, also when it is killed', {
    timeout: TIMEOUT,
  }, async () => {
    const connection = await filledLedger(dialect);
    const ledger = await openedLedger(connection);
    const before = await oldIn(ledger);
    const services = await startServices(3, { connection, enforcement: 'max_leases_per_project = 1000' });
    const clients = newClients(16);
    const load = startClients(clients, services);
    const answers = () => clients.flatMap((client) => client.answers);
    const wrong: string[] = [];
    const isAnswered = async (work: () => Promise<unknown>) => {
      const count = answers().length;
      await work();
      const [budget] = await listBudgets(ledger, PROJECT, NO_WAIT);
      if (budget === undefined || budget.taken > budget.amount || budget.taken < 0n) {
        wrong.push(`${budget?.taken} of ${budget?.amount}`);
      }
      if (answers().length === count) {
        wrong.push('nobody was answered meanwhile');
      }
    };
    const folder = temporaryFolder();
    const run = commandLine(connection);
    const folded = async () => (await foldedOfLedger(ledger, NO_WAIT))?.leases ?? 0n;
    const folds = (number: number) => join(folder, `folded-${number}.jsonl${number % 2 ? '.gz' : ''}`);
    const files: string[] = [];
    const compact = async (isTime: () => Promise<boolean>) => {
      const file = folds(files.length);
      files.push(file);
      const how = await killedWhen(run('compact', ...BEFORE, '--export', file), isTime);
      expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
      return how;
    };

    const ends: (number | string | null)[] = [];
    for (const part of [10n, 4n, 2n]) {
      await isAnswered(async () => ends.push(await compact(async () => (await folded()) >= ALL / part)));
    }
    expect(ends).toContain('SIGKILL');
    await isAnswered(async () => expect(await compact(async () => false)).toBe(0));
    expect(await folded()).toBe(ALL);
    // Each is in at least one file, and those that are in two are the ones that were kept when it was killed.
    const kept = files.flatMap(namesIn);
    expect(new Set(kept).size).toBe(Number(ALL));

    await isAnswered(async () => {
      const [first = ''] = files;
      await killedWhen(run('restore', '--from', first), async () => (await folded()) < ALL);
    });
    for (const file of files.filter((one) => existsSync(one))) {
      await isAnswered(async () => {
        expect(await killedWhen(run('restore', '--from', file), async () => false)).toBe(0);
      });
    }
    expect(await folded()).toBe(0n);
    expect(await oldIn(ledger)).toEqual(before);

    // Two at once: both are done, and each lease is folded once.
    await isAnswered(async () => {
      expect(await Promise.all([compact(async () => false), compact(async () => false)])).toEqual([0, 0]);
    });
    expect(await folded()).toBe(ALL);
    await load.stop();
    expect(wrong).toEqual([]);
    const rest = (await inspect(ledger, clients)).filter((text) => !text.includes(LATER));
    expect(rest).toEqual([]);
    const strange = answers().filter(
      ({ status, message }) => status !== 204 && !/would cost|pending or active leases/.test(message ?? ''),
    );
    expect(strange).toEqual([]);
    expect(clients.reduce((sum, { unanswered }) => sum + unanswered, 0)).toBe(0);
  });
});

describe.runIf(canMount)('a disk that becomes full while leases are folded', { timeout: TIMEOUT }, () => {
  const run = (args: string[]) => spawnSync(process.execPath, args, { encoding: 'utf8' });

  it.each(DIALECTS)('keeps each lease in the file or on %s', async (dialect) => {
    const connection = await filledLedger(dialect);
    const ledger = await openedLedger(connection);
    const before = await oldIn(ledger);
    const args = commandLine(connection);
    const disk = mounted(`${OLD}k`);
    const file = join(disk, 'folded.jsonl');
    const { status, stdout, stderr } = run(args('compact', ...BEFORE, '--export', file));
    expect({ status, stdout }).toEqual({ status: 74, stdout: '' });
    expect(stderr).toContain('the disk is full');
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
    const folded = (await foldedOfLedger(ledger, NO_WAIT))?.leases ?? 0n;
    expect(folded).toBeGreaterThan(0n);
    expect(folded).toBeLessThan(ALL);

    const rest = join(temporaryFolder(), 'rest.jsonl');
    expect(run(args('compact', ...BEFORE, '--export', rest))).toMatchObject({ status: 0, stderr: '' });
    expect(run(args('restore', '--from', file)).status).toBe(0);
    expect(run(args('restore', '--from', rest))).toMatchObject({ status: 0, stderr: '' });
    expect(await oldIn(ledger)).toEqual(before);
  });

  it('leaves a ledger on SQLite as it was, if it is the disk of the ledger', async () => {
    const disk = mounted('16m');
    const connection = `sqlite://${join(disk, 'ledger.db')}`;
    copyFileSync(fileOf(await filledLedger('sqlite')), fileOf(connection));
    const ledger = await openedLedger(connection);
    const before = await oldIn(ledger);
    const args = commandLine(connection);
    const ballast = join(disk, 'ballast');
    // Otherwise the transactions go where others were.
    runSql(connection, 'PRAGMA wal_checkpoint(TRUNCATE)');
    expect(() => writeFileSync(ballast, Buffer.alloc(32 * 1024 * 1024))).toThrow('no space left');
    // What some of the transactions need.
    truncateSync(ballast, statSync(ballast).size - 256 * 1024);
    const first = join(temporaryFolder(), 'first.jsonl');
    const { status, stdout } = run(args('compact', ...BEFORE, '--export', first));
    expect({ status, stdout }).toEqual({ status: 3, stdout: '' });
    rmSync(ballast);
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
    const rest = join(temporaryFolder(), 'rest.jsonl');
    expect(run(args('compact', ...BEFORE, '--export', rest))).toMatchObject({ status: 0, stderr: '' });
    expect((await foldedOfLedger(ledger, NO_WAIT))?.leases).toBe(ALL);
    for (const file of [first, rest].filter((one) => existsSync(one))) {
      expect(run(args('restore', '--from', file))).toMatchObject({ status: 0, stderr: '' });
    }
    expect(await oldIn(ledger)).toEqual(before);
  });
});
