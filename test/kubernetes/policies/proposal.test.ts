/** Every YAML example of the proposal, verbatim: which of them are refused, and why. What the others mean is in `rules`. */
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../src/base/errors.ts';
import { readPolicyDocuments } from '../../../src/kubernetes/policies/documents/documents.ts';
import { projectFile } from '../../support/files.ts';

const FOLDER = projectFile('test/fixtures/kubernetes/proposal');
const FILES = readdirSync(FOLDER).sort();
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const AN_EMPTY_LIST =
  'expected at least one name, because nothing satisfies an empty list, got an empty list';

/** By the number of the file, without its folder. */
const PROBLEMS: Readonly<Record<string, string>> = {
  '03': `:4: spec.required.SchedulerNames: ${AN_EMPTY_LIST}`,
  '14': `:4: spec.required.priorityClasseNames: ${AN_EMPTY_LIST}`,
  '18': `:16: spec.allowed.affinities.nodeAffinities.${REQUIRED}.podAntiAffinities: nested too deep: it belongs under spec.allowed.affinities`,
  // Alone, what these three refer to is not there.
  '32': ':14: rules[0].resourceNames[0]: there is no SchedulingPolicy "restricted"',
  '33': ':12: roleRef.name: there is no ClusterRole "sp:restricted"',
  '34': ':13: roleRef.name: there is no ClusterRole "sp:privileged"',
};
const WITH_TWO_POLICIES = ['22', '24', '26'];

describe('an example of the proposal', () => {
  it('is there', () => {
    expect(FILES.map((file) => Number(file.slice(0, 2)))).toEqual(
      Array.from({ length: 34 }, (_, at) => at + 1),
    );
  });

  it.each(FILES)('is accepted or rejected as the table says: %s', (file) => {
    const path = `${FOLDER}/${file}`;
    const number = file.slice(0, 2);
    const { policies, roles, bindings, problems } = readPolicyDocuments([path]);
    const problem = PROBLEMS[number];
    expect(problems.map((one) => formatProblem(one).replace(path, ''))).toEqual(
      problem === undefined ? [] : [problem],
    );
    const read = problem === undefined ? policies : [...roles, ...bindings];
    const isPolicy = Number(number) < 32;
    expect(read).toHaveLength(
      isPolicy && problem !== undefined ? 0 : WITH_TWO_POLICIES.includes(number) ? 2 : 1,
    );
  });
});
