/** Policies as they are installed: found by Node itself, in a process of its own. */
import { cpSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { projectFile } from '../../support/files.ts';
import { folderOf } from '../../support/filter-folder.ts';
import { postJson } from '../../support/post-json.ts';
import { startUntilFinished } from '../../support/run-command.ts';
import { body, inside, policySource } from '../../support/skypilot.ts';
import { PATH } from '../../support/skypilot-service.ts';

const seen = (name: string) => `task.seen = [...new Set([...(task.seen ?? []), '${name}'])];`;

it('can come from packages, from files with odd names, and with another copy of this package', async () => {
  const installed = (name: string, source: string) => ({
    [`node_modules/${name}/package.json`]: JSON.stringify({ name, type: 'module', exports: './index.js' }),
    [`node_modules/${name}/index.js`]: source,
  });
  const site = folderOf({
    ...installed('my-package', policySource('PackagedPolicy', seen('package'))),
    ...installed('@my-site/rules', policySource('ScopedPolicy', seen('scope'))),
    'rules/ä (copy)/policy #2.mjs': policySource('OddPolicy', seen('file')),
    // What is installed beside a policy comes first.
    'other/policy.js': policySource(
      'OtherPolicy',
      "if (task.name === 'reject') throw new PolicyRejected(task.seen + ': ' + import.meta.resolve('blazar-enforcement/skypilot'));",
    ),
  });
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
  writeFileSync(
    join(site, 'blazar.conf'),
    `[service]\nport = 0\n[skypilot]\nadmin_policies =\n  ${policies.join(',\n  ')}\n`,
  );
  const running = startUntilFinished(['serve', '--config-file', 'blazar.conf'], { cwd: site });
  const [, url = ''] = await running.printed(/Listening on (http\S+)/);
  const ask = async (task: string) => {
    const answer = await postJson(url + PATH, body({ task }));
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
