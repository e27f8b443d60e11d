/** `npm run simulate` runs histories, and refuses flags that it does not know. */
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

function simulate(...args: readonly string[]) {
  return spawnSync(process.execPath, ['tools/simulate.js', ...args], { encoding: 'utf8' });
}

it('runs the history of a seed', () => {
  const { status, stdout, stderr } = simulate('--seed', '34');
  expect(stdout + stderr).toMatch(/^Histories: 1$/m);
  expect(status).toBe(0);
});

it.each([
  [['--minutes', '0'], '--minutes: expected a whole number from 1 to 9999, got "0"'],
  [['--minutes', '20m'], '--minutes: expected a whole number from 1 to 9999, got "20m"'],
  [['--seed', '4294967296'], '--seed: expected a whole number below 4294967296, got "4294967296"'],
  [['--seed', ''], '--seed: expected a whole number below 4294967296, got ""'],
  [['--seed', '7', '--minutes', '1'], 'expected --minutes or --seed, got both'],
])('refuses %j', (args, why) => {
  expect(simulate(...args)).toMatchObject({ status: 2, stdout: '', stderr: `simulate: ${why}\n` });
});
