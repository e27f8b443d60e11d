/** Policies when they are stored: what is refused, and what must not be. */
import { describe, expect, it } from 'vitest';
import { reviewPolicy } from '../../../../src/kubernetes/policies/documents/documents.ts';
import { schedulingPolicy } from '../../../peers/cluster-objects.ts';

const policy = (spec: unknown, more: object = {}) => ({ ...schedulingPolicy('a', spec), ...more });
const BROKEN = { allow: {} };
const MISTAKE =
  'the scheduling policy is invalid: spec.allow: unknown field; the nearest right name is "allowed"';
const ACCEPTED = { allowed: true, message: null, patch: [], warnings: [] };

describe('a policy that is stored', () => {
  it('may have what the API server and the service add to it', () => {
    const metadata = { name: 'a', uid: 'u', managedFields: [{ manager: 'kubectl' }], finalizers: ['x/y'] };
    const status = { observedGeneration: 3, conditions: [{ type: 'Accepted', status: 'True' }] };
    expect(reviewPolicy({ document: policy({}, { metadata, status }), current: undefined })).toEqual(
      ACCEPTED,
    );
  });

  it('is refused with its mistake, when it is new and when it becomes invalid', () => {
    for (const current of [undefined, policy({}), policy({ other: 1 })]) {
      expect(reviewPolicy({ document: policy(BROKEN), current })).toMatchObject({
        allowed: false,
        message: MISTAKE,
      });
    }
  });

  it('may change its metadata and status while it is invalid, with a warning', () => {
    const current = policy(BROKEN, { metadata: { name: 'a', finalizers: ['x/y'] } });
    for (const changes of [{ metadata: { name: 'a', finalizers: [] } }, { status: { conditions: [] } }, {}]) {
      expect(reviewPolicy({ document: policy(BROKEN, changes), current })).toEqual({
        ...ACCEPTED,
        warnings: [MISTAKE],
      });
    }
    const worse = { ...policy(BROKEN), allowed: {} };
    expect(reviewPolicy({ document: worse, current }).allowed).toBe(false);
  });

  it('is refused in at most 2000 characters', () => {
    const names = Array.from({ length: 3000 }, (_, index) => [`${'\u{1f600}'.repeat(99)}${index}`, 1]);
    const { message } = reviewPolicy({ document: policy(Object.fromEntries(names)), current: undefined });
    expect(message?.length).toBeLessThanOrEqual(2000);
    expect(message).not.toMatch(/\p{Cs}/u);
  });

  it('is refused whatever it is instead of an object', () => {
    for (const document of [null, undefined, 7, 'x', [], [policy({})]]) {
      expect(reviewPolicy({ document, current: undefined }).allowed).toBe(false);
    }
  });
});
