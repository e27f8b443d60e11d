/** Policies as they are installed: found by Node itself, in a process of its own. */
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { projectFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { startCommand } from '../../support/run-command.ts';
import { body, inside, policySource } from '../../support/skypilot.ts';
import { PATH } from '../../support/skypilot-service.ts';

const seen = (name: string) => `task.seen = [...new Set([...(task.seen ?? []), '${name}'])];`;

it('can come from packages, from files with odd names, and with another copy of this package', async () => {
  const site = temporaryFolder();
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(site, path)), { recursive: true });
    writeFileSync(join(site, path), text);
  };
  const install = (name: string, source: string) => {
    const manifest = { name, type: 'module', exports: './index.js' };
    write(`node_modules/${name}/package.json`, JSON.stringify(manifest));
    write(`node_modules/${name}/index.js`, source);
  };
  install('my-package', policySource('PackagedPolicy', seen('package')));
  install('@my-site/rules', policySource('ScopedPolicy', seen('scope')));
  write('rules/ä (copy)/policy #2.mjs', policySource('OddPolicy', seen('file')));
  // What is installed beside a policy comes first.
  write(
    'other/policy.js',
    policySource(
      'OtherPolicy',
      "if (task.name === 'reject') throw new PolicyRejected(task.seen + ': ' + import.meta.resolve('blazar-enforcement/skypilot'));",
    ),
  );
  const copy = join(site, 'other/node_modules/blazar-enforcement');
  for (const path of ['package.json', 'dist/src']) {
    cpSync(projectFile(path), join(copy, path), { recursive: true });
  }
  symlinkSync(projectFile('node_modules'), join(copy, 'node_modules'));
  const policies = [
    'my-package#PackagedPolicy',
    '@my-site/rules#ScopedPolicy',
    './rules/ä (copy)/policy #2.mjs#OddPolicy',
    './other/policy.js#OtherPolicy',
  ];
  write('blazar.conf', `[service]\nport = 0\n[skypilot]\nadmin_policies =\n  ${policies.join(',\n  ')}\n`);
  const running = startCommand(['serve', '--config-file', 'blazar.conf'], { cwd: site });
  onTestFinished(() => void running.process.kill('SIGKILL'));
  const [, url = ''] = await running.printed(/Listening on (http\S+)/);
  const ask = async (task: string) => {
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch(url + PATH, { method: 'POST', headers, body: body({ task }) });
    return { status: answer.status, text: await answer.text() };
  };
  const { status, text } = await ask('name: keep\n');
  expect(status).toBe(200);
  expect(inside(text).task).toContain('seen:\n  - package\n  - scope\n  - file\n');
  expect(await ask('name: reject\n')).toEqual({
    status: 400,
    text: `package,scope,file: file://${copy}/dist/src/skypilot/index.js`,
  });
});
