import { describe, expect, it } from 'vitest';
import {
  pod,
  proposalPolicies,
  reasonsFor,
  reasonsOf,
  review,
} from '../../../support/scheduling-policies.ts';

const ARCH = 'beta.kubernetes.io/arch';
const REGION = 'failure-domain.beta.kubernetes.io/region';
const ZONE = 'failure-domain.beta.kubernetes.io/zone';

const judged = (nodeSelector: unknown, ...specs: unknown[]) => reasonsFor({ nodeSelector }, ...specs);

describe('the complete policy of the proposal', () => {
  const complete = proposalPolicies(15);

  it.each([undefined, null, {}])('gives the default to a pod whose node selector is %j', (nodeSelector) => {
    const { allowed, pod: reviewed } = review(complete, pod({ nodeSelector }));
    expect(allowed).toBe(true);
    expect(reviewed.spec.nodeSelector).toEqual({ [ARCH]: 'amd64' });
  });

  it.each([
    { [ARCH]: 'amd64' },
    { [ARCH]: 'arm64' },
    { [ARCH]: 'arm64', disk: 'ssd' },
    { [ARCH]: 'arm64', disk: 'hdd', [REGION]: 'anywhere' },
    { [ARCH]: 'amd64', [REGION]: '' },
  ])('leaves %j as it is', (nodeSelector) => {
    const asked = pod({ nodeSelector });
    expect(review(complete, asked)).toEqual({ allowed: true, pod: asked, reasons: [] });
  });

  it('adds the default beside what is asked for', () => {
    expect(review(complete, pod('{nodeSelector: {disk: ssd}}')).pod.spec.nodeSelector).toEqual({
      [ARCH]: 'amd64',
      disk: 'ssd',
    });
  });

  it.each([
    [
      { [ARCH]: 'i386' },
      `nodeSelector ${ARCH}: expected amd64 or arm64, got "i386" (scheduling policy example)`,
    ],
    [{ [ARCH]: '' }, `nodeSelector ${ARCH}: expected amd64 or arm64, got "" (scheduling policy example)`],
    [{ disk: 'sata' }, 'nodeSelector disk: expected ssd or hdd, got "sata" (scheduling policy example)'],
    [{ disk: 'SSD' }, 'nodeSelector disk: expected ssd or hdd, got "SSD" (scheduling policy example)'],
    [
      { rack: '7' },
      `nodeSelector rack: expected nothing, got "7"; allowed labels: ${ARCH}, disk and ${REGION} (scheduling policy example)`,
    ],
  ])('refuses %j', (nodeSelector, reason) => {
    expect(reasonsOf(review(complete, pod({ nodeSelector })))).toEqual([reason]);
  });

  it('names each label that is wrong', () => {
    const {
      allowed,
      pod: reviewed,
      reasons,
    } = review(complete, pod({ nodeSelector: { [ARCH]: 'x', disk: 'y' } }));
    expect(allowed).toBe(false);
    expect(reviewed.spec.nodeSelector).toEqual({ [ARCH]: 'x', disk: 'y' });
    expect(reasons.map(({ field }) => field)).toEqual([`nodeSelector ${ARCH}`, 'nodeSelector disk']);
  });
});

describe('node selectors that are allowed', () => {
  it('are optional', () => {
    expect(review(proposalPolicies(16), pod()).allowed).toBe(true);
  });

  it('must have one of the values', () => {
    for (const zone of ['eu-west-1a', 'eu-west-1b', 'eu-west-1c']) {
      expect(review(proposalPolicies(16), pod({ nodeSelector: { [ZONE]: zone } })).allowed).toBe(true);
    }
    expect(reasonsOf(review(proposalPolicies(16), pod({ nodeSelector: { [ZONE]: 'eu-west-1d' } })))).toEqual([
      `nodeSelector ${ZONE}: expected eu-west-1a, eu-west-1b or eu-west-1c, got "eu-west-1d" (scheduling policy example)`,
    ]);
  });

  it('are rejected if no policy mentions them', () => {
    const reason =
      'nodeSelector disk: expected nothing, got "ssd" (no scheduling policy of the account mentions it)';
    expect(judged({ disk: 'ssd' })).toEqual([reason]);
    expect(judged({ disk: 'ssd' }, 'allowed: {schedulerNames: []}')).toEqual([reason]);
  });

  it('may be any if a policy has an empty mapping', () => {
    expect(judged({ disk: 'ssd', any: '' }, 'allowed: {nodeSelectors: {}}')).toEqual([]);
    const some = 'allowed: {nodeSelectors: {disk: [hdd]}}';
    expect(judged({ disk: 'ssd' }, some, 'allowed: {nodeSelectors: {}}')).toEqual([]);
    expect(judged({ disk: 'ssd' }, 'allowed: {nodeSelectors: {}}', some)).toEqual([]);
  });

  it('add up over policies, value by value', () => {
    const [ssd, hdd, any] = ['[ssd]', '[hdd]', '[]'].map(
      (list) => `allowed: {nodeSelectors: {disk: ${list}}}`,
    );
    expect(judged({ disk: 'hdd' }, ssd, hdd)).toEqual([]);
    expect(judged({ disk: 'sata' }, ssd, hdd)).toEqual([
      'nodeSelector disk: expected ssd or hdd, got "sata" (scheduling policies a and b)',
    ]);
    expect(judged({ disk: 'sata' }, ssd, any, hdd)).toEqual([]);
    expect(judged({ disk: 'sata' }, any, ssd)).toEqual([]);
  });

  it('include the default', () => {
    const spec = '{allowed: {nodeSelectors: {disk: [hdd]}}, default: {nodeSelector: {disk: ssd}}}';
    for (const disk of ['hdd', 'ssd']) {
      expect(judged({ disk }, spec)).toEqual([]);
    }
    expect(judged({ disk: 'sata' }, spec)).toEqual([
      'nodeSelector disk: expected hdd or ssd, got "sata" (scheduling policy a)',
    ]);
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'do not hold what every object has: %s',
    (label) => {
      const nodeSelector = JSON.parse(`{"${label}": "x"}`) as unknown;
      expect(judged(nodeSelector, 'allowed: {nodeSelectors: {disk: [ssd]}}')).toEqual([
        `nodeSelector ${label}: expected nothing, got "x"; allowed labels: disk (scheduling policy a)`,
      ]);
      expect(judged(nodeSelector, 'allowed: {nodeSelectors: {}}')).toEqual([]);
    },
  );
});

describe('node selectors that are required', () => {
  it('are each reported by name if missing', () => {
    expect(judged(undefined, 'required: {nodeSelectors: {disk: [ssd, hdd], zone: []}}')).toEqual([
      'nodeSelector disk: expected ssd or hdd, got nothing (scheduling policy a)',
      'nodeSelector zone: expected a value, got nothing (scheduling policy a)',
    ]);
  });

  it('may have any value if none is listed, even an empty one', () => {
    for (const zone of ['north', '']) {
      expect(judged({ zone }, 'required: {nodeSelectors: {zone: []}}')).toEqual([]);
    }
  });

  it('bind, whatever else is allowed', () => {
    const reason = ['nodeSelector disk: expected ssd, got "hdd" (scheduling policy a)'];
    expect(
      judged({ disk: 'hdd' }, '{required: {nodeSelectors: {disk: [ssd]}}, allowed: {nodeSelectors: {}}}'),
    ).toEqual(reason);
    expect(
      judged(
        { disk: 'hdd' },
        'required: {nodeSelectors: {disk: [ssd]}}',
        'allowed: {nodeSelectors: {disk: [hdd]}}',
      ),
    ).toEqual(reason);
  });

  it('allow no other label, and the message names the policy that requires', () => {
    expect(judged({ disk: 'ssd', rack: '7' }, 'required: {nodeSelectors: {disk: [ssd]}}')).toEqual([
      'nodeSelector rack: expected nothing, got "7"; allowed labels: disk (scheduling policy a)',
    ]);
  });

  it('come from the first policy that has them, merged deep', () => {
    const policies = proposalPolicies(22);
    expect(
      reasonsOf(review(policies, pod({ nodeSelector: { [ARCH]: 'i386', 'beta.kubernetes.io/os': 'BeOS' } }))),
    ).toEqual([
      `nodeSelector ${ARCH}: expected amd64 or arm64, got "i386" (scheduling policy schedpol-a)`,
      'nodeSelector beta.kubernetes.io/os: expected Linux or Windows, got "BeOS" (scheduling policy schedpol-b)',
    ]);
  });

  it('reject the conflicting default of another policy', () => {
    expect(
      judged({}, 'required: {nodeSelectors: {disk: [ssd]}}', 'default: {nodeSelector: {disk: hdd}}'),
    ).toEqual(['nodeSelector disk: expected ssd, got "hdd" (scheduling policy a)']);
  });
});
