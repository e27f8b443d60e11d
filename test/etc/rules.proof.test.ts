/** The rules that are included as examples: every case of theirs passes, and each rule is seen to allow and to refuse. */
import { expect, it } from 'vitest';
import { projectFile } from '../support/files.ts';
import { runCommand } from '../support/run-command.ts';

it('blazar-enforcement test etc/rules --coverage has nothing to complain of', async () => {
  const args = ['test', projectFile('etc/rules'), '--coverage', '--threshold', '100'];
  const { code, stdout, stderr } = await runCommand(args);
  expect({ code, stderr, stdout }).toMatchObject({ code: 0, stderr: '' });
  expect(Number(/(\d+) passed/.exec(stdout)?.[1])).toBeGreaterThan(100);
});
