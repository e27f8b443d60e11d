import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { printTable } from '../../src/cli/common/output.ts';
import { createProgram } from '../../src/cli/program.ts';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { projectFile } from '../support/files.ts';
import { printed, refused, runCommand } from '../support/run-command.ts';

const namesIn = (command: Command, prefix = ''): string[] => [
  prefix,
  ...command.commands.flatMap((one) => namesIn(one, `${prefix} ${one.name()}`.trim())),
];
const COMMANDS = namesIn(await createProgram());
/** They explain the options of [ledger] alone. */
const ON_LEDGER = COMMANDS.filter((name) =>
  /^(ledger (upgrade|list|show|export|verify|reconcile)|outbox .+|budget (set|remove|show|list|history|import|export)|report usage)$/.test(
    name,
  ),
);
/** They use the options of every section. */
const READERS = ['check', 'serve', 'config show', 'config validate'];
/** They explain options of some section. */
const WITH_OPTIONS = [...READERS, ...ON_LEDGER, 'skypilot review', 'skypilot policies'];

const words = (line: string) => line.split(' ').filter((word) => word !== '');

describe('--help', () => {
  let enforcementOptions: string[] = [];
  beforeAll(async () => {
    const { settings } = await readConfiguration({ environment: {}, configFiles: [] });
    enforcementOptions = settings.map(({ option }) => option.name);
  });

  it.for(COMMANDS)('explains "%s" and exits with 0', async (command) => {
    const stdout = printed(await runProgramInProcess([...words(command), '--help']));
    expect(stdout).toContain(['Usage: blazar-enforcement', ...words(command)].join(' '));
    expect(stdout).toContain('-h, --help');
    expect(stdout.includes('\nOptions of [')).toBe(WITH_OPTIONS.includes(command));
    if ([...READERS, ...ON_LEDGER].includes(command)) {
      expect(stdout).toMatch(/^Options of \[ledger\]:\n {2}connection +The database of the ledger/m);
    }
    if (READERS.includes(command)) {
      expect(enforcementOptions).toContain('max_lease_duration_extension_window');
      for (const name of enforcementOptions) {
        expect(stdout).toMatch(new RegExp(`^ +${name} +\\S`, 'm'));
      }
    }
  });

  it('lists the options of [service] for serve', async () => {
    const { stdout } = await runProgramInProcess(['serve', '--help']);
    expect(stdout).toMatch(/^Options of \[service\]:\n {2}host /m);
    expect(stdout).toMatch(/^ {2}tokens +\S/m);
  });
});

it.for(COMMANDS)('--version prints the version for "%s"', async (command) => {
  const { version } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
  expect(printed(await runProgramInProcess([...words(command), '--version']))).toBe(`${version}\n`);
});

describe('wrong usage', () => {
  it.for([
    ...['', 'bogus', 'chekc', '--bogus', 'check', 'check create', 'check delete x.json'],
    ...['check create x.json --format xml', 'check create x.json --config'],
    ...['check create /nowhere.json --config-file etc/policy-service.conf'],
    ...['check create x.json --config-file /nowhere.conf'],
    ...['check create x.json --config-file etc/policy-service.conf --config max_lease_duration=60'],
    ...['check create x.json --config-file etc/policy-service.conf --config enforcement.max_lease_duration='],
    ...[
      'check create x.json --config-file etc/policy-service.conf --config etc/blazar.conf --config etc/blazar.conf',
    ],
    ...['check create x.json --log-level loud', 'serve now', 'serve --port', 'config', 'config shwo'],
    ...['config show all', 'config show --format yaml', 'config validate --explain', 'filters'],
    ...['filters list all', 'filters list --format ini', 'skypilot', 'skypilot review'],
    ...['skypilot review x.yaml --format yaml', 'skypilot config all', 'scheduling-policy'],
    ...['scheduling-policy chekc', 'scheduling-policy check pod.yaml', 'ledger'],
    ...['ledger list --state closed', 'ledger list --limit 0', 'ledger reconcile'],
    ...['ledger reconcile leases.json --older-than soon'],
    ...['ledger verify --config-file etc/policy-service.conf --config ledger.connection=mysql://db/x'],
    ...['budget', 'budget set climate --from 2026-01-01 --until 2027-01-01', 'budget remove climate'],
    ...['conformance http://h/ --bogus', 'conformance http://h/ --format xml'],
    ...['conformance http://h/ http://other/', 'conformance http://h/ --token'],
    ...['outbox', 'outbox discard 1', 'outbox list --state gone', 'completion', 'completion tcsh'],
  ])('ends with 2 and one line: "%s"', async (line) => {
    expect(await runProgramInProcess(words(line))).toEqual(refused(/^error: (?!.*\.js:\d).+\n$/));
  });

  it('suggests the nearest command', async () => {
    const { stderr } = await runProgramInProcess(['chekc']);
    expect(stderr).toBe("error: unknown command 'chekc' (Did you mean check?)\n");
  });

  it.for([
    ['ledger compact --befor 2017-01-01', '--befor', '--before'],
    ['ledger restore --form folded.jsonl', '--form', '--from'],
    ['budget set climate --amuont 5', '--amuont', '--amount'],
    ['budget remove climate --fromm 2026-01-01', '--fromm', '--from'],
    ['outbox discard 1 --raeson gone', '--raeson', '--reason'],
    ['scheduling-policy certificates --config-fiel x', '--config-fiel', '--config-file'],
  ] as const)(
    'names the nearest flag where a required one is misspelt: "%s"',
    async ([line, flag, nearest]) => {
      expect(await runProgramInProcess(words(line))).toEqual(
        refused(`unknown option '${flag}' (Did you mean ${nearest}?)`),
      );
    },
  );

  it('is reported for each flag of serve that has a wrong value', async () => {
    const conf = ['--config-file', 'etc/policy-service.conf'];
    expect(await runCommand(['serve', ...conf, '--port', 'http', '--host='])).toEqual(
      refused(
        /^error: --host: \[service\] host: .+\nerror: --port: \[service\] port: expected .+, got "http"\n$/,
      ),
    );
  });
});

async function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): Promise<string> {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  try {
    await printTable(head, rows);
    return write.mock.calls.map(([text]) => String(text)).join('');
  } finally {
    write.mockRestore();
  }
}

it('aligns the columns, also of wide characters, and ends no line with spaces', async () => {
  const rows = [
    ['a', 'bb', ''],
    ['研究', 'c', 'd'],
    ['🧪 e\u0301', 'steering\u001b[2J', 'f'],
  ];
  expect(await tableOf(['ONE', 'TWO', 'THREE'], rows)).toBe(
    [
      'ONE   TWO                THREE',
      'a     bb',
      '研究  c                  d',
      '🧪 e\u0301  steering\\u001b[2J  f',
      '',
    ].join('\n'),
  );
  expect(await tableOf(['ONE', 'TWO'], [])).toBe('ONE  TWO\n');
});
