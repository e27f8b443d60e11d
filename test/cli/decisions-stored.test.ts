import { describe, expect, it } from 'vitest';
import type { DecisionRecord } from '../../src/decisions/record.ts';
import { rowJson } from '../../src/decisions/store/rows.ts';
import { DecisionTable } from '../../src/decisions/store/table.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { aRecord, decisionsIn, decisionsInFile } from '../support/decision-logs.ts';
import { confFile, projectFile } from '../support/files.ts';
import { ledgerAt, NO_WAIT, newLedger } from '../support/ledgers.ts';

const EXAMPLE = projectFile('examples/decisions.jsonl');

async function stored(records: readonly DecisionRecord[], service = 'decision_store = all') {
  const connection = await newLedger();
  const ledger = await ledgerAt(connection);
  const asked = { start: 1_796_119_200_000_000n, end: 1_796_122_800_000_000n };
  const rows = records.map((record) => rowJson(record, record.allowed ? undefined : asked));
  await new DecisionTable(ledger.database, 'host/7').write(rows, NO_WAIT);
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
    const { code, stdout } = await decisions('stats', '--format', 'json');
    expect(code).toBe(0);
    const sorted = (text: string) => JSON.stringify(JSON.parse(text)).split('').sort().join('');
    expect(sorted(stdout)).toBe(sorted(ofLog.stdout));
  });

  it('say of a request why it was refused, with the answer of every filter', async () => {
    const refused = aRecord({
      ...{
        request_id: 'req-1',
        allowed: false,
        outcome: 'rejected',
        filter: 'BFilter',
        message: 'No \u001b[2J',
      },
      filters: [
        { filter: 'AFilter', outcome: 'allowed', audit: false, message: null, duration_ms: 1 },
        { filter: 'BFilter', outcome: 'rejected', audit: false, message: 'No \u001b[2J', duration_ms: 2 },
      ],
    });
    const decisions = await stored([aRecord({ request_id: 'req-2' }), refused]);
    const { code, stdout, stderr } = await decisions('show', 'req-1');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/DATES +2026-12-01T10:00:00Z to 2026-12-01T11:00:00Z/);
    expect(stdout).toMatch(/REPLICA +host\/7, configuration 1/);
    expect(stdout).toMatch(/AFilter +allowed +1\s*\nBFilter +rejected +2 +No \\u001b\[2J/);
    expect(stdout).not.toContain('\u001b');
    const json = await decisions('show', 'req-1', '--format', 'json');
    expect(decisionsIn(json.stdout)).toEqual([refused]);
    expect(await decisions('show', 'req-3')).toMatchObject({
      ...{ code: 2, stdout: '' },
      stderr: expect.stringContaining('no decision of the request req-3 is stored'),
    });
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
      expect(await decisions(command, EXAMPLE)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('expected a log or a configuration with a ledger, got both'),
      });
    }
  });
});
