/** `skypilot test` with many threads: every answer, policies that fail, and pipelines. */

import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { confFile, projectFile, temporaryFile } from '../../support/files.ts';
import { folderOf, temporaryFolder } from '../../support/filter-folder.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { runCommand, scrubbedEnvironment } from '../../support/run-command.ts';
import { body, FAILED, policyFiles } from '../../support/skypilot.ts';
import { limitPolicy, runCases } from '../../support/skypilot-cases.ts';

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
    expect(jsonLines(stdout)).toMatchObject([
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

/** Reviews a request with one policy, in a process. */
function review(specifier: string, deadline = 29) {
  const conf = confFile(`[skypilot]\nadmin_policies = ${specifier}\ndeadline = ${deadline}\n`);
  return runCommand(['skypilot', 'review', temporaryFile('launch.body', body()), '--config-file', conf]);
}

it('ends at the deadline if a policy never answers', async () => {
  const never = 'setInterval(() => {}, 1e6); return new Promise(() => {});';
  const { code, stdout, stderr } = await review(policyFiles({ NeverPolicy: never }).specifiers.join(), 1);
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

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly optional?: boolean }>>;
}

/** A folder in which the package is installed as npm does, with links to this project's own dependencies. */
function site(): string {
  const folder = realpathSync(temporaryFolder());
  const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], {
    cwd: projectFile('.'),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [{ filename = '' } = {}] = JSON.parse(packed) as { filename?: string }[];
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, 'blazar-enforcement'), { recursive: true });
  mkdirSync(join(modules, '.bin'));
  execFileSync('tar', [
    '-xzf',
    join(folder, filename),
    '-C',
    join(modules, 'blazar-enforcement'),
    '--strip-components=1',
  ]);
  const { packages } = JSON.parse(readFileSync(projectFile('package-lock.json'), 'utf8')) as Lock;
  for (const [path, { dev, optional }] of Object.entries(packages)) {
    const name = path.replace('node_modules/', '');
    if (path !== '' && dev !== true && optional !== true && !name.includes('node_modules/')) {
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(projectFile(`node_modules/${name}`), join(modules, name));
    }
  }
  symlinkSync('../blazar-enforcement/dist/src/cli/main.js', join(modules, '.bin/blazar-enforcement'));
  return folder;
}

it('is installed and passes its cases with npm ci && npm test, and its types are right', () => {
  const folder = site();
  const run = (command: string, args: readonly string[], cwd = folder) => {
    const env = { ...scrubbedEnvironment(), npm_config_offline: 'true', npm_config_update_notifier: 'false' };
    const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', env });
    return { status, output: stdout + stderr };
  };
  const command = join(folder, 'node_modules/.bin/blazar-enforcement');
  expect(run(command, ['skypilot', 'init', 'quota', '--name', 'GPUQuota2Policy'])).toMatchObject({
    status: 0,
  });
  const own = join(folder, 'quota');
  const installed = run('npm', ['ci'], own);
  expect(installed.status, installed.output).toBe(0);
  const tested = run('npm', ['test'], own);
  expect(tested.status, tested.output).toBe(0);
  expect(tested.output).toContain('3 passed');

  writeFileSync(
    join(own, 'jsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        checkJs: true,
        allowJs: true,
        strict: true,
        noEmit: true,
        skipLibCheck: true,
        module: 'nodenext',
        target: 'es2022',
        types: [],
      },
      include: ['*.js'],
    }),
  );
  const types = run(
    process.execPath,
    [projectFile('node_modules/typescript/bin/tsc'), '-p', 'jsconfig.json'],
    own,
  );
  expect(types).toEqual({ status: 0, output: '' });
});
