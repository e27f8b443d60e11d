/** Node.js from the npm registry, in any version, cached in node_modules/.cache. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CACHE = fileURLToPath(new URL('../node_modules/.cache/node', import.meta.url));
const NAME = `node-${process.platform}-${process.arch}`;

/**
 * Downloads the newest version that matches `wanted`, such as `26` or `22.16.0`, unless it is cached.
 * @param {string} wanted
 * @returns {string} The path of `node`.
 */
export function downloadedNode(wanted) {
  mkdirSync(CACHE, { recursive: true });
  const npm = (folder, ...words) =>
    execFileSync('npm', words, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  // One match is a string, several are a list in alphabetical order.
  const fitting = [JSON.parse(npm(CACHE, 'view', `${NAME}@${wanted}`, 'version', '--json'))].flat();
  const version = fitting.sort(new Intl.Collator('en', { numeric: true }).compare).at(-1);
  const folder = join(CACHE, version);
  if (!existsSync(folder)) {
    const work = mkdtempSync(join(CACHE, 'download-'));
    try {
      const tarball = npm(work, 'pack', '--silent', `${NAME}@${version}`).trim();
      execFileSync('tar', ['-xzf', tarball], { cwd: work });
      renameSync(join(work, 'package'), folder);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  }
  return join(folder, 'bin/node');
}
