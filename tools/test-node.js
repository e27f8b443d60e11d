/**
 * `npm run test:node -- 26`: runs the tests with the newest Node.js 26, from the npm registry, cached in
 * node_modules/.cache. Arguments after the version go to vitest: `npm run test:node -- 26 test/ledger`. Tests
 * that start the command need a fresh `npm run build`.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { downloadedNode } from './downloaded-node.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const [wanted = '', ...args] = process.argv.slice(2);
if (!/^\d+(\.\d+){0,2}$/.test(wanted)) {
  console.error(`expected a version of Node.js, such as 26 or 22.16.0, got "${wanted}"`);
  process.exit(2);
}

const node = downloadedNode(wanted);
console.error(`Node.js ${execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()}: ${node}`);
const { status } = spawnSync(
  node,
  [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--project', 'suite', ...args],
  // Tests also start `node` and npm.
  {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` },
  },
);
process.exitCode = status ?? 1;
