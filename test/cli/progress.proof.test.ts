/** Long commands show on a terminal how far they are, and nothing elsewhere. */
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { aRecord } from '../support/decision-logs.ts';
import { confWith, RULES } from '../support/lease-cases.ts';
import { onTerminal, type Screen } from '../support/on-terminal.ts';
import { policyServer } from '../support/policy-server.ts';
import { COMMAND } from '../support/run-command.ts';
import { folderOf } from '../support/skypilot-cases.ts';

const TIMEOUT = 120_000;

const folderWithLog = (lines: number) => {
  const request = {
    context: { user_id: 'alice', project_id: 'climate' },
    lease: {
      start_date: '2026-12-01T09:00',
      end_date: '2026-12-01T10:00',
      reservations: [{ resource_type: 'physical:host', min: 1, max: 1 }],
    },
  };
  const log = `${JSON.stringify({ ...aRecord(), request })}\n`.repeat(lines);
  return folderOf({ 'blazar.conf': confWith(''), 'rules.yaml': RULES, log });
};
const REPLAY = ['test', '--replay', 'log', '--config-file', 'blazar.conf', '--format', 'json'];
// biome-ignore lint/suspicious/noControlCharactersInRegex: they remove the line.
const LINE = /\r\x1b\[K\[#* *\] +\d+ % {2}[\d,]+ decisions, [\d,]+\/s/;

it(
  'shows how far a replay is on a terminal, and removes it, and shows nothing in a pipe',
  async () => {
    const folder = folderWithLog(60_000);
    const { code, out, terminal } = await onTerminal('wait', REPLAY, { cwd: folder });
    expect([code, JSON.parse(out)]).toMatchObject([0, { same: 60_000 }]);
    expect(terminal).toMatch(LINE);
    expect(terminal.endsWith('\r\x1b[K')).toBe(true);
    const piped = spawnSync(process.execPath, [COMMAND, ...REPLAY], { cwd: folder, encoding: 'utf8' });
    expect([piped.status, piped.stderr, piped.stdout]).toEqual([0, '', out]);
  },
  TIMEOUT,
);

it(
  'ends at a Ctrl-C, with a clean line',
  async () => {
    const { code, out, terminal } = await onTerminal('interrupt', REPLAY, { cwd: folderWithLog(300_000) });
    expect([code, out]).toEqual([-2, '']);
    expect(terminal).toMatch(LINE);
    expect(terminal.endsWith('\r\x1b[K')).toBe(true);
  },
  TIMEOUT,
);

/** A policy service that takes its time, so that its test shows how far it is. */
async function slowService(): Promise<string> {
  const { url } = await policyServer((_, response) => {
    setTimeout(() => response.writeHead(403, { 'Content-Type': 'application/json' }).end('{}'), 50);
  });
  return url;
}

describe('conformance of a slow service', () => {
  const runs = async (how: 'wait' | 'interrupt', screen?: Screen) =>
    onTerminal(how, ['conformance', await slowService()], { cwd: folderOf({}), ...screen });

  it(
    'shows how many checks are done, within the width of the terminal',
    async () => {
      for (const [columns, line] of [
        [80, /^\[#* *\] +\d+ % {2}\d+ checks, \d+\/s$/],
        [20, /^ *\d+ % {2}\d+ checks, /],
      ] as const) {
        const { code, out, terminal } = await runs('wait', { columns });
        expect([code, out]).toEqual([1, expect.stringContaining('failed')]);
        const lines = terminal.split('\r\x1b[K');
        expect(lines.length).toBeGreaterThan(2);
        expect(lines[1]).toMatch(line);
        expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(columns);
        expect([lines[0], lines.at(-1)]).toEqual(['', '']);
      }
    },
    TIMEOUT,
  );

  it(
    'shows nothing on a terminal that knows no codes',
    async () => {
      const { code, terminal } = await runs('wait', { term: 'dumb' });
      expect([code, terminal]).toEqual([1, '']);
    },
    TIMEOUT,
  );

  it(
    'ends at a Ctrl-C, with a clean line',
    async () => {
      const { code, out, terminal } = await runs('interrupt');
      expect([code, out]).toEqual([-2, '']);
      expect(terminal.endsWith('\r\x1b[K')).toBe(true);
    },
    TIMEOUT,
  );
});
