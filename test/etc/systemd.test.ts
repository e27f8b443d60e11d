/** etc/systemd: the unit is right for systemd, and runs a command that there is. So is what rotates its log. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import { configCommand } from '../../src/cli/config.ts';
import { knownOptions } from '../../src/cli/known-options.ts';
import { ExitCode } from '../../src/cli/output.ts';
import { serveCommand } from '../../src/cli/serve.ts';
import { serviceOptions } from '../../src/server/options.ts';
import { confFile, projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { runCommand, startCommand } from '../support/run-command.ts';

const UNIT = 'blazar-enforcement.service';
const COMMAND = 'blazar-enforcement';
/** As `systemd-analyze security` has it, times ten; 13 with systemd 252. A service without any of it has 96. */
const MAX_EXPOSURE = 15;
const LOG_RULES = 'etc/logrotate/blazar-enforcement';

const text = readFileSync(projectFile(`etc/systemd/${UNIT}`), 'utf8');

/** A test that says so when it can't be made here. */
function need(context: TestContext, tool: string): void {
  if (spawnSync(tool, ['--version']).status !== 0) {
    context.skip(`${tool} is not installed: what it makes of the file is NOT checked here`);
  }
}

/** The settings, `name=value`; those that are offered as comments only with `comments`. */
function settings({ comments = false } = {}): { name: string; value: string }[] {
  return text.split('\n').flatMap((line) => {
    const [, hash, name = '', value = ''] = /^(#?)([A-Z][A-Za-z]+)=(.*)$/.exec(line) ?? [];
    return hash === undefined || (hash === '#' && !comments) ? [] : [{ name, value }];
  });
}

function valuesOf(name: string): string[] {
  return settings()
    .filter((setting) => setting.name === name)
    .map(({ value }) => value);
}

function lastOf(name: string): string {
  return valuesOf(name).at(-1) ?? '';
}

/** The arguments of our command in a line of the unit, with another configuration. */
function argumentsIn(line: string, conf: string): string[] {
  const [command, ...args] = line.split(' ');
  expect(command).toBe(COMMAND);
  expect(args).toContain('/etc/blazar/blazar.conf');
  return args.map((argument) => (argument === '/etc/blazar/blazar.conf' ? conf : argument));
}

describe(`etc/systemd/${UNIT}`, () => {
  it('has nothing that systemd would not understand', (context) => {
    need(context, 'systemd-analyze');
    const unit = join(temporaryFolder(), UNIT);
    // Where the command is not installed systemd would only say so.
    writeFileSync(unit, text.replaceAll(`=${COMMAND} `, `=${process.execPath} `));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' });
    const aboutIt = stderr.split('\n').filter((line) => line.includes(COMMAND));
    expect({ status, aboutIt }).toEqual({ status: 0, aboutIt: [] });
  });

  it('may do little more than it needs', (context) => {
    need(context, 'systemd-analyze');
    const { stdout } = spawnSync(
      'systemd-analyze',
      ['security', '--offline=true', '--no-pager', projectFile(`etc/systemd/${UNIT}`)],
      { encoding: 'utf8' },
    );
    const [, exposure] = /Overall exposure level .*: ([\d.]+)/.exec(stdout) ?? [];
    expect(Number(exposure) * 10, stdout).toBeLessThanOrEqual(MAX_EXPOSURE);
  });

  it('calls commands and flags that there are', () => {
    const [start = ''] = valuesOf('ExecStart');
    const [check = '', signal] = valuesOf('ExecReload');
    const flags = (line: string) => line.match(/--[a-z-]+/g) ?? [];
    expect(argumentsIn(start, '')[0]).toBe('serve');
    const known = serveCommand().options.map(({ long }) => long);
    expect(flags(start).filter((flag) => !known.includes(flag))).toEqual([]);
    expect(argumentsIn(check, '').slice(0, 2)).toEqual(['config', 'validate']);
    const validate = configCommand().commands.find((command) => command.name() === 'validate');
    const ofValidate = validate?.options.map(({ long }) => long) ?? [];
    expect(flags(check).filter((flag) => !ofValidate.includes(flag))).toEqual([]);
    expect(signal).toBe('/bin/kill -HUP $MAINPID');
  });

  it('starts a service that goes on at its reload and ends with 0', async () => {
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
    expect(await runCommand(argumentsIn(valuesOf('ExecReload')[0] ?? '', conf))).toMatchObject({ code: 0 });
    running.process.kill('SIGHUP');
    await expect.poll(generation).toBe(2);
    running.process.kill('SIGTERM');
    expect((await running.ended).code).toBe(0);
  });

  it('names options of the service that there are, in variables', async () => {
    const names = (await knownOptions()).map(({ section, name }) => `OS_${section}__${name}`.toUpperCase());
    const used = text.match(/OS_\w+__\w+/g) ?? [];
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter((name) => !names.includes(name))).toEqual([]);
  });

  it('hands over the credentials that it names', () => {
    const all = settings({ comments: true });
    const loaded = all
      .filter(({ name }) => name === 'LoadCredential')
      .map(({ value }) => value.split(':')[0]);
    const used = all.flatMap(({ value }) => [...value.matchAll(/%d\/(\S+)/g)].map(([, id]) => id));
    expect(loaded.length).toBeGreaterThan(0);
    expect(used.sort()).toEqual(loaded.sort());
  });

  it('gives a stop more time than the service takes', () => {
    expect(Number(lastOf('TimeoutStopSec'))).toBeGreaterThan(serviceOptions.parse({}).shutdown_grace);
  });

  it('is started again whenever it breaks, but not for mistakes in the configuration', async () => {
    expect(lastOf('Restart')).toBe('on-failure');
    expect(lastOf('StartLimitIntervalSec')).toBe('0');
    const { code } = await runCommand(argumentsIn(lastOf('ExecStart'), '/nowhere/blazar.conf'));
    expect(lastOf('RestartPreventExitStatus')).toBe(String(code));
    expect(code).toBe(ExitCode.usage);
  });

  it('lets V8 compile, which needs memory that is written and executed', () => {
    expect(lastOf('MemoryDenyWriteExecute')).toBe('no');
  });
});

describe(LOG_RULES, () => {
  const rules = readFileSync(projectFile(LOG_RULES), 'utf8');

  it('rotates what the unit lets the service write, and tells that unit', () => {
    const [, log = ''] = /^(\/\S+) \{$/m.exec(rules) ?? [];
    expect(text).toContain(`# decision_log = ${log}\n`);
    expect(log.startsWith(`/var/log/${lastOf('LogsDirectory')}/`)).toBe(true);
    expect(rules).toContain(`--signal=HUP ${UNIT}`);
  });

  it('has nothing that logrotate would not understand', (context) => {
    need(context, 'logrotate');
    const { stderr } = spawnSync(
      'logrotate',
      ['--debug', '--state', join(temporaryFolder(), 'state'), projectFile(LOG_RULES)],
      { encoding: 'utf8' },
    );
    expect(stderr).toContain('considering log /var/log/blazar-enforcement/decisions.jsonl');
    expect(stderr).not.toMatch(/^error: /m);
  });
});
