import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importedFiles } from '../../src/plugin/imported-files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

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
