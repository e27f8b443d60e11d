/** The commands of the workflow in `examples/operator-repository`, as they are written there. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

const REPOSITORY = projectFile('examples/operator-repository');

interface Job {
  readonly env: Readonly<Record<string, string>>;
  readonly steps: readonly { readonly run?: string }[];
}
const { env, steps } = (
  parse(readFileSync(join(REPOSITORY, '.github/workflows/enforcement.yml'), 'utf8')) as {
    readonly jobs: { readonly test: Job };
  }
).jobs.test;
const commands = steps.flatMap(({ run = '' }) => /^blazar-enforcement (.*)/.exec(run)?.[1] ?? []);

/** Runs a command of the workflow, with another folder for temporary files and reports. */
function runStep(command: string, folder: string, ...more: readonly string[]) {
  const own = (text: string) => text.replace('/tmp/', `${folder}/`);
  const words = command.replace('report.xml', join(folder, 'report.xml')).split(' ');
  return runProgramInProcess([...words, ...more], {
    cwd: REPOSITORY,
    env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, own(value)])),
  });
}

describe('examples/operator-repository', () => {
  it('has a valid configuration, and cases that see every filter and rule allow and refuse', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'keystone-password'), 'none\n', { mode: 0o600 });
    expect(commands).toHaveLength(3);
    for (const command of commands) {
      expect(await runStep(command, folder)).toMatchObject({ code: 0, stderr: '' });
    }
    expect(readFileSync(join(folder, 'report.xml'), 'utf8')).toMatch(/tests="14" failures="0" errors="0"/);
  });

  it('fails when a limit is changed', async () => {
    const shorter = ['--config', 'enforcement.max_lease_duration=3600', '-r', 'two days'];
    expect(await runStep(commands.at(-1) ?? '', temporaryFolder(), ...shorter)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('MaxLeaseDurationFilter'),
    });
  });
});
