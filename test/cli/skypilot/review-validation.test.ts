/** What `skypilot review` says of tasks that do not match SkyPilot's schema. */
import { describe, expect, it } from 'vitest';
import { skypilotReviewCommand } from '../../../src/cli/skypilot/review.ts';
import { runInProcess } from '../../support/command-in-process.ts';
import { confFile, temporaryFile } from '../../support/files.ts';
import { policyFiles } from '../../support/skypilot.ts';

async function review(config_validation: string, text = 'name: a\nresources:\n  autostp: 5\n') {
  const { specifiers } = policyFiles({ FirstPolicy: '' });
  const conf = `[skypilot]\nadmin_policies = ${specifiers.join()}\nisolation = none\nconfig_validation = ${config_validation}\n`;
  const task = temporaryFile('task.yaml', text);
  const flags = ['--config-file', confFile(conf), '--log-level', 'silent', '--format', 'json'];
  const { code, stdout, stderr } = await runInProcess(skypilotReviewCommand(), [task, ...flags]);
  const { message, warnings } = JSON.parse(stdout.split('\n')[0] ?? '');
  return { code, text: JSON.stringify([message, warnings]), task, stderr };
}

describe('skypilot review', () => {
  it.for([
    ['error', 1],
    ['warning', 0],
  ] as const)('names file and line with config_validation = %s', async ([mode, expected]) => {
    const { code, text, task } = await review(mode);
    expect(code).toBe(expected);
    expect(text).toContain(`${task}:3: resources.autostp: unknown key`);
  });

  it.for([
    ['error', 1, 'error: '],
    ['warning', 0, 'warning: '],
    ['ignore', 0, undefined],
  ] as const)(
    'names file and line of a pipeline header with config_validation = %s',
    async ([mode, expected, severity]) => {
      const { code, stderr, task } = await review(
        mode,
        'name: group\nexecution: sideways\n---\nname: a\nrun: x\n---\nname: b\nrun: y\n',
      );
      expect({ code, stderr }).toEqual({
        code: expected,
        stderr:
          severity === undefined ? '' : `${severity}${task}:2: execution: expected serial or parallel\n`,
      });
    },
  );

  it('names the line of a job whose name another job of the group has, after the header', async () => {
    const { stderr, task } = await review(
      'error',
      'name: group\nexecution: parallel\nmistake: 1\n---\nname: a\nrun: x\n---\nname: a\nrun: y\n',
    );
    expect(stderr).toContain(`error: ${task}:8: name: expected another name for each job of a group\n`);
    // SkyPilot ignores it, so that no option makes it an error.
    expect(stderr).toContain(`warning: ${task}:3: mistake: ignored in a header`);
  });
});
