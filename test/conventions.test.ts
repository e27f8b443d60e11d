import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, it } from 'vitest';
import { projectFile } from './support/files.ts';

/** Words that stood for what docs/architecture.md ("Words") has other words for. */
const PRIVATE = `
  asker breath course courses crew deaf dear dearest deed desk door doors foresee foreseen gate gates ground grounds
  guest healed house impatient keeper lane lanes namesakes news occasion occupation pace patience people person
  posting prospect reckon reckoned reckoning regardless rehearsal rehearsed rounds seat sheet stake
  standing straight surroundings turn turns unasked walker walkers wish wished wishes workshop worlds
`
  .trim()
  .split(/\s+/);

function filesOf(folder: string, pattern: RegExp): string[] {
  return readdirSync(projectFile(folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => pattern.test(path))
    .map((path) => join(folder, path));
}

it('files and exports are named by the words of docs/architecture.md', () => {
  const files = ['src', 'filters', 'policies'].flatMap((folder) => filesOf(folder, /\.tsx?$/));
  const names = files.flatMap((file) => {
    const exported = readFileSync(projectFile(file), 'utf8').matchAll(
      /^export (?:abstract |async |declare )*(?:function\*?|const|class|interface|type) (\w+)/gm,
    );
    return [basename(file), ...[...exported].map(([, name = '']) => name)].map((name) => `${file}: ${name}`);
  });
  const tests = filesOf('test', /\.tsx?$/).map((file) => `${file}: ${basename(file)}`);
  const found = [...names, ...tests].filter((name) => {
    const words = name.split(': ')[1]?.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? [];
    return words.some((word) => PRIVATE.includes(word.toLowerCase()));
  });
  expect(files.length).toBeGreaterThan(300);
  expect(found).toEqual([]);
});

it('every proof says in its first line what it proves', () => {
  const silent = filesOf('test', /\.proof\.test\.tsx?$/).filter(
    (file) => !readFileSync(projectFile(file), 'utf8').startsWith('/**'),
  );
  expect(silent).toEqual([]);
});

it('no literal is spread into another one, which only hides its members from the formatter', () => {
  const folders = [
    'src',
    'filters',
    'policies',
    'external-service-example',
    'examples',
    'test',
    'bench',
    'tools',
  ];
  const files = folders.flatMap((folder) => filesOf(folder, /\.[jt]sx?$/));
  const spread = files.filter((file) => /\.\.\.\{/.test(readFileSync(projectFile(file), 'utf8')));
  expect(spread.filter((file) => basename(file) !== 'conventions.test.ts')).toEqual([]);
});
