import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startService } from '../../src/server/service.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confFile, projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { printed, runCommand } from '../support/run-command.ts';

const validate = (...files: string[]) =>
  runProgramInProcess(['config', 'validate', ...files.flatMap((file) => ['--config-file', file])]);

describe('config validate', () => {
  it.for(['etc/blazar.conf', 'etc/policy-service.conf'])('finds nothing wrong with %s', async (path) => {
    expect(printed(await validate(projectFile(path)))).toBe('The configuration is valid.\n');
  });

  it('lists every mistake with its file and line, and exits with 2', async () => {
    const first = confFile(`[enforcement]
enabled_filters = MaxLeaseDurationFilter, MaxReservationLengthFilter
max_lease_duraton = 60
no value here
[service]
port = 70000
`);
    const second = confFile('[enforcement]\nexternal_service_timeout = 1.5\n');
    const { code, stdout, stderr } = await validate(first, second);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    const lines = stderr.trimEnd().split('\n');
    for (const start of [
      `error: ${first}:2: [enforcement] enabled_filters: there is no filter "MaxReservationLengthFilter"; the nearest right name is "MaxLeaseDurationFilter"`,
      `error: ${first}:3: [enforcement] max_lease_duraton: unknown option; the nearest right name is "max_lease_duration"`,
      `error: ${first}:4: expected "name = value"`,
      `error: ${first}:6: [service] port: expected a whole number from 0 to 65535, got "70000"`,
      `error: ${second}:2: [enforcement] external_service_timeout: expected a whole number of seconds from 1 to 3600, got "1.5"`,
    ]) {
      expect(
        lines.filter((line) => line.startsWith(start)),
        start,
      ).toHaveLength(1);
    }
    expect(lines.filter((line) => line.startsWith('error: '))).toHaveLength(5);
  });

  it('warns of an option without effect, and exits with 0', async () => {
    const conf = confFile('[enforcement]\nenabled_filters =\nmax_lease_duration = 60\n');
    const { code, stderr } = await validate(conf);
    expect(code).toBe(0);
    expect(stderr).toContain(`warning: ${conf}:3: [enforcement] max_lease_duration: has no effect`);
    expect(stderr).toContain('no filter is enforced: every lease is allowed');
    expect(stderr).not.toContain('error:');
  });
});

const isRoot = process.getuid?.() === 0;
const BUDGET = '[enforcement]\nenabled_filters = UsageBudgetFilter\n[ledger]\nconnection = sqlite://';
const LIMIT = '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 60\n';

const validateStart = (conf: string) => runProgramInProcess(['config', 'validate', '--config-file', conf]);

/** By `config validate`, and by a service that starts with it, in the same words. */
async function expectRefused(conf: string, problem: RegExp): Promise<void> {
  const { code, stderr } = await validateStart(conf);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(problem) });
  const errors = [...stderr.matchAll(/^error: (.*)$/gm)].map(([, text]) => text);
  await expect(startService({ configFiles: [conf], environment: {} })).rejects.toMatchObject({
    name: 'ConfigurationError',
    message: errors.join('\n'),
  });
}

it('refuses a ledger whose folder is missing, that was never made, or that is no database', async () => {
  const folder = temporaryFolder();
  const missing = join(folder, 'no', 'ledger.db');
  await expectRefused(
    confFile(`${BUDGET}${missing}\n`),
    /^error: \S+:4: \[ledger\] connection: .*the folder .*\/no: there is no such file/m,
  );
  const never = join(folder, 'ledger.db');
  await expectRefused(
    confFile(`${BUDGET}${never}\n`),
    /^error: \S+:4: \[ledger\] connection: .*ledger upgrade/m,
  );
  expect(existsSync(never)).toBe(false);
  const none = confFile('no database\n'.repeat(100));
  await expectRefused(confFile(`${BUDGET}${none}\n`), /^error: \S+:4: \[ledger\] connection: /m);
});

it('refuses a ledger that everyone may write to', async () => {
  const folder = temporaryFolder();
  const file = join(folder, 'ledger.db');
  const conf = confFile(`${BUDGET}${file}\n`);
  expect(await runProgramInProcess(['ledger', 'upgrade', '--config-file', conf])).toMatchObject({ code: 0 });
  expect(await validateStart(conf)).toMatchObject({ code: 0, stderr: '' });
  chmodSync(file, 0o666);
  await expectRefused(conf, /^error: \S+:4: \[ledger\] connection: .*everyone may write to it/m);
});

it('does not look at a ledger that no filter needs', async () => {
  const conf = confFile(`${LIMIT}[ledger]\nconnection = sqlite:///nowhere/ledger.db\n`);
  expect(await validateStart(conf)).toMatchObject({ code: 0 });
});

it('warns of a PostgreSQL that does not answer: serve starts, and refuses leases', async () => {
  const connection = 'postgresql://hunter1:hunter2@127.0.0.1:1/ledger';
  const conf = confFile(`${BUDGET.replace('sqlite://', connection)}\ntimeout = 1\n`);
  const { code, stderr } = await validateStart(conf);
  expect(stderr).toMatch(/^warning: \S+:4: \[ledger\] connection: the ledger can not be reached now/m);
  expect(stderr).not.toContain('hunter');
  expect(code).toBe(0);
});

it('refuses a decision log in a missing folder and one that is a folder, and creates nothing', async () => {
  const folder = temporaryFolder();
  const inNone = join(folder, 'no', 'decisions.log');
  await expectRefused(
    confFile(`${LIMIT}[service]\ndecision_log = ${inNone}\n`),
    /^error: \S+:5: \[service\] decision_log: expected a file that can be written, got .* \(the folder .*\/no: there is no such file\)/m,
  );
  await expectRefused(
    confFile(`${LIMIT}[service]\ndecision_log = ${folder}\n`),
    /:5: \[service\] decision_log: .*it is a folder/,
  );
  const fresh = join(folder, 'decisions.log');
  const conf = confFile(`${LIMIT}[service]\ndecision_log = ${fresh}\n`);
  expect(await validateStart(conf)).toMatchObject({ code: 0, stderr: '' });
  expect(existsSync(fresh)).toBe(false);
});

it.skipIf(isRoot)('refuses a folder that is read-only', async () => {
  const folder = join(temporaryFolder(), 'closed');
  mkdirSync(folder, { mode: 0o555 });
  await expectRefused(confFile(`${LIMIT}[service]\ndecision_log = ${folder}/x\n`), /permission denied/);
  await expectRefused(confFile(`${BUDGET}${folder}/ledger.db\n`), /permission denied/);
});

it('refuses an open host, with every other mistake at once; serve prints them and exits with 2', async () => {
  const conf = confFile(`${LIMIT}[service]\nhost = 0.0.0.0\ndecision_log = /nowhere/x\n`);
  await expectRefused(conf, /\[service\] host: [\s\S]*\[service\] decision_log: /);
  const { stderr } = await validateStart(conf);
  expect(await runCommand(['serve', '--port', '0', '--config-file', conf])).toEqual({
    code: 2,
    stdout: '',
    stderr,
  });
});
