/**
 * `npm run test:node -- 26`: runs the tests with the newest Node.js 26, which comes from the npm registry and is kept in node_modules/.cache.
 * What follows the version goes to vitest: `npm run test:node -- 26 test/ledger`. Tests that start the command need a fresh `npm run build`.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const CACHE = join(ROOT, 'node_modules/.cache/node');
const NAME = `node-${process.platform}-${process.arch}`;

const [wanted = '', ...args] = process.argv.slice(2);
if (!/^\d+(\.\d+){0,2}$/.test(wanted)) {
  console.error(`expected a version of Node.js, such as 26 or 22.16.0, got "${wanted}"`);
  process.exit(2);
}

const npm = (folder, ...words) =>
  execFileSync('npm', words, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
// One that fits is a text, several are a list from the oldest to the newest.
const version = [JSON.parse(npm(ROOT, 'view', `${NAME}@${wanted}`, 'version', '--json'))].flat().at(-1);
const folder = join(CACHE, version);
if (!existsSync(folder)) {
  mkdirSync(CACHE, { recursive: true });
  const work = mkdtempSync(join(CACHE, 'download-'));
  try {
    const tarball = npm(work, 'pack', '--silent', `${NAME}@${version}`).trim();
    execFileSync('tar', ['-xzf', tarball], { cwd: work });
    renameSync(join(work, 'package'), folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
const node = join(folder, 'bin/node');
console.error(`Node.js ${version}: ${node}`);
const { status } = spawnSync(
  node,
  [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--project', 'suite', ...args],
  // Tests start `node` and npm too.
  {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` },
  },
);
process.exitCode = status ?? 1;
