import { dirname } from 'node:path';
import { expect, it } from 'vitest';
import { formatProblem } from '../../src/base/errors.ts';
import { leaseEnvironment } from '../../src/rules/lease/environment.ts';
import { readRules } from '../../src/rules/read-rules.ts';
import { temporaryFile } from '../support/files.ts';

const environments = { create: leaseEnvironment('create'), update: leaseEnvironment('update') };

function problemsOf(text: string): string[] {
  const file = temporaryFile('rules.yaml', text);
  const { problems } = readRules(file, environments);
  return problems.map((problem) => formatProblem(problem).replace(`${dirname(file)}/`, ''));
}

it('reports a mistake of an expression at its line and column', () => {
  const rules = `rules:
- name: dates
  on: create
  allow: >-
    lease.start_date > now &&
    lease.strat_date < lease.end_date
  message: No.
- name: quoted
  on: create
  match: 'lease.name == ''x'' && nowe > now'
  allow: "true"
  message:
    expression: "  lease.nam"
`;
  expect(problemsOf(rules)).toEqual([
    'rules.yaml:6:11: rule dates: allow, at create: Lease has no attribute "strat_date"; the nearest right name is "start_date"',
    'rules.yaml:10:34: rule quoted: match, at create: nothing is called "nowe"; the nearest right name is "now"',
    'rules.yaml:13:26: rule quoted: message.expression, at create: Lease has no attribute "nam"; the nearest right name is "name"',
  ]);
});

it('refuses rules that together may take too long, and names the most expensive', () => {
  const rule = (index: number, allow: string) =>
    `- {name: r${index}, on: create, allow: '${allow}', message: Denied.}\n`;
  const loop = (name: string) =>
    `allocations.all(a, a.?${name}.orValue("") != "x" && a.?id.orValue("") != "y")`;
  const rules = Array.from({ length: 4 }, (_, index) => rule(index, loop('gpu')));
  expect(problemsOf(`rules:\n${rules.join('')}`)).toEqual([]);
  const more = [
    ...rules,
    ...Array.from({ length: 20 }, (_, index) => rule(20 + index, `${loop('a')} && true`)),
  ];
  const [problem, ...others] = problemsOf(`rules:\n${more.join('')}`);
  expect(others).toEqual([]);
  expect(problem).toMatch(/^rules.yaml:6: rule r20: all rules together may take [\d,]+ steps for one create/);
});

it('refuses a folder without rules, which would enforce nothing', () => {
  const folder = dirname(temporaryFile('rules.txt', 'rules: []\n'));
  const { problems } = readRules(folder, environments);
  expect(problems.map((problem) => formatProblem(problem).replace(folder, 'rules'))).toEqual([
    'rules: expected files that end in .yaml or .yml, found none: no rule would be enforced',
  ]);
});
