/** The systemd units and the rules of logrotate: the tools accept them, and they run commands that exist. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { knownOptions } from '../../src/cli/common/known-options.ts';
import { ExitCode } from '../../src/cli/common/output.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confFile, projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { need } from '../support/peers.ts';
import { runCommand, startCommand } from '../support/run-command.ts';

const UNIT = 'blazar-enforcement.service';
const TEMPLATE = 'blazar-enforcement@.service';
const COMMAND = 'blazar-enforcement';
/** As `systemd-analyze security` has it, times ten; 13 with systemd 252. A service without any of it has 96. */
const MAX_EXPOSURE = 15;
const LOG_RULES = 'etc/logrotate/blazar-enforcement';

const text = readFileSync(projectFile(`etc/systemd/${UNIT}`), 'utf8');
const template = readFileSync(projectFile(`etc/systemd/${TEMPLATE}`), 'utf8');

/** Skips a test whose tool is missing, and says so. */
const valuesOf = (name: string) =>
  [...text.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);
const lastOf = (name: string) => valuesOf(name).at(-1) ?? '';

/** The arguments of our command in a line of the unit, with another configuration file. */
function argumentsIn(line: string, conf: string): string[] {
  const [command, ...args] = line.split(' ');
  expect(command).toBe(COMMAND);
  expect(args).toContain('/etc/blazar/blazar.conf');
  return args.map((argument) => (argument === '/etc/blazar/blazar.conf' ? conf : argument));
}

describe.each([
  [UNIT, text],
  [TEMPLATE, template],
])('etc/systemd/%s', (name, content) => {
  it('has nothing that systemd does not understand', (context) => {
    need(context, 'systemd-analyze');
    const unit = join(temporaryFolder(), name.replace('@', '@1'));
    // If the command is not installed, systemd would report only that.
    writeFileSync(unit, content.replaceAll(`=${COMMAND} `, `=${process.execPath} `));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' });
    const aboutIt = stderr.split('\n').filter((line) => line.includes(COMMAND));
    expect({ status, aboutIt }).toEqual({ status: 0, aboutIt: [] });
  });

  it('allows little more than the service needs', (context) => {
    need(context, 'systemd-analyze');
    const args = ['security', '--offline=true', '--no-pager', projectFile(`etc/systemd/${name}`)];
    const { stdout } = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
    const [, exposure] = /Overall exposure level .*: ([\d.]+)/.exec(stdout) ?? [];
    expect(Number(exposure) * 10, stdout).toBeLessThanOrEqual(MAX_EXPOSURE);
  });

  it('names only variables of options that exist', async () => {
    const names = (await knownOptions()).options.map(({ section, name: option }) =>
      `OS_${section}__${option}`.toUpperCase(),
    );
    const used = content.match(/OS_\w+__\w+/g) ?? [];
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter((one) => !names.includes(one))).toEqual([]);
  });
});

describe(`etc/systemd/${TEMPLATE}`, () => {
  it('differs from the other unit only in what each process has of its own', () => {
    const lines = (unit: string) => unit.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    expect(lines(template).filter((line) => !lines(text).includes(line))).toEqual([
      'Description=Usage enforcement for leases, process %i',
      'Environment=OS_SERVICE__ADMIN_PORT=900%i',
      'Environment=OS_SERVICE__DECISION_LOG=/var/log/blazar-enforcement/decisions-%i.jsonl',
      'EnvironmentFile=-/etc/default/blazar-enforcement-%i',
      'User=blazar-enforcement',
    ]);
    expect(lines(text).filter((line) => !lines(template).includes(line))).toEqual([
      'Description=Usage enforcement for leases',
    ]);
  });
});

describe(`etc/systemd/${UNIT}`, () => {
  it('starts a service that survives a reload and exits with 0', async () => {
    const folder = temporaryFolder();
    const conf = confFile(
      `[service]\nport = 0\ndecision_log = ${folder}/decisions.jsonl\n[enforcement]\nenabled_filters = MaxLeaseDurationFilter\n`,
    );
    const running = startCommand(argumentsIn(lastOf('ExecStart'), conf));
    onTestFinished(() => {
      running.process.kill('SIGKILL');
    });
    const [, url] = await running.printed(/^Listening on (\S+)$/m);
    const generation = async () => (await (await fetch(`${url}/readyz`)).json()).generation;
    expect(await generation()).toBe(1);
    const [check = '', signal] = valuesOf('ExecReload');
    expect(argumentsIn(check, conf).slice(0, 2)).toEqual(['config', 'validate']);
    expect(await runProgramInProcess(argumentsIn(check, conf))).toMatchObject({ code: 0 });
    expect(signal).toBe("/bin/sh -c 'kill -HUP $MAINPID'");
    running.process.kill('SIGHUP');
    await expect.poll(generation).toBe(2);
    running.process.kill('SIGTERM');
    expect((await running.ended).code).toBe(0);
  });

  it('loads the credentials that it names', () => {
    const loaded = [...text.matchAll(/^#LoadCredential=([^:]+):/gm)].map(([, id]) => id);
    const used = [...text.matchAll(/%d\/(\S+)/g)].map(([, id]) => id);
    expect(loaded.length).toBeGreaterThan(0);
    expect(used.sort()).toEqual(loaded.sort());
  });

  it('restarts after every failure, but not for mistakes in the configuration', async () => {
    expect(lastOf('Restart')).toBe('on-failure');
    expect(lastOf('StartLimitIntervalSec')).toBe('0');
    const { code } = await runCommand(argumentsIn(lastOf('ExecStart'), '/nowhere/blazar.conf'));
    expect(lastOf('RestartPreventExitStatus')).toBe(String(code));
    expect(code).toBe(ExitCode.usage);
  });

  it('lets V8 compile, which needs writable and executable memory', () => {
    expect(lastOf('MemoryDenyWriteExecute')).toBe('no');
  });
});

describe(LOG_RULES, () => {
  const rules = readFileSync(projectFile(LOG_RULES), 'utf8');

  it('rotates what the units let the service write, and tells them', () => {
    const [, log = '', ofEach = ''] = /^(\/\S+) (\/\S+) \{$/m.exec(rules) ?? [];
    expect(text).toContain(`# decision_log = ${log}\n`);
    expect(log.startsWith(`/var/log/${lastOf('LogsDirectory')}/`)).toBe(true);
    expect(template).toContain(`OS_SERVICE__DECISION_LOG=${ofEach.replace('*', '%i')}\n`);
    const [, told = ''] = /--signal=HUP '(\S+)'$/m.exec(rules) ?? [];
    const [before = '', after = ''] = told.split('*');
    for (const unit of [UNIT, TEMPLATE]) {
      expect(unit.startsWith(before) && unit.endsWith(after), unit).toBe(true);
    }
  });

  it('has nothing that logrotate does not understand', (context) => {
    need(context, 'logrotate');
    const args = ['--debug', '--state', join(temporaryFolder(), 'state'), projectFile(LOG_RULES)];
    const { stderr } = spawnSync('logrotate', args, { encoding: 'utf8' });
    expect(stderr).toContain('considering log /var/log/blazar-enforcement/decisions.jsonl');
    expect(stderr).not.toMatch(/^error: /m);
  });
});
