/** Pods at the door of a cluster. As they come over HTTP: test/server/kubernetes*.test.ts. */
import fc from 'fast-check';
import jsonPatch, { type Operation } from 'fast-json-patch';
import { describe, expect, it } from 'vitest';
import { type PodRequest, parseAdmissionReview } from '../../../src/kubernetes/admission/admission-review.ts';
import { MERGE_STRATEGIES } from '../../../src/kubernetes/policies/merge.ts';

import { SchedulingPolicies } from '../../../src/kubernetes/policies/scheduling-policies.ts';
import { creating, updating, type WireReview } from '../../support/kubernetes-service.ts';
import { deepFreeze } from '../../support/requests.ts';
import { policy } from '../../support/scheduling-policies.ts';
import { clusterRole, everywhere } from '../policies/documents/roles.ts';
import { cases } from '../policies/model/arbitraries.ts';
import { reviewer } from './reviewer.ts';

type Specs = readonly (readonly [name: string, spec: unknown])[];

/** Policies that everybody may use. */
function admission(specs: Specs, strategy: (typeof MERGE_STRATEGIES)[number] = 'deep', audit: string[] = []) {
  const documents = {
    policies: specs.map(([name, spec]) => policy(name, spec)),
    roles: [clusterRole('all', { apiGroups: ['*'], resources: ['*'], verbs: ['use'] })],
    bindings: [everywhere('all', { kind: 'Group', name: 'system:authenticated' })],
    problems: [],
  };
  return reviewer(new SchedulingPolicies(documents, { strategy }), { audit });
}

function podRequest(review: WireReview): PodRequest {
  const request = parseAdmissionReview(review);
  if (request.pod === undefined) {
    throw new Error('expected a pod');
  }
  return deepFreeze(request);
}

const patchOf = (patch: readonly object[]) => patch as readonly Operation[];
const DEFAULTS = { addDefaults: true };

/** Only what policies speak of, and what the API server computes from a priority class. */
const FIELDS =
  /^\/spec\/(schedulerName|priorityClassName|priority|preemptionPolicy|nodeSelector|tolerations|affinity)(\/|$)/;

describe('for any policies and pods', () => {
  it('the patch applies, each operation changes something, and the result needs no patch', () => {
    const seen = { patched: 0, refused: 0, untouched: 0 };
    fc.assert(
      fc.property(
        cases,
        fc.constantFrom(...MERGE_STRATEGIES),
        ({ documents, pod, isForOneNode }, strategy) => {
          const judging = admission(
            documents.map(({ name, spec }) => [name, spec]),
            strategy,
          );
          const username = isForOneNode ? 'system:serviceaccount:kube-system:daemon-set-controller' : 'lin';
          const request = podRequest(creating({}, { object: pod, userInfo: { username } }));
          const { allowed, patch, message } = judging.review(request, DEFAULTS);
          seen[!allowed ? 'refused' : patch.length > 0 ? 'patched' : 'untouched'] += 1;
          expect(message === null).toBe(allowed);
          if (!allowed) {
            expect(patch).toEqual([]);
            return;
          }
          let document = structuredClone(request.pod);
          for (const operation of patchOf(JSON.parse(JSON.stringify(patch)) as object[])) {
            expect(operation.path).toMatch(FIELDS);
            const { newDocument } = jsonPatch.applyPatch(structuredClone(document), [operation], true);
            expect(newDocument).not.toEqual(document);
            document = newDocument;
          }
          const again = { ...request, pod: document };
          expect(judging.review(again, DEFAULTS)).toMatchObject({ allowed: true, patch: [] });
          expect(judging.review(again, { addDefaults: false })).toMatchObject({ allowed: true, patch: [] });
        },
      ),
      { numRuns: 80 },
    );
    expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).toBeGreaterThan(4);
  });

  it('in audit mode every pod is allowed unchanged, with a warning if it would be rejected', () => {
    fc.assert(
      fc.property(cases, ({ documents, pod }) => {
        const specs = documents.map(({ name, spec }) => [name, spec] as const);
        const request = podRequest(creating({}, { object: pod }));
        const enforced = admission(specs).review(request, DEFAULTS);
        const tried = admission(specs, 'deep', ['*']).review(request, DEFAULTS);
        expect(tried).toMatchObject({
          allowed: true,
          message: null,
          patch: [],
          isAudited: !enforced.allowed,
        });
        expect(tried.warnings.length > 0).toBe(!enforced.allowed);
      }),
      { numRuns: 40 },
    );
  });
});

describe('a change of a pod', () => {
  /** Refuses whatever is judged. */
  const strict = admission([['strict', { required: { nodeSelectors: { never: ['there'] } } }]]);
  const judged = (before: object, after: object) =>
    !strict.review(podRequest(updating(before, after)), DEFAULTS).allowed;
  const ONE = {
    schedulerName: 'a',
    priorityClassName: 'a',
    nodeName: 'a',
    nodeSelector: { a: 'a' },
    tolerations: [{ key: 'a', operator: 'Exists' }],
    affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'a' }] } },
  };
  const OTHER = {
    schedulerName: 'b',
    priorityClassName: 'b',
    nodeName: 'b',
    nodeSelector: { a: 'b' },
    tolerations: [{ key: 'a', operator: 'Exists' }, { operator: 'Exists' }],
    affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'b' }] } },
  };

  it.each(Object.keys(ONE) as (keyof typeof ONE)[])('is judged if it changes %s, and only then', (field) => {
    expect(judged(ONE, { ...structuredClone(ONE), priority: 7, containers: [], schedulingGates: [] })).toBe(
      false,
    );
    expect(judged(ONE, { ...ONE, [field]: OTHER[field] })).toBe(true);
    expect(judged({}, { [field]: OTHER[field] })).toBe(true);
    expect(judged({ [field]: null }, {})).toBe(false);
    expect(judged({}, { [field]: null })).toBe(false);
  });

  it('without the current pod is judged as a whole, and not patched', () => {
    const defaults = admission([
      ['a', { allowed: { schedulerNames: ['b'] }, default: { schedulerName: 'b' } }],
    ]);
    const changed = (spec: object) =>
      defaults.review(podRequest(updating({}, spec, { oldObject: null })), DEFAULTS);
    expect(changed({ nodeName: 'n1' })).toMatchObject({
      allowed: false,
      message: expect.stringContaining('nodeName: '),
    });
    expect(changed({})).toMatchObject({ allowed: true, patch: [] });
  });
});

it('the message names the account, and is truncated if very long', () => {
  const labels = Array.from({ length: 60 }, (_, index) => [`label-${index}`, 'v'.repeat(150)]);
  const spec = { serviceAccountName: 'web', nodeSelector: Object.fromEntries(labels) };
  const { message } = admission([]).review(podRequest(creating(spec)), DEFAULTS);
  expect(message).toMatch(
    /^the pod does not fit the scheduling policies of system:serviceaccount:shop:web: nodeSelector /,
  );
  expect(message).toHaveLength(2000);
  expect(message?.at(-1)).toBe('…');
});
