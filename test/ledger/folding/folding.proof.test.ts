/** Whatever leases there are, and whenever a process that folds or restores them is killed: in the end every row is there again. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { foldedOfLedger } from '../../../src/ledger/folding/totals.ts';
import { verifyLedger } from '../../../src/ledger/reports/verify.ts';
import { confFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { DIALECTS, giveBudget, ledgerAt, NO_WAIT, newLedgers, openedLedger } from '../../support/ledgers.ts';
import { recordLease } from '../recorded-leases.ts';
import { contentOf, fold, restore } from './folded-ledgers.ts';

const newLedger = newLedgers();
const TIMEOUT = 1_200_000;
const MAIN = new URL('../../../dist/src/cli/main.js', import.meta.url).pathname;
const DATES = ['2026-12-03', '2026-12-10', '2027-01-15'];

const day = (number: number) => new Date(Date.UTC(2026, 11, number)).toISOString().slice(0, 10);
const lease = fc.record({
  leaseId: fc.option(fc.constantFrom('A', 'B', 'C', 'D')),
  region: fc.constantFrom('', 'north', 'skypilot:'),
  projectId: fc.constantFrom('climate', 'ocean'),
  userId: fc.constantFrom('alice', 'bob'),
  start: fc.integer({ min: 1, max: 20 }),
  days: fc.integer({ min: 1, max: 20 }),
  at: fc.integer({ min: 0, max: 40 }),
});

it.each(DIALECTS)(
  'is undone row by row on %s, whatever was folded in whatever order',
  async (dialect) => {
    await fc.assert(
      fc.asyncProperty(fc.array(lease, { minLength: 1, maxLength: 12 }), async (leases) => {
        let now = '2026-11-21T00:00:00Z';
        const ledger = await ledgerAt(await newLedger(dialect), { now: () => now });
        try {
          await giveBudget(ledger, { amount: '1000' });
          for (const { start, days, at, ...one } of [...leases].sort((a, b) => a.at - b.at)) {
            now = new Date(Date.UTC(2026, 10, 21 + at)).toISOString();
            await recordLease(ledger, { ...one, name: 'x', start: day(start), end: day(start + days) });
          }
          now = '2027-06-01T00:00:00Z';
          const contents = [await contentOf(ledger)];
          const kept = [];
          for (const date of DATES) {
            kept.push(await fold(ledger, date));
            contents.push(await contentOf(ledger));
            expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
            expect(contents.at(-1)?.accounts).toEqual(contents[0]?.accounts);
          }
          for (const [index, date] of [...DATES.entries()].reverse()) {
            await restore(ledger, date, kept[index] ?? []);
            expect(await contentOf(ledger)).toEqual(contents[index]);
          }
        } finally {
          await ledger.close();
        }
      }),
      { numRuns: dialect === 'sqlite' ? 20 : 5 },
    );
  },
  TIMEOUT,
);

it.each(DIALECTS)(
  'is done again on %s after it was killed at any point',
  async (dialect) => {
    const connection = await newLedger(dialect);
    let now = '2016-01-01T00:00:00Z';
    const ledger = await openedLedger(connection, { now: () => now });
    for (let count = 0; count < 900; count += 1) {
      const projectId = `project-${count % 3}`;
      await recordLease(ledger, { name: 'x', projectId, start: '2016-02-01', end: '2016-02-02' });
    }
    now = '2017-01-01T00:00:00Z';
    for (const projectId of ['project-0', 'project-1', 'project-2']) {
      await recordLease(ledger, { name: 'later', projectId, start: '2096-02-01', end: '2096-02-02' });
    }
    const before = await contentOf(ledger);
    const folder = temporaryFolder();
    const conf = confFile(
      `[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 86400\n[ledger]\nconnection = ${connection}\n`,
    );
    const run = (...args: string[]) => [MAIN, 'ledger', ...args, '--config-file', conf];
    const left = async () => (await foldedOfLedger(ledger, NO_WAIT))?.leases ?? 0n;
    /** Killed when so many leases are folded. Resolves to whether it was. */
    const killed = async (args: string[], isReached: (folded: bigint) => boolean) => {
      const child = spawn(process.execPath, args, { stdio: 'ignore' });
      const ended = new Promise<string | null>((resolve) =>
        child.once('exit', (_, signal) => resolve(signal)),
      );
      while (child.exitCode === null && child.signalCode === null && !isReached(await left())) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      child.kill('SIGKILL');
      return await ended;
    };
    const files: string[] = [];
    const fileOf = (number: number) => join(folder, `folded-${number}.jsonl${number % 2 ? '.gz' : ''}`);
    const ends: (string | null)[] = [];
    for (const [number, least] of [100n, 300n, 600n].entries()) {
      const args = run('compact', '--before', '2016-06-01', '--export', fileOf(number));
      ends.push(await killed(args, (folded) => folded >= least));
      expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
    }
    // One may have folded the rest before it was seen.
    expect(ends).toContain('SIGKILL');
    const last = spawnSync(
      process.execPath,
      run('compact', '--before', '2016-06-01', '--export', fileOf(4)),
      { encoding: 'utf8' },
    );
    expect(last).toMatchObject({ status: 0, stderr: '' });
    expect(await left()).toBe(900n);
    expect((await contentOf(ledger)).accounts).toEqual(before.accounts);
    files.push(...readdirSync(folder).map((name) => join(folder, name)));
    expect(files.every((file) => existsSync(file))).toBe(true);
    const [first = ''] = files;
    expect([null, 'SIGKILL']).toContain(
      await killed(run('restore', '--from', first), (folded) => folded < 900n),
    );
    for (const file of [...files, first]) {
      const restored = spawnSync(process.execPath, run('restore', '--from', file), { encoding: 'utf8' });
      expect(restored).toMatchObject({ status: 0, stderr: '' });
    }
    expect(await contentOf(ledger)).toEqual(before);
  },
  TIMEOUT,
);
