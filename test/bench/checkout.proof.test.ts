/** What `npm run bench -- --against REF` measures is the commit's own package, built by its own scripts, beside this tree's bench. Peers: git, npm. */
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Checkout, findCommit } from '../../bench/reference/checkout.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

function git(root: string, ...parameters: string[]): string {
  const identity = ['-c', 'user.name=nobody', '-c', 'user.email=nobody@localhost'];
  return execFileSync('git', ['-C', root, ...identity, ...parameters], { encoding: 'utf8' }).trim();
}

const LOCK = { name: 'made-up', lockfileVersion: 3, requires: true, packages: { '': { name: 'made-up' } } };

/** A clone of a project whose only commit is built by this program; a bench is compiled in its tree. */
function clone(build: string, files: Readonly<Record<string, string>> = {}): string {
  const root = temporaryFolder();
  const all = {
    'package.json': JSON.stringify({ name: 'made-up', scripts: { build: 'node build.cjs' } }),
    'build.cjs': build,
    'package-lock.json': JSON.stringify(LOCK),
    '.gitignore': 'dist\nnode_modules\n',
    'bench/peers/peer.py': '',
    'test/fixtures/request.json': 'of the commit',
    ...files,
  };
  write(root, all);
  git(root, 'init', '--quiet');
  git(root, 'add', '.');
  git(root, 'commit', '--quiet', '--message', 'First');
  write(root, {
    'dist/bench/main.js': 'of this tree',
    'dist/test/support.js': 'of this tree',
    'dist/src/index.js': 'of this tree',
    'node_modules/zod/index.js': '',
    'test/fixtures/request.json': 'of this tree',
  });
  return root;
}

function write(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

const BUILD = `
const fs = require('node:fs');
for (const folder of ['dist/bench', 'dist/src']) {
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(folder + '/main.js', 'of the commit');
}`;

async function checkedOut(root: string): Promise<{ checkout: Checkout; told: string[] }> {
  const checkout = new Checkout(root, findCommit(root, 'HEAD'));
  onTestFinished(() => checkout.remove());
  const told: string[] = [];
  await checkout.make((text) => told.push(text));
  return { checkout, told };
}

describe('a commit to compare with', () => {
  it('is found by each of its names', () => {
    const root = clone(BUILD);
    const hash = git(root, 'rev-parse', 'HEAD');
    git(root, 'tag', 'v0.1.0');
    for (const ref of ['HEAD', 'v0.1.0', hash, hash.slice(0, 8)]) {
      expect(findCommit(root, ref)).toEqual({ ref, hash });
    }
  });

  it.each(['v9.9.9', 'HEAD~1', 'HEAD:package.json', '--help', 'two words'])('is not %s', (ref) => {
    expect(() => findCommit(clone(BUILD), ref)).toThrow(
      `expected a tag, branch or commit of this clone, got ${JSON.stringify(ref)}`,
    );
  });
});

describe('its checkout', () => {
  it('has its package with the bench and fixtures of this tree, and its own bench beside them', async () => {
    const { checkout, told } = await checkedOut(clone(BUILD));
    const { folder, bench, ownBench } = checkout;
    const text = (path: string) => readFileSync(join(folder, path), 'utf8');
    expect(text('dist/src/main.js')).toBe('of the commit');
    expect(text('dist/bench/main.js')).toBe('of this tree');
    expect(text('dist/test/support.js')).toBe('of this tree');
    expect(text('test/fixtures/request.json')).toBe('of this tree');
    expect(readFileSync(new URL('main.js', bench), 'utf8')).toBe('of this tree');
    expect(ownBench && readFileSync(ownBench, 'utf8')).toBe('of the commit');
    expect(text('own/src/main.js')).toBe('of the commit');
    expect(told).toEqual([
      'HEAD: package-lock.json is the same: its node_modules are those of this tree',
      'HEAD: npm run build',
    ]);
    expect(lstatSync(join(folder, 'node_modules')).isSymbolicLink()).toBe(true);
  });

  it('has node_modules of its own where package-lock.json is another one', async () => {
    const root = clone(BUILD);
    write(root, { 'package-lock.json': JSON.stringify({ ...LOCK, version: '2' }) });
    const { checkout, told } = await checkedOut(root);
    expect(told[0]).toBe('HEAD: package-lock.json is another one: npm ci');
    expect(existsSync(join(checkout.folder, 'node_modules/zod'))).toBe(false);
  });

  it('shows the last lines of a build that fails', async () => {
    const root = clone(`
      for (let line = 0; line < 40; line += 1) console.log('line ' + line);
      process.exit(3);`);
    const making = checkedOut(root);
    await expect(making).rejects.toThrow(
      /^HEAD cannot be measured: npm run build -- --noCheck ended with 3:\n/,
    );
    await expect(making).rejects.toThrow(/\nline 39\b/);
    await expect(making).rejects.not.toThrow(/\nline 1\n/);
  });

  it('leaves nothing behind when it is removed, and takes no modules of this tree with it', async () => {
    const root = clone(BUILD);
    const { checkout } = await checkedOut(root);
    const { folder } = checkout;
    expect(git(root, 'worktree', 'list').split('\n')).toHaveLength(2);
    checkout.remove();
    expect(existsSync(join(folder, '..'))).toBe(false);
    expect(git(root, 'worktree', 'list').split('\n')).toHaveLength(1);
    expect(readdirSync(join(root, 'node_modules'))).toEqual(['zod']);
    expect(git(root, 'status', '--short')).toBe('M test/fixtures/request.json');
  });
});
