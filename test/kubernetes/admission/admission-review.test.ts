/** The wire format of admission webhooks, by itself; as it comes over HTTP: test/server/kubernetes*.test.ts. */
import { describe, expect, it } from 'vitest';
import {
  admissionAnswer,
  admissionAnswerSchema,
  parseAdmissionReview,
} from '../../../src/kubernetes/admission/admission-review.ts';
import { admissionReview, creating, operationsOf, updating } from '../../support/kubernetes-service.ts';
import { deepFreeze } from '../../support/requests.ts';

describe('a parsed review', () => {
  it('has the request with the original pod', () => {
    const review = deepFreeze(admissionReview('create-by-replica-set'));
    const read = parseAdmissionReview(review);
    expect(read).toEqual({
      kind: 'pod',
      name: expect.stringMatching(/^web-/),
      groups: expect.arrayContaining(['system:authenticated']),
      uid: '9f1c0a52-3f0e-4a7e-8d5b-6a4f2f9d1c11',
      namespace: 'shop',
      pod: review.request.object,
      current: undefined,
      isUpdate: false,
      username: 'system:serviceaccount:kube-system:replicaset-controller',
      dryRun: false,
    });
    expect(read.pod).toBe(review.request.object);
  });

  it('has no current pod in a creation, or if an update lacks it', () => {
    for (const oldObject of [null, undefined]) {
      expect(parseAdmissionReview(updating({}, {}, { oldObject }))).toMatchObject({
        isUpdate: true,
        current: undefined,
      });
    }
    const stray = creating({}, { oldObject: { spec: 7 } });
    expect(parseAdmissionReview(stray)).toMatchObject({ isUpdate: false, current: undefined });
  });

  it('of other objects has only the uid', () => {
    const services = { group: '', version: 'v1', resource: 'services' };
    for (const changes of [{ resource: services }, { subResource: 'status' }, { operation: 'DELETE' }]) {
      const review = creating({}, { ...changes, object: 's3cret', namespace: undefined });
      expect(parseAdmissionReview(review)).toEqual({ kind: 'other', uid: 'u-1', pod: undefined });
    }
  });
});

it('the answer has the patch in base64, the reason as status, and the warnings', () => {
  const patch = [{ op: 'add', path: '/spec/nodeSelector', value: { größe: '🚀', other: '??????' } }];
  const answer = admissionAnswer('u-1', { allowed: false, message: 'no', patch, warnings: ['careful'] });
  const { response } = answer;
  expect(response).toMatchObject({
    patchType: 'JSONPatch',
    patch: expect.stringMatching(/^[A-Za-z0-9+/]*\/[A-Za-z0-9+/]*=*$/),
  });
  expect(operationsOf(response)).toEqual(patch);
  expect(response).toMatchObject({
    allowed: false,
    status: { code: 403, reason: 'Forbidden', message: 'no' },
    warnings: ['careful'],
  });
  expect(admissionAnswerSchema.parse(answer)).toEqual(answer);
});
