/** `npm run bench -- --against REF` measures the commit before too, and leaves nothing behind, whatever happens. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Result } from '../../bench/harness/results.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { skipAloud } from '../support/peers.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MAIN = fileURLToPath(new URL('../../dist/bench/main.js', import.meta.url));
const BEFORE = 'HEAD~1';
const QUICK = ['--quick', '--runs', '1', '--only', 'cold-start'];

function hasCommitBefore(): boolean {
  const { status } = spawnSync('git', ['-C', ROOT, 'rev-parse', '--verify', '--quiet', `${BEFORE}^{commit}`]);
  if (status !== 0) {
    skipAloud('a clone with its history', `${ROOT} has no commit ${BEFORE}`);
  }
  return status === 0;
}

const worktrees = () => execFileSync('git', ['-C', ROOT, 'worktree', 'list'], { encoding: 'utf8' });

/** Everything temporary is in this folder. */
function bench(temporary: string, ...flags: string[]) {
  const environment = { ...process.env, TMPDIR: temporary };
  return spawn(process.execPath, [MAIN, ...flags], { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
}

async function ended(
  child: ReturnType<typeof bench>,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const [[code], stdout, stderr] = await Promise.all([
    once(child, 'close'),
    text(child.stdout),
    text(child.stderr),
  ]);
  return { code, stdout, stderr };
}

describe.runIf(hasCommitBefore())('npm run bench -- --against the commit before', () => {
  it('measures both in one run, and removes what it made', async () => {
    const temporary = temporaryFolder();
    const child = bench(temporary, ...QUICK, '--format', 'json', '--against', BEFORE);
    const { code, stdout, stderr } = await ended(child);
    expect(stderr).toContain(`${BEFORE}: npm run build\n`);
    const { against, results } = JSON.parse(stdout) as {
      against: { ref: string };
      results: readonly Result[];
    };
    expect(code).toBe(0);
    expect(against.ref).toBe(BEFORE);
    expect(results.map(({ name }) => name)).toEqual(['check create', 'check create --format json', 'serve']);
    for (const { reference } of results) {
      expect(reference).toMatchObject({ value: expect.any(Number), ratio: expect.any(Number) });
    }
    expect(readdirSync(temporary)).toEqual([]);
    expect(worktrees()).not.toContain(temporary);
  });
});
