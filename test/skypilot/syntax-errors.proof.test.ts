/** Policies with syntax errors, as the built commands report them: Node itself tells no line. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { folderOf } from '../support/filter-folder.ts';
import { runCommand, startUntilFinished } from '../support/run-command.ts';
import { policySource } from '../support/skypilot.ts';

const CONFIG = '[service]\nport = 0\n[skypilot]\nadmin_policies = ';

const BROKEN = 'export const one = 1;\nexport const two = );\n';
const importing = (path: string) =>
  policySource('MyPolicy', '', { imports: `import { two } from '${path}';` });

it.each<[string, Readonly<Record<string, string>>, string, RegExp]>([
  [
    'a file below it',
    { 'policies/my.js': importing('./lib/two.js'), 'policies/lib/two.js': BROKEN },
    'my.js',
    /policies\/lib\/two\.js:2\)/,
  ],
  [
    'an import of what is not exported',
    { 'policies/my.js': importing('./lib/two.js'), 'policies/lib/two.js': 'export const one = 1;\n' },
    'my.js',
    /'two' \(.*policies\/my\.js:2\)/,
  ],
  [
    'TypeScript that this Node may not read',
    { 'policies/my.ts': policySource('MyPolicy', 'let x: number = ;') },
    'my.ts',
    /policies\/my\.ts#MyPolicy.*(?:does not read TypeScript|could not be loaded)/,
  ],
])('is named with its file and line: %s', async (_, files, name, said) => {
  const cwd = folderOf({
    ...files,
    'task.yaml': 'run: hostname\n',
    'blazar.conf': `${CONFIG}./policies/${name}#MyPolicy\n`,
  });
  for (const command of [['config', 'validate'], ['skypilot', 'review', 'task.yaml'], ['serve']]) {
    const { stderr, code } = await runCommand([...command, '--config-file', 'blazar.conf'], { cwd });
    expect(stderr).toMatch(/blazar\.conf:4: \[skypilot\] admin_policies: the policy /);
    expect(stderr).toMatch(said);
    expect(code).not.toBe(0);
  }
});

it('is named at a reload, and the policy before it still decides', async () => {
  const cwd = folderOf({
    'policies/my.js': policySource('MyPolicy'),
    'blazar.conf': `${CONFIG}./policies/my.js#MyPolicy\n`,
  });
  const running = startUntilFinished(['serve', '--config-file', 'blazar.conf'], { cwd });
  await running.printed(/Listening on (http\S+)/);
  const file = join(cwd, 'policies/my.js');
  writeFileSync(file, `${readFileSync(file, 'utf8')}\nlet x = ;\n`);
  running.process.kill('SIGHUP');
  await vi.waitFor(
    () => {
      const { stdout, stderr } = running.output();
      expect(stdout + stderr).toMatch(/policies\/my\.js:\d+\)[\s\S]*configuration not reloaded/);
    },
    { timeout: 120_000, interval: 100 },
  );
});
