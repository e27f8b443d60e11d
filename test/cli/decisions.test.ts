import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { Command } from 'commander';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { addSelectionFlags, type SelectionFlags, selector } from '../../src/cli/decisions.ts';
import type { DecisionRecord } from '../../src/decisions/record.ts';
import { rows } from '../support/check-command.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { aRecord, decisionsIn, decisionsInFile, saidBy } from '../support/decision-logs.ts';
import { confFile, projectFile, temporaryFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { ledgerAt, newLedger, storeDecisions } from '../support/ledgers.ts';
import {
  COMMAND,
  printed,
  refused,
  refusedWith,
  startCommand,
  startUntilFinished,
} from '../support/run-command.ts';

const EXAMPLE = projectFile('examples/decisions.jsonl');
const PATIENT = { timeout: 120_000, interval: 20 };
/** Erases the screen, names the window, rings the bell, and ends the line in three ways; C0, DEL and C1. */
const HOSTILE = '\u001b[2J\u001b]0;owned\u0007\u009b31mred\r\nforged row  x\u007f\u2028y';
const STEERING = /(?!\n)[\p{Cc}\u2028\u2029]/u;

const decisions = (...args: string[]) => runProgramInProcess(['decisions', ...args]);
function spawned(...args: string[]) {
  const child = spawn(process.execPath, [COMMAND, 'decisions', ...args]);
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}
const text = (records: readonly DecisionRecord[]) =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('');
const logOf = (...records: DecisionRecord[]) => temporaryFile('decisions.jsonl', text(records));
const named = (lease_name: string, changes: Partial<DecisionRecord> = {}) =>
  aRecord({ lease_name, ...changes });
const names = (stdout: string) => decisionsIn(stdout).map(({ lease_name }) => lease_name);

describe('decisions tail', () => {
  it('prints the latest decisions as a table for people', async () => {
    const stdout = printed(await decisions('tail', EXAMPLE, '--lines', '4'));
    const [head, ...cells] = rows(stdout);
    expect(head).toEqual(['TIME', 'OUTCOME', 'OPERATION', 'PROJECT', 'USER', 'LEASE', 'FILTER', 'MESSAGE']);
    expect(cells).toHaveLength(4);
    expect(cells[1]).toEqual([
      '2026-11-19T15:10:46.470Z',
      'rejected',
      'create',
      'genomics',
      'frank',
      'blast',
      'MaxLeaseDurationFilter',
      'The lease is 864000 seconds (10 days) long; the longest allowed for any lease is 172800 seconds (2 days).',
    ]);
    const starts = stdout.split('\n').flatMap((line) => (line === '' ? [] : line.indexOf('create')));
    expect(new Set(starts.filter((start) => start !== -1)).size).toBe(1);
  });

  it('says of a lease that was allowed what is behind its outcome', async () => {
    const { stdout } = await decisions('tail', EXAMPLE, '--outcome', 'audit', '--outcome', 'exempt');
    expect(stdout).toMatch(
      /audit +create .*ExternalServiceFilter \(tried, not enforced\) would have rejected: This/,
    );
    expect(stdout).toMatch(
      /exempt +create .*Project operations is in exempt_projects: no filter was asked\.$/m,
    );
  });

  it('names behind a rejection what audited filters would have rejected', async () => {
    const log = logOf(
      named('a', { allowed: false, message: 'no', warnings: ['BFilter would have rejected.'] }),
    );
    expect((await decisions('tail', log)).stdout).toMatch(/no BFilter would have rejected\.$/m);
  });

  it('reads standard input, and packed files', async () => {
    const flags = ['--format', 'json', '--lines', '3'];
    const expected = decisionsInFile(EXAMPLE).slice(-3);
    const piped = await runProgramInProcess(['decisions', 'tail', '-', ...flags], {
      stdin: readFileSync(EXAMPLE),
    });
    expect(decisionsIn(piped.stdout)).toEqual(expected);
    const packed = temporaryFile('decisions.jsonl-20261120', gzipSync(readFileSync(EXAMPLE)));
    expect(decisionsIn((await decisions('tail', packed, ...flags)).stdout)).toEqual(expected);
  });

  it('leaves out what is no decision, and says how much that was', async () => {
    const log = temporaryFile(
      'decisions.jsonl',
      `Listening\n${text([named('a')])}{"msg":"other"}\n${'x'.repeat(1_100_000)}\n${text([named('b')])}{"time":"2026`,
    );
    const { code, stdout, stderr } = await decisions('tail', log, '--format', 'json');
    expect(code).toBe(0);
    expect(names(stdout)).toEqual(['a', 'b']);
    expect(stderr).toBe('warning: skipped lines: 3 that are not decisions, 1 longer than 1 MiB\n');
  });

  it('prints nothing that would steer a terminal, and loses nothing of it in JSON', async () => {
    const hostile = named(HOSTILE, {
      project_id: HOSTILE,
      user_id: HOSTILE,
      filter: HOSTILE,
      message: HOSTILE,
      warnings: [HOSTILE],
      allowed: false,
      outcome: 'rejected',
      request_id: HOSTILE,
      filters: [saidBy(HOSTILE, 'rejected', { message: HOSTILE })],
    });
    const log = logOf(hostile, { ...hostile, message: null });
    for (const format of ['table', 'json']) {
      const { stdout, stderr } = await decisions('tail', log, '--format', format);
      expect(stdout + stderr).not.toMatch(STEERING);
      expect(stdout.trimEnd().split('\n')).toHaveLength(format === 'json' ? 2 : 3);
      const stats = await decisions('stats', log, '--format', format);
      expect(stats.stdout + stats.stderr).not.toMatch(STEERING);
    }
    const { stdout } = await decisions('tail', log, '--format', 'json');
    expect(decisionsIn(stdout)[0]).toEqual(hostile);
    const stats = JSON.parse((await decisions('stats', log, '--format', 'json')).stdout);
    expect(stats.users.rows).toEqual([{ user_id: HOSTILE, decisions: 2, refused: 2 }]);
  });
});

describe('decisions tail --follow', () => {
  function follow(...args: string[]) {
    const running = startUntilFinished(['decisions', 'tail', '--follow', '--format', 'json', ...args]);
    const until = (...expected: string[]) =>
      vi.waitFor(() => expect(names(running.output().stdout)).toEqual(expected), PATIENT);
    return { ...running, until };
  }

  it('goes on with what is appended, over a rotation and a cut, and ends at SIGINT with 0', async () => {
    const log = logOf(named('a'), named('b'), named('c'));
    const { until, process, ended } = follow(log, '--lines', '2');
    await until('b', 'c');
    appendFileSync(log, text([named('d')]).slice(0, 100));
    appendFileSync(log, text([named('d')]).slice(100));
    await until('b', 'c', 'd');
    renameSync(log, `${log}.1`);
    appendFileSync(`${log}.1`, text([named('e')]));
    writeFileSync(log, text([named('f'), named('f2')]));
    await until('b', 'c', 'd', 'e', 'f', 'f2');
    writeFileSync(log, '');
    // Less than was there before: that the file was cut can be seen whenever it is looked at.
    appendFileSync(log, `${text([named('g')])}{"cut`);
    await until('b', 'c', 'd', 'e', 'f', 'f2', 'g');
    process.kill('SIGINT');
    expect(await ended).toMatchObject({
      code: 0,
      stderr: 'warning: skipped lines: 1 that are not decisions, 0 longer than 1 MiB\n',
    });
  });

  it('prints only what is asked for, in columns that grow', async () => {
    const log = logOf(named('a'), named('b', { user_id: 'bob' }));
    const running = startCommand(['decisions', 'tail', log, '--follow', '--user', 'alice']);
    await running.printed(/ a$/m);
    appendFileSync(log, text([named('x', { user_id: 'bob' }), named('c', { project_id: 'p'.repeat(60) })]));
    await running.printed(/ c$/m);
    appendFileSync(log, text([named('d')]));
    await running.printed(/ d$/m);
    running.process.kill('SIGINT');
    const { stdout } = await running.ended;
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(4);
    expect(lines[3]?.indexOf('alice')).toBe(lines[2]?.indexOf('alice'));
  });

  it('prints what comes through standard input as it comes, to its end', async () => {
    const child = spawned('tail', '-', '--follow', '--format', 'json');
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk;
    });
    for (const expected of [['a'], ['a', 'b']]) {
      child.stdin.write(text([named(expected.at(-1) ?? '')]));
      await expect.poll(() => names(stdout)).toEqual(expected);
    }
    child.stdin.end(text([named('c')]).trimEnd());
    expect(await once(child, 'close')).toEqual([0, null]);
    expect(names(stdout)).toEqual(['a', 'b', 'c']);
  });

  it('ends at a signal also while it waits for standard input', async () => {
    const child = spawned('tail', '-', '--follow');
    // The heading: it has begun.
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    expect(await once(child, 'close')).toEqual([0, null]);
  });
});

describe('decisions stats', () => {
  it('says who was refused, by which filter, how often', async () => {
    const stdout = printed(await decisions('stats', EXAMPLE, '--top', '4'));
    expect(stdout).toMatch(
      /^24 decisions, 9 refused, from 2026-11-19T08:02:11\.480Z to 2026-11-19T16:48:55\.912Z\n/,
    );
    for (const row of [
      /^rejected +MaxLeaseDurationFilter +5 +20\.8 %$/m,
      /^MaxLeaseDurationFilter +23 +5 +0 +0 +0 +0\.\d+ +0\.\d+ +0\.\d+ +0\.\d+$/m,
      /^ExternalServiceFilter +18 +2 +3 +1 +1 +\d+(\.\d+)? +10000 +10000 +10000$/m,
      /^genomics +5 +8$/m,
      /^bob +4 +5$/m,
      /^3 +MaxLeaseDurationFilter +bob 2, frank 1 +The lease is 864000 seconds \(10 days\) long;/m,
      /^2 +ExternalServiceFilter +\w+ 1, \w+ 1 +The lease could not be checked\./m,
      /^TIMES +AUDITED FILTER +USERS +MESSAGE$/m,
      /^1 +ExternalServiceFilter +\w+ 1 +This lease/m,
      /^\(all others\) +1 +4$/m,
    ]) {
      expect(stdout).toMatch(row);
    }
  });

  it('says the same as JSON, in the names of the log', async () => {
    const { stdout } = await decisions('stats', EXAMPLE, '--format', 'json', '--top', '1');
    expect(stdout.trimEnd().split('\n')).toHaveLength(1);
    expect(JSON.parse(stdout)).toMatchObject({
      decisions: 24,
      from: '2026-11-19T08:02:11.480Z',
      outcomes: expect.arrayContaining([
        { outcome: 'rejected', filter: 'ExternalServiceFilter', decisions: 2, refused: 2 },
      ]),
      filters: [
        { filter: 'MaxLeaseDurationFilter' },
        { asked: 18, rejected: 2, failed: 3, allowed_on_error: 1, would_have_rejected: 1 },
      ],
      users: { rows: [{ user_id: 'bob', decisions: 5, refused: 4 }], others: { decisions: 19, refused: 5 } },
      duration_ms: { p50: expect.any(Number), p90: 10_000, p99: 10_000, max: 10_000 },
      cut: [],
    });
  });

  it('counts several files together: as they are, packed, and standard input', async () => {
    const parts = ['a', 'b'].map((name) => gzipSync(text([named(name)])));
    const packed = temporaryFile('decisions.jsonl.1.gz', Buffer.concat(parts));
    const plain = temporaryFile('decisions.jsonl', `${text([named('c')])}broken\n`);
    const { stdout, stderr } = await runProgramInProcess(
      ['decisions', 'stats', packed, plain, '-', '--format', 'json'],
      { stdin: `${text([named('d', { user_id: 'bob' })])}broken` },
    );
    expect(JSON.parse(stdout)).toMatchObject({ decisions: 4 });
    expect(stderr).toBe('warning: skipped lines: 2 that are not decisions, 0 longer than 1 MiB\n');
  });

  it('counts only what is asked for, and says when there is nothing', async () => {
    const { stdout } = await decisions('stats', EXAMPLE, '--project', 'robotics', '--operation', 'create');
    expect(stdout).toMatch(/^3 decisions, 1 refused, /);
    expect(stdout).not.toContain('climate');
    expect(printed(await decisions('stats', EXAMPLE, '--since', '1s'))).toBe('no decisions\n');
  });
});

describe('wrong usage', () => {
  it.each([
    '',
    'tail',
    'tail LOG --lines 10001',
    'tail /nowhere/decisions.jsonl',
    'tail /dev/null --follow',
    'stats',
    'stats - -',
    'stats LOG --top 0',
  ])('ends with 2 and one line: "%s"', async (line) => {
    const args = line.replace('LOG', EXAMPLE).split(' ');
    const result = await decisions(...args.filter((arg) => arg !== ''));
    expect(result).toEqual(refused(/^error: (?!.*\.js:\d).+\n$/));
  });

  it('names the file that can’t be read, and why', async () => {
    const folder = temporaryFolder();
    expect((await decisions('stats', folder)).stderr).toBe(
      `error: ${folder}: could not be read: it is a folder\n`,
    );
    const cut = temporaryFile('log.gz', gzipSync(readFileSync(EXAMPLE)).subarray(0, 200));
    expect((await decisions('tail', cut)).stderr).toBe(
      `error: ${cut}: could not be read: unexpected end of file\n`,
    );
  });
});

it.each([
  ['tail', ['tail', '--lines', '10000']],
  ['tail --follow', ['tail', '--follow', '--lines', '10000']],
])('a reader that goes away ends %s with 141, without a word', async (_, args) => {
  const log = logOf(...Array.from({ length: 10_000 }, (_, index) => named(String(index))));
  const child = spawned(...args, log);
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  await once(child.stdout, 'data');
  child.stdout.destroy();
  expect(await once(child, 'close')).toEqual([141, null]);
  expect(stderr).toBe('');
});

async function stored(records: readonly DecisionRecord[], service = 'decision_store = all') {
  const connection = await newLedger();
  const ledger = await ledgerAt(connection);
  const asked = { start: 1_796_119_200_000_000n, end: 1_796_122_800_000_000n };
  await storeDecisions(ledger, records, asked);
  await ledger.close();
  const conf = confFile(
    `[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 60\n[service]\n${service}\n[ledger]\nconnection = ${connection}\n`,
  );
  return (...args: string[]) => runProgramInProcess(['decisions', ...args, '--config-file', conf]);
}

describe('decisions of the ledger', () => {
  it.each([
    [],
    ['--lines', '4'],
    ['--lines', '0'],
    ['--project', 'climate', '--outcome', 'rejected', '--outcome', 'failed'],
    ['--filter', 'ExternalServiceFilter', '--format', 'json'],
    ['--since', '2026-11-19T10:00', '--until', '2026-11-19T15:10:46.470Z', '--user', 'alice'],
  ])('are printed by tail as those of a log: %s %s %s %s', async (...flags) => {
    const decisions = await stored(decisionsInFile(EXAMPLE));
    const ofLog = await runProgramInProcess(['decisions', 'tail', EXAMPLE, ...flags]);
    expect(await decisions('tail', ...flags)).toEqual({ ...ofLog, stderr: '' });
  });

  it('are counted by stats as those of a log', async () => {
    const decisions = await stored(decisionsInFile(EXAMPLE));
    const ofLog = await runProgramInProcess(['decisions', 'stats', EXAMPLE, '--format', 'json']);
    const stdout = printed(await decisions('stats', '--format', 'json'));
    const sorted = (text: string) => JSON.stringify(JSON.parse(text)).split('').sort().join('');
    expect(sorted(stdout)).toBe(sorted(ofLog.stdout));
  });

  it('say of a request why it was refused, with the answer of every filter', async () => {
    const refused = aRecord({
      request_id: 'req-1',
      allowed: false,
      outcome: 'rejected',
      filter: 'BFilter',
      message: 'No \u001b[2J',
      filters: [
        saidBy('AFilter', 'allowed'),
        saidBy('BFilter', 'rejected', { message: 'No \u001b[2J', duration_ms: 2 }),
      ],
    });
    const decisions = await stored([aRecord({ request_id: 'req-2' }), refused]);
    const stdout = printed(await decisions('show', 'req-1'));
    expect(stdout).toMatch(/DATES +2026-12-01T10:00:00Z to 2026-12-01T11:00:00Z/);
    expect(stdout).toMatch(/REPLICA +host\/7, configuration 1/);
    expect(stdout).toMatch(/AFilter +allowed +1\s*\nBFilter +rejected +2 +No \\u001b\[2J/);
    expect(stdout).not.toContain('\u001b');
    const json = await decisions('show', 'req-1', '--format', 'json');
    expect(decisionsIn(json.stdout)).toEqual([refused]);
    expect(await decisions('show', 'req-3')).toEqual(
      refusedWith('no decision of the request req-3 is stored'),
    );
  });

  it('are not there where none are stored, which is said', async () => {
    const decisions = await stored([], 'decision_store = none');
    const { code, stderr } = await decisions('tail');
    expect(code).toBe(0);
    expect(stderr).toContain('no decisions are stored: see [service] decision_store');
  });

  it('are not looked for beside a log', async () => {
    const decisions = await stored([]);
    for (const command of ['tail', 'stats']) {
      expect(await decisions(command, EXAMPLE)).toEqual(
        refusedWith('expected a log or a configuration with a ledger, got both'),
      );
    }
  });
});

/** What a command with these flags takes. */
function selected(
  args: readonly string[],
  records: readonly DecisionRecord[] = decisionsInFile(EXAMPLE),
): DecisionRecord[] {
  const command = addSelectionFlags(new Command())
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  command.parse(args, { from: 'user' });
  return records.filter(selector(command.opts<SelectionFlags>()));
}

describe('the flags of a selection', () => {
  it.each<[string[], (record: DecisionRecord) => boolean]>([
    [[], () => true],
    [['--project', 'climate', '--project', 'staff'], (record) => record.project_id === 'climate'],
    [['--user', 'bob', '--user', 'dave'], ({ user_id }) => user_id === 'bob' || user_id === 'dave'],
    [['--filter', 'RulesFilter'], () => false],
    [['--outcome', 'failed', '--outcome', 'exempt'], (one) => /^(failed|exempt)$/.test(one.outcome)],
    [['--operation', 'end', '--operation', 'update'], ({ operation }) => operation !== 'create'],
    [
      ['--since', '2026-11-19 10:00', '--until', '2026-11-19T14:03:02.119Z'],
      ({ time }) => time >= '2026-11-19T10:00:00.000Z' && time < '2026-11-19T14:03:02.119Z',
    ],
  ])('take what they say: %j', (args, isMeant) => {
    expect(selected(args)).toEqual(decisionsInFile(EXAMPLE).filter(isMeant));
  });

  it.each([
    [
      '--outcome',
      'denied',
      'Allowed choices are allowed, changed, rejected, failed, exempt, audit, allowed-on-error, bypassed.',
    ],
    [
      '--operation',
      'delete',
      'Allowed choices are create, update, commit-create, commit-update, end, skypilot.validate, ',
    ],
    ['--since', '5w', '--since: expected a date in ISO 8601, today, yesterday'],
    ['--until', '2026-13-01', '--until: expected a date'],
  ])('are refused where they mean nothing: %s %s', (flag, value, message) => {
    expect(() => selected([`${flag}=${value}`])).toThrow(message);
  });
});
