import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importedFiles, syntaxErrorPlace } from '../../src/plugin/importing.ts';
import { filterFolder, temporaryFolder } from '../support/filter-folder.ts';

describe('the files that a module imports', () => {
  it('are found by relative paths, each once, also in circles', () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'lib'));
    writeFileSync(join(folder, 'a.js'), `import x from "./lib/b.mjs";\nimport './gone.js'; import 'zod';`);
    writeFileSync(join(folder, 'lib/b.mjs'), `export * from '../a.js';\nconst c = await import('./c.js');`);
    writeFileSync(join(folder, 'lib/c.js'), `const d = require('./d.cjs')`);
    writeFileSync(join(folder, 'lib/d.cjs'), '');
    const names = ['a.js', 'lib/b.mjs', 'lib/c.js', 'lib/d.cjs'];
    expect(importedFiles(join(folder, 'a.js'))).toEqual(names.map((name) => join(folder, name)));
  });

  it('are bounded, and none if there is no file', () => {
    const folder = temporaryFolder();
    const many = Array.from({ length: 1000 }, (_, index) => `import './${index}.js';`).join('\n');
    writeFileSync(join(folder, 'a.js'), many);
    expect(importedFiles(join(folder, 'a.js')).length).toBeLessThan(25);
    expect(importedFiles(join(folder, 'nowhere.js'))).toEqual([]);
  });
});

const FILES = {
  'sound.js': "import './wrong.js';\nexport const a = 1;\n",
  'other.js': 'export const b = ];\n',
  'wrong.js': 'export const c = 1;\n\nconst d = ;\n',
};
const NAMES = ['sound.js', 'other.js', 'wrong.js'];

it('finds the file and the line of the error among files with other errors', async () => {
  const folder = filterFolder(FILES);
  const files = NAMES.map((name) => join(folder, name));
  const error = new SyntaxError("Unexpected token ';'");
  expect(await syntaxErrorPlace(error, files)).toBe(`${folder}/wrong.js:3`);
  expect(await syntaxErrorPlace(error, files.slice(0, 2))).toBeUndefined();
  expect(await syntaxErrorPlace(error, [join(folder, 'gone.js')])).toBeUndefined();
});

it('reads the place from the stack if Node has put it there', async () => {
  const error = new SyntaxError("does not provide an export named 'x'");
  error.stack = `file:///etc/a%20b/my-filter.js?changed=1:7\nimport { x } from './y.js';\n         ^\n${error.stack}`;
  expect(await syntaxErrorPlace(error, [])).toBe('/etc/a b/my-filter.js:7');
});
