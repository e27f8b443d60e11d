/** `config validate` finds what would keep `serve` from starting, and reports it in the same words. */
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startService } from '../../src/server/service.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { runCommand } from '../support/run-command.ts';

const isRoot = process.getuid?.() === 0;
const BUDGET = '[enforcement]\nenabled_filters = UsageBudgetFilter\n[ledger]\nconnection = sqlite://';
const LIMIT = '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 60\n';

const validate = (conf: string) => runProgramInProcess(['config', 'validate', '--config-file', conf]);

/** By `config validate`, and by a service that starts with it, in the same words. */
async function expectRefused(conf: string, problem: RegExp): Promise<void> {
  const { code, stderr } = await validate(conf);
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
  expect(await validate(conf)).toMatchObject({
    code: 0,
    stderr: '',
  });
  chmodSync(file, 0o666);
  await expectRefused(conf, /^error: \S+:4: \[ledger\] connection: .*everyone may write to it/m);
});

it('does not look at a ledger that no filter needs', async () => {
  const conf = confFile(`${LIMIT}[ledger]\nconnection = sqlite:///nowhere/ledger.db\n`);
  expect(await validate(conf)).toMatchObject({ code: 0 });
});

it('warns of a PostgreSQL that does not answer: serve starts, and refuses leases', async () => {
  const connection = 'postgresql://hunter1:hunter2@127.0.0.1:1/ledger';
  const conf = confFile(`${BUDGET.replace('sqlite://', connection)}\ntimeout = 1\n`);
  const { code, stderr } = await validate(conf);
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
  expect(await validate(conf)).toMatchObject({
    code: 0,
    stderr: '',
  });
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
  const { stderr } = await validate(conf);
  expect(await runCommand(['serve', '--port', '0', '--config-file', conf])).toEqual({
    code: 2,
    stdout: '',
    stderr,
  });
});
