import { describe, expect, it } from 'vitest';
import { allOf, commandTree } from '../../../src/cli/completion/command-tree.ts';
import { completionCommand } from '../../../src/cli/completion/completion.ts';
import { createProgram } from '../../../src/cli/program.ts';
import { runInProcess, runProgramInProcess } from '../../support/command-in-process.ts';
import { printed, refused } from '../../support/run-command.ts';

describe('completion', () => {
  it.for(['bash', 'zsh', 'fish'])('has every command and option for %s', async (shell) => {
    const stdout = printed(await runProgramInProcess(['completion', shell]));
    for (const { path, options } of allOf(commandTree(await createProgram()))) {
      expect(stdout).toContain(path.at(-1) ?? '');
      for (const flag of options.flatMap(({ flags }) => flags)) {
        expect(stdout).toContain(shell === 'fish' ? ` ${flag.replace(/^--?/, '')} ` : flag);
      }
    }
  });

  it('names the shells that it knows', async () => {
    expect(await runProgramInProcess(['completion', 'tcsh'])).toEqual(
      refused(
        "command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.",
      ),
    );
  });

  it('is of the commands that it is given', async () => {
    const { stdout } = await runInProcess(
      completionCommand(() => createProgram('outbox')),
      ['bash'],
    );
    expect(stdout).toContain("commands='outbox'");
  });
});
