/** The rules that are included as examples: every case of theirs holds, and names all rules that refuse it. */
import { beforeAll, expect, it } from 'vitest';
import { caseFolder } from '../../src/cli/test/suites.ts';
import { projectFile } from '../support/files.ts';
import { type JudgedCase, judgedCases } from '../support/judged-cases.ts';

let cases: readonly JudgedCase[] = [];

beforeAll(async () => {
  cases = await judgedCases(caseFolder(projectFile('etc/rules'), 'named').files, projectFile('etc/rules'));
});

it('answer every case as it expects', () => {
  const others = cases.filter(({ outcome }) => outcome.status !== 'passed');
  expect(others.map(({ id, outcome }) => `${id}: ${outcome.reasons.join(' ')}`)).toEqual([]);
  expect(cases.length).toBeGreaterThan(100);
});

it('refuse with all rules that a case names, and no other', () => {
  const different = cases.flatMap(({ id, named, answers }) => {
    const refusing = [...answers].flatMap(([name, said]) => (said === 'refused' ? [name] : []));
    return named === undefined || refusing.sort().join() === [...named].sort().join()
      ? []
      : [`${id}: ${refusing.join(', ')}`];
  });
  expect(different).toEqual([]);
});

it('are each seen to allow and to refuse', () => {
  const names = new Set(cases.flatMap(({ answers }) => [...answers.keys()]));
  const seen = (name: string) => new Set(cases.map(({ answers }) => answers.get(name)));
  const unseen = [...names].filter((name) => !seen(name).has('allowed') || !seen(name).has('refused'));
  expect(unseen).toEqual([]);
  expect(names.size).toBe(15);
});
