/** Who may use which policy, held against what a real API server has answered: see test/peers/kubernetes-rights.proof.test.ts. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readPolicyDocuments } from '../../../src/kubernetes/policies/documents/documents.ts';
import { SchedulingPolicies } from '../../../src/kubernetes/policies/scheduling-policies.ts';
import { ANSWERS, type Answers, GROUPS, OBJECTS, POLICY_NAMES } from '../../support/access-questions.ts';
import { temporaryFile } from '../../support/files.ts';

const { answers } = JSON.parse(readFileSync(ANSWERS, 'utf8')) as Answers;

describe.each(GROUPS)('policies of the group %s', (group) => {
  it('may be used exactly by those whom a SubjectAccessReview allows', () => {
    const policies = POLICY_NAMES.map((name) => ({
      apiVersion: `${group}/v1alpha1`,
      kind: 'SchedulingPolicy',
      metadata: { name },
      spec: {},
    }));
    const list = { apiVersion: 'v1', kind: 'List', items: [...policies, ...OBJECTS] };
    const documents = readPolicyDocuments([temporaryFile('roles.json', JSON.stringify(list))]);
    expect(documents.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
    const scheduling = new SchedulingPolicies(documents);
    const usable = answers.map(({ user, groups, namespace }) => ({
      user,
      namespace,
      usable: scheduling.effectiveFor({ user, groups, namespace }).policies,
    }));
    expect(usable).toEqual(
      answers.map(({ user, namespace, usable: asked }) => ({ user, namespace, usable: asked[group] })),
    );
    expect(new Set(usable.map(({ usable: names }) => names.length))).toEqual(new Set([0, 1, 2]));
  });
});
