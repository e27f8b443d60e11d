/** What can't be read at all. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../../src/base/errors.ts';
import { readPolicyDocuments } from '../../../../src/kubernetes/policies/documents/documents.ts';
import { temporaryFile } from '../../../support/files.ts';
import { temporaryFolder } from '../../../support/filter-folder.ts';

const policy = (spec: string) => `kind: SchedulingPolicy\nmetadata: {name: a}\nspec: {${spec}}\n`;
const problemsOf = (...paths: string[]) => readPolicyDocuments(paths).problems.map(formatProblem);

const UNUSUAL = 'a control character or an unusual line break, which must be escaped';

describe('a file is refused', () => {
  it.each<[string, string | Uint8Array, number | undefined, string]>([
    ['is empty', '', undefined, 'no document in this file'],
    ['holds comments', '# none\n---\n# none\n', undefined, 'no document in this file'],
    ['is no YAML, whatever else it holds', `${policy('x: 1')}---\nkind: "Role\n`, 6, 'missing char'],
    ['has a tab for an indent', 'kind: SchedulingPolicy\nspec:\n\tx: 1\n', 3, 'tab as indent'],
    ['is not UTF-8', new Uint8Array([0x6b, 0xff]), undefined, 'could not be read: it is not UTF-8 text'],
    ['is UTF-16', Buffer.from('kind: List\n', 'utf16le'), 1, UNUSUAL],
    ['has a character that steers', 'kind: List\nitems: []\nx: \u001b\n', 3, UNUSUAL],
    ['is nested too deep', `---\nkind: ${'['.repeat(200)}\n`, 2, 'it is nested deeper than 100 levels'],
    [
      'is larger than 32 MiB',
      new Uint8Array(32 * 1024 * 1024 + 1),
      undefined,
      'could not be read: it is longer than 33554432 bytes',
    ],
  ])('that %s', (_, content, line, reason) => {
    const file = temporaryFile('p.yaml', content);
    expect(problemsOf(file)).toEqual([`${line === undefined ? file : `${file}:${line}`}: ${reason}`]);
  });

  it('if it is missing, and a folder without policies', () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'README.md'), 'x');
    expect(problemsOf('/nowhere/a.yaml', folder, `${folder}/README.md/a.yaml`, 'a\0b')).toEqual([
      '/nowhere/a.yaml: could not be read: there is no such file',
      `${folder}: no *.yaml, *.yml or *.json file in this folder`,
      `${folder}/README.md/a.yaml: could not be read: a part of its path is not a folder`,
      'a\0b: could not be read: it is not a valid path',
    ]);
  });

  it.skipIf(process.getuid?.() === 0)('if it cannot be read, and a folder, too', () => {
    const folder = temporaryFolder();
    const file = join(folder, 'a.yaml');
    writeFileSync(file, policy('allowed: {}'));
    chmodSync(file, 0);
    expect(problemsOf(folder)).toEqual([`${file}: could not be read: permission denied`]);
    chmodSync(folder, 0);
    expect(problemsOf(folder)).toEqual([`${folder}: could not be read: permission denied`]);
    chmodSync(folder, 0o700);
  });

  it('and valid ones are read, with the errors of all', () => {
    const [broken, wrong] = ['kind: [', policy('x: 1')].map((text) => temporaryFile('p.yaml', text));
    const right = temporaryFile('right.yaml', policy('allowed: {}').replace('name: a', 'name: right'));
    const { policies, problems } = readPolicyDocuments([broken ?? '', wrong ?? '', right]);
    expect(policies.map(({ name }) => name)).toEqual(['right']);
    expect(problems).toHaveLength(2);
  });

  it('if it is given twice, by itself and in its folder', () => {
    const file = temporaryFile('p.yaml', policy('allowed: {}'));
    expect(problemsOf(file, join(file, '..'))).toEqual([
      `${file}:2: metadata.name: duplicate name: a SchedulingPolicy of this name is defined at ${file}:1`,
    ]);
  });
});
