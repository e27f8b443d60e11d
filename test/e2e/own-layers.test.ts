/** A service and a library are configured by the server's files, variables and what they are given, wherever they are started. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { UsageEnforcement } from '../../src/index.ts';
import { configFile } from '../config/helpers.ts';
import { projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { createLasting } from '../support/requests.ts';
import { runCommand, startCommand } from '../support/run-command.ts';

const SERVER =
  '[service]\nport = 0\n[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 60\n';
const WIDE_OPEN = '[enforcement]\nmax_lease_duration = -1\n';
const BROKEN = '[enforcement]\nno line of ours\n';

/** A home and a working directory with files of a user and of a project, and what starts a process there. */
function place(text: string) {
  const [home, cwd] = [temporaryFolder(), temporaryFolder()];
  const own = join(home, '.config', 'blazar-enforcement');
  mkdirSync(own, { recursive: true });
  const user = configFile(text, 'own.conf', own);
  const project = configFile(text, '.blazar-enforcement.conf', cwd);
  const named = { BLAZAR_ENFORCEMENT_USER_CONFIG: user, BLAZAR_ENFORCEMENT_PROJECT_CONFIG: project };
  return { user, project, cwd, home, env: { HOME: home, XDG_CONFIG_HOME: '', ...named } };
}

async function started(args: readonly string[], options: { cwd: string; env: Record<string, string> }) {
  const { process, printed, ended, output } = startCommand(args, options);
  onTestFinished(async () => {
    process.kill('SIGKILL');
    await ended;
  });
  const [, url = ''] = await printed(/^Listening on (http:\S+)$/m);
  const create = async (seconds: number) => {
    const body = JSON.stringify(createLasting(seconds));
    const answer = await fetch(`${url}/check-create`, {
      method: 'POST',
      body,
      headers: { 'Content-Type': 'application/json' },
    });
    return answer.status;
  };
  return { create, process, output };
}

describe("files of a user and of a project, with another limit than the server's,", () => {
  it('change nothing for serve, at its start and at a reload, whether they are found or named', async () => {
    for (const text of [WIDE_OPEN, BROKEN]) {
      const { cwd, env, user } = place(text);
      const { BLAZAR_ENFORCEMENT_USER_CONFIG: _, BLAZAR_ENFORCEMENT_PROJECT_CONFIG: __, ...found } = env;
      const conf = configFile(SERVER);
      const { create, process, output } = await started(['serve', '--config-file', conf, '--watch'], {
        cwd,
        env: text === WIDE_OPEN ? found : env,
      });
      expect([await create(60), await create(61)]).toEqual([204, 403]);
      process.kill('SIGHUP');
      await expect.poll(() => output().stderr).toContain('configuration reloaded');
      expect([await create(60), await create(61)]).toEqual([204, 403]);
      expect(output().stderr).not.toContain(user);
    }
  });

  it('change nothing for a process that embeds the library', async () => {
    const { cwd, env } = place(WIDE_OPEN);
    const before = { cwd: process.cwd, HOME: process.env.HOME };
    onTestFinished(() => {
      process.cwd = before.cwd;
      process.env.HOME = before.HOME;
    });
    process.cwd = () => cwd;
    process.env.HOME = env.HOME;
    const configFiles = [configFile(SERVER)];
    // A caller in JavaScript may have the option of before.
    const withFolder = { configFiles, environment: env, projectFolder: cwd };
    for (const sources of [{ configFiles }, { configFiles, environment: env }, withFolder]) {
      const enforcement = await UsageEnforcement.load(sources, { logger: recordingLogger() });
      const { allowed } = await enforcement.checkCreate(createLasting(61));
      await enforcement.close();
      expect(allowed).toBe(false);
    }
  });

  it('count for check, which says so', async () => {
    const { cwd, env, project } = place(WIDE_OPEN);
    const sources = ['--config-file', configFile(SERVER)];
    const request = projectFile('examples/requests/create-ten-days.json');
    const { code, stderr } = await runCommand(['check', 'create', request, ...sources], { cwd, env });
    expect(code).toBe(0);
    expect(stderr).toContain(
      `warning: 1 option comes from a file that serve does not read: [enforcement] max_lease_duration (${project}:2)`,
    );
  });

  it('are shown by config show, and do not hide from config validate what keeps serve from starting', async () => {
    const { cwd, env, project } = place(WIDE_OPEN);
    const conf = configFile(SERVER.replace('= 60', '= sixty'));
    const flags = { cwd, env };
    const shown = await runCommand(
      ['config', 'show', '--origin', '--config-file', configFile(SERVER)],
      flags,
    );
    expect(shown.stdout).toContain(`${project}:2 (over `);
    expect(shown.stderr).toContain('comes from a file that serve does not read');
    const validated = await runCommand(['config', 'validate', '--config-file', conf], flags);
    expect(validated.code).toBe(2);
    expect(validated.stderr).toContain(`error: ${conf}:5: [enforcement] max_lease_duration: expected`);
  });

  it('change nothing for what acts on the ledger of the server', async () => {
    const { cwd, env } = place('[enforcement]\nusage_budget_unit = bananas\nmax_lease_duration = x\n');
    const folder = temporaryFolder();
    const conf = configFile(`${SERVER}[ledger]\nconnection = sqlite://${folder}/ledger.db\n`);
    const run = (...args: string[]) => runCommand([...args, '--config-file', conf], { cwd, env });
    expect(await run('ledger', 'upgrade')).toMatchObject({ code: 0, stderr: '' });
    const set = await run(
      ...'budget set climate --amount 100 --from 2030-01-01 --until 2031-01-01 --reason x'.split(' '),
    );
    expect(set).toMatchObject({ code: 0, stderr: '' });
    expect(set.stdout).not.toContain('bananas');
  });
});
