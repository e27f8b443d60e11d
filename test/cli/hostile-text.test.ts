import { describe, expect, it } from 'vitest';
import { filterFlags } from '../support/check-command.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { capturedFile, confFile, temporaryFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { createLasting } from '../support/requests.ts';
import { refused } from '../support/run-command.ts';

/** Erases the screen, sets the window title, rings the bell, ends the line in three ways, and turns what follows around; C0 and C1. */
const HOSTILE = '\u001b[2J\u001b]0;owned\u0007\u009b31mred\r\nforged row  x\u2028y\u202ez\u{e0041}';
const CONTROLS = /(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/u;

/** The lines that are printed for people, and not JSON. */
function forPeople(text: string): string {
  return text
    .split('\n')
    .filter((line) => !line.startsWith('{'))
    .join('\n');
}

const filters = () =>
  filterFolder({
    'hostile-filter.js': filterSource('HostileFilter', {
      create: `return reject(${JSON.stringify(HOSTILE)} + lease.name);`,
      update: `return allow({ ...newLease, name: ${JSON.stringify(HOSTILE)} });`,
      end: `throw new Error(${JSON.stringify(HOSTILE)});`,
    }),
  });

describe('a control character', () => {
  it.for(['create', 'update', 'end'])(
    'of a filter or a lease is escaped in the table of check %s',
    async (operation) => {
      const request = createLasting(60);
      const lease = { ...request.lease, name: HOSTILE };
      const file = {
        create: temporaryFile('create.json', JSON.stringify({ ...request, lease })),
        update: capturedFile('check-update-extend'),
        end: capturedFile('on-end-active'),
      }[operation];
      const { stdout, stderr } = await runProgramInProcess([
        'check',
        operation,
        String(file),
        '--explain',
        ...filterFlags(filters(), 'HostileFilter'),
      ]);
      expect(stdout).not.toMatch(CONTROLS);
      expect(forPeople(stderr)).not.toMatch(CONTROLS);
      // The heading, the file, for an end its warning, the filter.
      expect(stdout.trimEnd().split('\n')).toHaveLength(operation === 'end' ? 4 : 3);
    },
  );

  it('of a configuration is escaped by config show and config validate', async () => {
    const conf = confFile(`[enforcement]\nusage_budget_rate_attribute = \u001b[2J\u009b31mred\n`);
    const show = (...args: string[]) =>
      runProgramInProcess(['config', 'show', '--config-file', conf, ...args]);
    const table = await show('--origin');
    expect(table.code).toBe(0);
    expect(table.stdout + table.stderr).not.toMatch(CONTROLS);
    expect(table.stdout).toMatch(/^enforcement +usage_budget_rate_attribute +\S+ +\S.*red +\S+:2$/m);
    const json = (await show('--format', 'json')).stdout;
    expect(json).not.toMatch(CONTROLS);
    expect(JSON.parse(json).enforcement.usage_budget_rate_attribute).toBe('\u001b[2J\u009b31mred');
    const wrong = confFile(`[enforcement]
enabled_filters = ${HOSTILE.replaceAll(/[\r\n]/g, '')}
max_lease_duration = \u001b[31m60
\u001b[1moption = 1
`);
    const told = await runProgramInProcess(['config', 'validate', '--config-file', wrong]);
    expect(told).toEqual(refused(/^((error|warning): [^\n]+\n)+$/));
    expect(told.stderr).not.toMatch(CONTROLS);
  });

  it('reaches a program unchanged, in JSON on one line', async () => {
    const file = capturedFile('check-create-physical-host');
    const flags = ['--format', 'json', ...filterFlags(filters(), 'HostileFilter')];
    const { stdout } = await runProgramInProcess(['check', 'create', file, ...flags]);
    expect(stdout.trimEnd().split('\n')).toHaveLength(1);
    expect(JSON.parse(stdout).message).toBe(`${HOSTILE}climate-run-7`);
  });
});
