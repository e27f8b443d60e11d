/**
 * `npm run simulate -- --minutes 20`: runs histories of replicas, a Blazar and an external service from
 * random seeds (default: one minute). The first one that violates an invariant is shrunk and printed, and the
 * exit status is 1. `--seed 7`: only the history of that seed.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

function flags() {
  const { values } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' } } });
  const { minutes, seed } = values;
  if (minutes !== undefined && seed !== undefined) {
    throw new Error('expected --minutes or --seed, got both');
  }
  if (minutes !== undefined && !/^[1-9]\d{0,3}$/.test(minutes)) {
    throw new Error(`--minutes: expected a whole number from 1 to 9999, got "${minutes}"`);
  }
  if (seed !== undefined && !(/^\d{1,10}$/.test(seed) && Number(seed) < 2 ** 32)) {
    throw new Error(`--seed: expected a whole number below ${2 ** 32}, got "${seed}"`);
  }
  return seed === undefined ? { SIMULATION_MINUTES: minutes ?? '1' } : { SIMULATION_SEED: seed };
}

let asked;
try {
  asked = flags();
} catch (error) {
  console.error(`simulate: ${error.message}`);
  process.exit(2);
}
const root = fileURLToPath(new URL('..', import.meta.url));
const vitest = [
  'node_modules/vitest/vitest.mjs',
  'run',
  '--disable-console-intercept',
  '--project',
  'proofs',
];
const { status } = spawnSync(
  process.execPath,
  [...vitest, 'test/simulation/simulation.proof.test.ts', '-t', 'no history'],
  { cwd: root, stdio: 'inherit', env: { ...process.env, ...asked } },
);
process.exitCode = status ?? 1;
