/** `skypilot test` with many threads: every answer, policies that fail, and pipelines. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderOf, limitPolicy, runCases } from '../../support/skypilot-cases.ts';

describe('skypilot test', () => {
  it('says of each case whether the policies answer as expected, and shows what differs', async () => {
    const folder = folderOf({
      'blazar.conf': `[skypilot]\nadmin_policies = ${limitPolicy()}\n`,
      'allowed.yaml': 'task: {run: x}\nexpect: changed\n',
      'clock.yml':
        'task: {name: clock, run: x}\nnow: 2026-11-21T09:00:00Z\nexpect: {task_paths: {envs.NOW: 2026-11-21T09:00:00.000Z, envs.DATE: "2026-11-21T09:00:00.000Z"}}\n',
      'deep/nodes.yaml': 'name: Too many\ntask: {num_nodes: 3}\nexpect: {rejected: "/^3 NODES/i"}\n',
      'whole.yaml':
        'task: {run: x, secrets: {A: s3cret-a}}\nrequest: {user: "0a:lin"}\nexpect: {task: {run: y, secrets: {A: s3cret-b}, resources: {labels: {team: lin}}}}\n',
      'wrong.yaml': 'task: {num_nodes: 3}\nexpect: unchanged\n',
      'notes.txt': 'no case',
    });
    const junit = join(folder, 'report.xml');
    const { code, stdout, stderr } = await runCases(folder, '--junit', junit);
    expect(stdout).toBe(`CASE        RESULT  WHY
allowed     passed
clock       passed
deep/nodes  passed
whole       failed  the task differs
wrong       failed  expected it to be allowed, but LimitPolicy rejected it: 3 nodes are too many

whole
--- task (expected)
+++ task (got)
@@ -3,7 +3,7 @@
 resources:
   labels:
     team: lin
-run: y
+run: x
 secrets:
   A: "****"
 volumes: {}

3 passed, 2 failed
`);
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    const xml = readFileSync(junit, 'utf8');
    expect(xml).toContain('tests="5" failures="2" errors="0"');
    expect(xml).toMatch(/<testcase classname="deep\/nodes" name="Too many" file="[^"]+nodes.yaml"/);
    expect(xml).not.toContain('s3cret');
  });

  it('fails where a policy fails, opens a connection, or is not idempotent', async () => {
    const policies = `policies: [${limitPolicy()}]\n`;
    const folder = folderOf({
      'boom.yaml': `task: {name: boom}\nexpect: rejected\n${policies}`,
      'grow.yaml': `task: {name: grow}\nexpect: allowed\n${policies}`,
      'grown.yaml': `task: {name: grow}\nexpect: {idempotent: false}\n${policies}`,
      'net.yaml': `task: {name: net}\nexpect: allowed\n${policies}`,
    });
    const { code, stdout } = await runCases(folder);
    expect(code).toBe(3);
    expect(stdout).toMatch(/^boom +broken +LimitPolicy failed; s3cret cause$/m);
    expect(stdout).toMatch(/^grow +failed +not idempotent: the result is changed again by LimitPolicy$/m);
    expect(stdout).toMatch(/^grown +passed$/m);
    expect(stdout).toMatch(/^net +broken +LimitPolicy failed; no network in a test: set network: true/m);
  });

  it('tests every task of a pipeline, and that they keep one configuration', async () => {
    const policies = `policies: [${limitPolicy()}]\n`;
    const folder = folderOf({
      'pipeline.yaml': `task: [{name: own, run: x}, {name: own, run: y, num_nodes: 2}]\nexpect: [{skypilot_config: {gcp: {vpc_name: jobs.launch1}}}, {skypilot_config_paths: {gcp.vpc_name: jobs.launch2}}]\n${policies}`,
      'other.yaml': `task_file: tasks/two.yml.txt\nexpect: {task_paths: {"resources.labels.team": user, resources.infra: ~}}\n${policies}`,
      'tasks/two.yml.txt': 'name: two\n---\nrun: x\n---\nrun: y\n',
    });
    const { code, stdout } = await runCases(folder, '--format', 'json');
    expect(code).toBe(1);
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([
      { id: 'other', status: 'passed' },
      {
        id: 'pipeline',
        status: 'failed',
        reasons: [
          'the policies return different configurations for the tasks, and SkyPilot rejects such a pipeline',
        ],
      },
    ]);
  });
});
