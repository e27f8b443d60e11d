import { join } from 'node:path';
import { expect, it } from 'vitest';
import { syntaxErrorPlace } from '../../src/plugin/syntax-errors.ts';
import { filterFolder } from '../support/filter-folder.ts';

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
