/** A file of rules that was cut off never means fewer rules without anybody being told. */

import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../src/base/errors.ts';
import { cutOffProblems, ruleChanges, writtenRules } from '../../src/rules/cut-off-rules.ts';
import { leaseEnvironment } from '../../src/rules/lease/environment.ts';
import { readRules } from '../../src/rules/read-rules.ts';
import { temporaryFile } from '../support/files.ts';
import { RULES } from './rules-to-cut.ts';

const environments = { create: leaseEnvironment('create'), update: leaseEnvironment('update') };
function written(text: string) {
  const file = temporaryFile('rules.yaml', text);
  return {
    file,
    read: () => writtenRules([file]),
    mistakes: () => readRules(file, environments).problems.filter(({ severity }) => severity === 'error'),
  };
}

const texts = (problems: readonly Parameters<typeof formatProblem>[0][], file: string) =>
  problems.map((one) => formatProblem(one).replaceAll(dirname(file), '…'));

describe('a file that is cut off', () => {
  it('at any line says the same, or is refused', () => {
    const { file, read, mistakes } = written(RULES);
    const before = read();
    const lines = RULES.split('\n');
    for (const line of lines.keys()) {
      writeFileSync(file, `${lines.slice(0, line).join('\n')}\n`);
      const next = read();
      if (mistakes().length === 0 && cutOffProblems(before, next).length === 0) {
        expect([line, ruleChanges(before, next)]).toEqual([
          lines.length - 1,
          { added: [], changed: [], gone: [] },
        ]);
      }
    }
  });

  it.for<[string, string, string]>([
    [
      'at a line',
      RULES.slice(0, RULES.indexOf('  - name: named')),
      'rules.yaml:9: the end of the file is gone, and with it rule named, or a part of it; restart to accept it',
    ],
    [
      'within a rule',
      RULES.slice(0, RULES.indexOf('      && lease')),
      'rules.yaml:7: the end of the file is gone, and with it rules two-days, two-hosts, named, or a part of them; restart to accept it',
    ],
    [
      'after a change',
      RULES.replace('48.0', '36.0').slice(0, -1),
      'rules.yaml:12: the file no longer ends with a line break, so it was most likely cut off; add one, or restart to accept it',
    ],
    [
      'in what is new',
      `${RULES}  - {name: new, message: New., allow: 1 < 2}`,
      'rules.yaml:13: the file no longer ends with a line break, so it was most likely cut off; add one, or restart to accept it',
    ],
  ])('%s is refused with its line', ([, text, problem]) => {
    const { file, read } = written(RULES);
    const before = read();
    writeFileSync(file, text);
    expect(texts(cutOffProblems(before, read()), file)).toEqual([`…/${problem}`]);
  });

  it.each([RULES, RULES.trimEnd()])('is accepted where only comments and line breaks are gone', (text) => {
    const { file, read } = written(`${RULES}\n# The end\n`);
    const before = read();
    writeFileSync(file, text);
    expect(cutOffProblems(before, read())).toEqual([]);
  });
});

it('accepts other rules in a file that is whole, and says which', () => {
  const { file, read } = written(RULES);
  const before = read();
  const other = RULES.replace('48.0', '36.0').replace('name: two-hosts', 'name: three-hosts');
  writeFileSync(file, other);
  expect(cutOffProblems(before, read())).toEqual([]);
  expect(ruleChanges(before, read())).toEqual({
    added: ['three-hosts'],
    changed: ['two-days'],
    gone: ['two-hosts'],
  });
});

it.for<[string, string]>([
  ['', 'rules.yaml:1: expected a mapping with the key rules, got an empty file'],
  ['# none\n', 'rules.yaml:1: expected a mapping with the key rules, got an empty file'],
  ['{}\n', 'rules.yaml:1: rules: expected a list of rules, got nothing'],
  ['rules:\n', 'rules.yaml:1: rules: expected a list of rules, got null'],
  ['rules: []\n', 'rules.yaml:1: rules: expected at least one rule, got an empty list'],
])('refuses the file %j: nothing would be enforced', ([text, problem]) => {
  const { file, mistakes } = written(text);
  expect(texts(mistakes(), file)).toEqual([
    expect.stringMatching(`^…/${problem.replace(/\[/g, '\\[').replace(':1:', ':1(:\\d+)?:')}$`),
  ]);
});

it('warns of a file without a line break at its end', () => {
  const { file } = written(RULES.trimEnd());
  expect(texts(readRules(file, environments).problems, file)).toEqual([
    '…/rules.yaml:12: the file does not end with a line break: it may have been cut off',
  ]);
});

describe('a file of a folder', () => {
  const folderOf = () => {
    const first = temporaryFile('a.yaml', RULES);
    const folder = dirname(first);
    const other = join(folder, 'b.yaml');
    writeFileSync(other, 'rules:\n- {name: pods, on: pod, message: No., allow: "true"}\n');
    return { first, other, folder, read: () => writtenRules([folder]) };
  };

  it('that is gone takes its rules with it, which is said', () => {
    const { other, folder, read } = folderOf();
    const before = read();
    writeFileSync(join(folder, 'c.yaml'), 'rules:\n- {name: c, message: No., allow: "true"}\n');
    const between = read();
    rmSync(join(folder, 'c.yaml'));
    expect(ruleChanges(between, read())).toEqual({ added: [], changed: [], gone: ['c'] });
    expect(cutOffProblems(between, read())).toEqual([]);
    rmSync(other);
    expect(texts(cutOffProblems(before, read()), other)).toEqual([
      '…: the last rule for pods is gone; restart to accept it',
    ]);
  });

  it('may give its rules to another file', () => {
    const { first, folder, read } = folderOf();
    const before = read();
    renameSync(first, join(folder, 'c.yaml'));
    expect(cutOffProblems(before, read())).toEqual([]);
    expect(ruleChanges(before, read())).toEqual({ added: [], changed: [], gone: [] });
  });

  it.for<[string, (file: string) => void, string]>([
    ['a folder', (file) => mkdirSync(file), '(it is a folder)'],
    ['a pipe', (file) => execFileSync('mkfifo', [file]), '(it is no regular file)'],
    ['a link to nothing', (file) => symlinkSync(`${file}.gone`, file), '(there is no such file)'],
    ['a link to itself', (file) => symlinkSync(file, file), '(ELOOP'],
    ['a link to a device', (file) => symlinkSync('/dev/zero', file), '(it is no regular file)'],
    ['no text', (file) => writeFileSync(file, Buffer.from([0xff, 0xfe, 0x00])), '(it is not UTF-8 text)'],
  ])('that becomes %s is a mistake', ([, become, problem]) => {
    const { first, folder } = folderOf();
    rmSync(first);
    become(first);
    const [mistake, ...others] = texts(readRules(folder, environments).problems, first);
    expect(mistake).toContain(`…/a.yaml:1: expected a file that can be read ${problem}`);
    expect(others).toEqual([]);
  });
});
