/** `test --watch` with real files, and how it ends. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folderOf, temporaryFolder } from '../support/filter-folder.ts';
import { confWith, NOW, RULES } from '../support/lease-cases.ts';
import { startUntilFinished } from '../support/run-command.ts';

it('--watch runs again when a case, a rule or the configuration changes, and ends cleanly with Ctrl-C', async () => {
  const budget = 'ledger: {budgets: [{project: students, from: -1d, until: +30d, amount: 1000}]}\n';
  const folder = folderOf({
    'blazar.conf': confWith(', UsageBudgetFilter'),
    'rules.yaml': RULES,
    'cases/one.yaml': `${NOW}${budget}lease: {project: students, days: 2}\nexpect: allowed\n`,
  });
  const temporary = temporaryFolder();
  const watching = startUntilFinished(['test', '--watch'], { cwd: folder, env: { TMPDIR: temporary } });
  await watching.printed(/\n1 passed\n/);
  writeFileSync(join(folder, 'rules.yaml'), RULES.replace('48.0', '24.0'));
  await watching.printed(/\n0 passed, 1 failed\n/);
  writeFileSync(join(folder, 'rules.yaml'), 'rules: [');
  await watching.printed(/1 mistake\n/);
  writeFileSync(join(folder, 'rules.yaml'), RULES);
  await watching.printed(/1 mistake\n[\s\S]*\n1 passed\n/);
  writeFileSync(join(folder, 'cases/two.yaml'), `${NOW}lease: {}\nexpect: rejected\n`);
  await watching.printed(/\n2 passed\n/);
  writeFileSync(join(folder, 'blazar.conf'), confWith(''));
  await watching.printed(/\n0 passed, 1 failed, 1 mistake\n/);
  watching.process.kill('SIGINT');
  const { code, stderr } = await watching.ended;
  expect(code).toBe(2);
  expect(stderr).not.toContain('    at ');
  expect(readdirSync(temporary)).toEqual([]);
});
