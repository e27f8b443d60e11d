/** `config validate` finds what would keep `serve` from starting, and says it in the same words. */
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { confFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { runCommand } from '../support/run-command.ts';

const isRoot = process.getuid?.() === 0;
const BUDGET = '[enforcement]\nenabled_filters = UsageBudgetFilter\n[ledger]\nconnection = sqlite://';
const LIMIT = '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 60\n';

async function refused(conf: string, problem: RegExp): Promise<void> {
  for (const command of [
    ['config', 'validate'],
    ['serve', '--port', '0'],
  ]) {
    const { code, stderr } = await runCommand([...command, '--config-file', conf]);
    expect(stderr, command.join(' ')).toMatch(problem);
    expect(code, command.join(' ')).toBe(2);
  }
}

it('a ledger whose folder is missing, that was never made, or that is none', async () => {
  const folder = temporaryFolder();
  const missing = join(folder, 'no', 'ledger.db');
  await refused(
    confFile(`${BUDGET}${missing}\n`),
    /^error: \S+:4: \[ledger\] connection: .*the folder .*\/no: there is no such file/m,
  );
  const never = join(folder, 'ledger.db');
  await refused(confFile(`${BUDGET}${never}\n`), /^error: \S+:4: \[ledger\] connection: .*ledger upgrade/m);
  expect(existsSync(never)).toBe(false);
  const none = confFile('no database\n'.repeat(100));
  await refused(confFile(`${BUDGET}${none}\n`), /^error: \S+:4: \[ledger\] connection: /m);
});

it('a ledger that everyone may write to', async () => {
  const folder = temporaryFolder();
  const file = join(folder, 'ledger.db');
  const conf = confFile(`${BUDGET}${file}\n`);
  expect(await runCommand(['ledger', 'upgrade', '--config-file', conf])).toMatchObject({ code: 0 });
  expect(await runCommand(['config', 'validate', '--config-file', conf])).toMatchObject({
    code: 0,
    stderr: '',
  });
  chmodSync(file, 0o666);
  await refused(conf, /^error: \S+:4: \[ledger\] connection: .*everyone may write to it/m);
});

it('is not looked at where no filter needs it', async () => {
  const conf = confFile(`${LIMIT}[ledger]\nconnection = sqlite:///nowhere/ledger.db\n`);
  expect(await runCommand(['config', 'validate', '--config-file', conf])).toMatchObject({ code: 0 });
});

it('a PostgreSQL that does not answer is a warning: serve starts, and refuses leases', async () => {
  const connection = 'postgresql://hunter1:hunter2@127.0.0.1:1/ledger';
  const conf = confFile(`${BUDGET.replace('sqlite://', connection)}\ntimeout = 1\n`);
  const { code, stderr } = await runCommand(['config', 'validate', '--config-file', conf]);
  expect(stderr).toMatch(/^warning: \S+:4: \[ledger\] connection: the ledger can not be reached now/m);
  expect(stderr).not.toContain('hunter');
  expect(code).toBe(0);
});

it('a decision log in a folder that is missing, and one that is a folder; nothing is made', async () => {
  const folder = temporaryFolder();
  const inNone = join(folder, 'no', 'decisions.log');
  await refused(
    confFile(`${LIMIT}[service]\ndecision_log = ${inNone}\n`),
    /^error: \S+:5: \[service\] decision_log: expected a file that can be written, got .* \(the folder .*\/no: there is no such file\)/m,
  );
  await refused(
    confFile(`${LIMIT}[service]\ndecision_log = ${folder}\n`),
    /:5: \[service\] decision_log: .*it is a folder/,
  );
  const fresh = join(folder, 'decisions.log');
  const conf = confFile(`${LIMIT}[service]\ndecision_log = ${fresh}\n`);
  expect(await runCommand(['config', 'validate', '--config-file', conf])).toMatchObject({
    code: 0,
    stderr: '',
  });
  expect(existsSync(fresh)).toBe(false);
});

it.skipIf(isRoot)('a folder in which nothing may be written', async () => {
  const folder = join(temporaryFolder(), 'closed');
  mkdirSync(folder, { mode: 0o555 });
  await refused(confFile(`${LIMIT}[service]\ndecision_log = ${folder}/x\n`), /permission denied/);
  await refused(confFile(`${BUDGET}${folder}/ledger.db\n`), /permission denied/);
});

it('an open host, with everything else at once', async () => {
  const text = `${LIMIT}[service]\nhost = 0.0.0.0\ndecision_log = /nowhere/x\n`;
  await refused(confFile(text), /\[service\] host: [\s\S]*\[service\] decision_log: /);
});
