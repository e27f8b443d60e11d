/** `skypilot review` ends its process, whatever a policy leaves running. */
import { appendFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { confFile, temporaryFile } from '../../support/files.ts';
import { runCommand } from '../../support/run-command.ts';
import { body, FAILED, policyFiles } from '../../support/skypilot.ts';

/** Reviews a request with one policy, in a process. */
function review(specifier: string) {
  const conf = confFile(`[skypilot]\nadmin_policies = ${specifier}\ndeadline = 1\n`);
  return runCommand(['skypilot', 'review', temporaryFile('launch.body', body()), '--config-file', conf]);
}

it('ends at the deadline if a policy never answers', async () => {
  const never = 'setInterval(() => {}, 1e6); return new Promise(() => {});';
  const { code, stdout, stderr } = await review(policyFiles({ NeverPolicy: never }).specifiers.join());
  expect(stdout).toContain(`NeverPolicy  failed  ${FAILED}`);
  expect(JSON.parse(stderr.split('\n')[0] ?? '')).toMatchObject({
    policy: 'NeverPolicy',
    error: 'no answer within 1 s',
  });
  expect(code).toBe(3);
});

it('does not wait for a policy that does not close', async () => {
  const specifier = policyFiles({ OpenPolicy: '' }).specifiers.join();
  const open =
    'OpenPolicy.prototype.close = () => { setInterval(() => {}, 1e6); return new Promise(() => {}); };';
  appendFileSync(specifier.replace(/#.*/, ''), open);
  expect(await review(specifier)).toMatchObject({ code: 0 });
});
