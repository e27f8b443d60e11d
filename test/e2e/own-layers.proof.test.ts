/** A service and the library read the server's files, variables and arguments, wherever they are started. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { UsageEnforcement } from '../../src/index.ts';
import { configFile } from '../config/helpers.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { createLasting } from '../support/requests.ts';
import { serve } from './serving.ts';

const SERVER =
  '[service]\nport = 0\n[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 60\n';
const WIDE_OPEN = '[enforcement]\nmax_lease_duration = -1\n';
const BROKEN = '[enforcement]\nno line of ours\n';

/** A home and a working directory with files of a user and of a project, where they are found and named by variables. */
function place(userText: string, projectText = userText) {
  const home = temporaryFolder();
  const cwd = temporaryFolder();
  const own = join(home, '.config', 'blazar-enforcement');
  mkdirSync(own, { recursive: true });
  const user = configFile(userText, 'own.conf', own);
  const project = configFile(projectText, '.blazar-enforcement.conf', cwd);
  const found = { HOME: home, XDG_CONFIG_HOME: '' };
  const named = { BLAZAR_ENFORCEMENT_USER_CONFIG: user, BLAZAR_ENFORCEMENT_PROJECT_CONFIG: project };
  return { user, project, cwd, found, env: { ...found, ...named } };
}

describe("files of a user and of a project, with another limit than the server's,", () => {
  it('change nothing for serve, at its start and at a reload', async () => {
    // One is named and broken, the other is found and lifts the limit.
    const { cwd, found, env, user } = place(BROKEN, WIDE_OPEN);
    const { process, output, statusFor } = await serve(['--config-file', configFile(SERVER), '--watch'], {
      cwd,
      env: { ...found, BLAZAR_ENFORCEMENT_USER_CONFIG: env.BLAZAR_ENFORCEMENT_USER_CONFIG },
    });
    expect([await statusFor(60), await statusFor(61)]).toEqual([204, 403]);
    process.kill('SIGHUP');
    await expect.poll(() => output().stderr).toContain('configuration reloaded');
    expect([await statusFor(60), await statusFor(61)]).toEqual([204, 403]);
    expect(output().stderr).not.toContain(user);
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
    for (const sources of [{ configFiles }, { configFiles, environment: env }]) {
      const enforcement = await UsageEnforcement.load(sources, { logger: recordingLogger() });
      const { allowed } = await enforcement.checkCreate(createLasting(61));
      await enforcement.close();
      expect(allowed).toBe(false);
    }
    // A caller in JavaScript may pass an option that is gone.
    const withFolder = { configFiles, environment: env, projectFolder: cwd };
    await expect(UsageEnforcement.load(withFolder, { logger: recordingLogger() })).rejects.toThrow(
      /projectFolder/,
    );
  });

  it('count for check and config show, which say so', async () => {
    const { cwd, env, project } = place(WIDE_OPEN);
    const sources = ['--config-file', configFile(SERVER)];
    const request = projectFile('examples/requests/create-ten-days.json');
    const checked = await runProgramInProcess(['check', 'create', request, ...sources], { cwd, env });
    expect(checked.code).toBe(0);
    const shown = await runProgramInProcess(['config', 'show', '--origin', ...sources], { cwd, env });
    expect(shown.stdout).toContain(`${project}:2 (over `);
    const warning = `warning: 1 option comes from a file that serve does not read: [enforcement] max_lease_duration (${project}:2)`;
    expect(checked.stderr).toContain(warning);
    expect(shown.stderr).toContain(warning);
  });

  it('do not hide from config validate what keeps serve from starting', async () => {
    const { cwd, env } = place(WIDE_OPEN);
    const conf = configFile(SERVER.replace('= 60', '= sixty'));
    const { code, stderr } = await runProgramInProcess(['config', 'validate', '--config-file', conf], {
      cwd,
      env,
    });
    expect(code).toBe(2);
    expect(stderr).toContain(`error: ${conf}:5: [enforcement] max_lease_duration: expected`);
  });

  it("change nothing for the commands that work on the server's ledger", async () => {
    const { cwd, env } = place('[enforcement]\nusage_budget_unit = bananas\nmax_lease_duration = x\n');
    const conf = configFile(`${SERVER}[ledger]\nconnection = sqlite://${temporaryFolder()}/ledger.db\n`);
    const run = (line: string) =>
      runProgramInProcess([...line.split(' '), '--config-file', conf], { cwd, env });
    expect(await run('ledger upgrade')).toMatchObject({ code: 0, stderr: '' });
    const set = await run('budget set climate --amount 100 --from 2030-01-01 --until 2031-01-01 --reason x');
    expect(set).toMatchObject({ code: 0, stderr: '' });
    expect(set.stdout).not.toContain('bananas');
  });
});
