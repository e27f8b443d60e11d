import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { moduleFiles, versionOf } from '../../src/plugin/module-files.ts';
import { fallbackResolve, resolve, withVersion } from '../../src/plugin/packages-hook.ts';
import { filterFolder, temporaryFolder } from '../support/filter-folder.ts';

const FILES = { 'a-filter.js': '1', 'data.json': '2', 'types.ts': '3' };

describe('the module files of a folder', () => {
  it('are its code and that of folders below, without hidden folders, node_modules and links to folders', () => {
    const folder = filterFolder({ ...FILES, 'README.md': '', '.hidden.js': '' });
    for (const below of ['lib/deep', 'node_modules/x', '.git']) {
      mkdirSync(join(folder, below), { recursive: true });
      writeFileSync(join(folder, below, 'index.mjs'), '');
    }
    symlinkSync(folder, join(folder, 'round'));
    expect(moduleFiles(folder)).toEqual(
      [...Object.keys(FILES), 'lib/deep/index.mjs'].map((name) => join(folder, name)),
    );
  });

  it('are at most a thousand, and none if the folder cannot be read', () => {
    const folder = filterFolder(
      Object.fromEntries(Array.from({ length: 1100 }, (_, index) => [`${index}.js`, ''])),
    );
    expect(moduleFiles(folder)).toHaveLength(1000);
    expect(moduleFiles(join(temporaryFolder(), 'nowhere'))).toEqual([]);
  });
});

describe('the version of files', () => {
  it.each([
    ['is changed', (folder: string) => writeFileSync(join(folder, 'data.json'), '22')],
    [
      'is changed to a text of the same length',
      (folder: string) => utimesSync(join(folder, 'data.json'), 1, 1),
    ],
    ['is added', (folder: string) => writeFileSync(join(folder, 'b.js'), '')],
  ])('is another one when one of them %s', (_, change) => {
    const folder = filterFolder(FILES);
    const version = () => versionOf(folder, moduleFiles(folder));
    expect([version(), version()]).toEqual([null, null]);
    change(folder);
    const second = version();
    expect(second).toMatch(/^[\w-]{16}$/);
    expect(version()).toBe(second);
  });
});

describe('the version of a module', () => {
  const parentURL = withVersion('file:///filters/a-filter.js', 'v2');
  const resolveTo = (url: string) => (specifier: string) => ({ url, specifier });
  it.each([
    ['./b.js', 'file:///filters/b.js', 'file:///filters/b.js?changed=v2'],
    ['../lib/b.js', 'file:///lib/b.js?raw', 'file:///lib/b.js?raw=&changed=v2'],
    ['/lib/b.js', 'file:///lib/b.js', 'file:///lib/b.js?changed=v2'],
    ['zod', 'file:///filters/node_modules/zod/index.js', 'file:///filters/node_modules/zod/index.js'],
    ['./b.js', 'file:///x/node_modules/y/b.js', 'file:///x/node_modules/y/b.js'],
    ['node:fs', 'node:fs', 'node:fs'],
  ])('passes to what it imports as %s from %s', async (specifier, url, versioned) => {
    expect(fallbackResolve(specifier, { parentURL }, resolveTo(url)).url).toBe(versioned);
    expect((await resolve(specifier, { parentURL }, async () => ({ url }))).url).toBe(versioned);
    const first = { parentURL: 'file:///filters/a-filter.js' };
    expect(fallbackResolve(specifier, first, resolveTo(url)).url).toBe(url);
  });
});
