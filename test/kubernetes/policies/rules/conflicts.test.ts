import { describe, expect, it } from 'vitest';
import { EffectivePolicy } from '../../../../src/kubernetes/policies/effective-policy.ts';
import { pod, policy, reasonsOf, review } from '../../../support/scheduling-policies.ts';

const judged = (spec: unknown, ...specs: unknown[]) =>
  reasonsOf(
    review(
      specs.map((one, index) => policy('abcd'.charAt(index), one)),
      pod(spec),
      'intersection',
    ),
  );

const schedulers = (names: string) => `required: {schedulerNames: [${names}]}`;
const disks = (values: string) => `required: {nodeSelectors: {disk: [${values}]}}`;

describe('an intersection of policies with conflicting requirements', () => {
  it('denies everything, and names both', () => {
    const reason = [
      'schedulerName: conflicting requirements: a requires green and b requires blue or red (scheduling policies a and b)',
    ];
    for (const spec of ['{schedulerName: green}', '{schedulerName: blue}', '{}']) {
      expect(judged(spec, schedulers('green'), schedulers('blue, red'))).toEqual(reason);
    }
  });

  it('reports each field: schedulers, priority classes and labels', () => {
    expect(
      judged(
        {},
        '{required: {schedulerNames: [x], priorityClassNames: [gold], nodeSelectors: {disk: [ssd], zone: [n]}}}',
        '{required: {schedulerNames: [x], priorityClassNames: [iron], nodeSelectors: {disk: [hdd], zone: [n, s]}}}',
      ),
    ).toEqual([
      'priorityClassName: conflicting requirements: a requires gold and b requires iron (scheduling policies a and b)',
      'nodeSelector disk: conflicting requirements: a requires ssd and b requires hdd (scheduling policies a and b)',
    ]);
  });

  it('names the two policies that conflict among others', () => {
    expect(judged({}, schedulers('x, y'), schedulers('x'), schedulers('y'), schedulers('x, y'))).toEqual([
      'schedulerName: conflicting requirements: b requires x and c requires y (scheduling policies b and c)',
    ]);
  });

  it('names all policies if any two of them are compatible', () => {
    expect(judged({}, schedulers('x, y'), schedulers('y, z'), schedulers('z, x'))).toEqual([
      'schedulerName: conflicting requirements: a requires x or y, b requires y or z and c requires z or x (scheduling policies a, b and c)',
    ]);
  });

  it('rejects a pod without defaults, too', () => {
    const policies = [policy('a', schedulers('green')), policy('b', schedulers('blue'))];
    const effective = new EffectivePolicy(policies, 'intersection');
    expect(effective.review(pod('{schedulerName: green}'), { addDefaults: false }).allowed).toBe(false);
  });

  it('is no conflict with other strategies, where the first policy counts', () => {
    const policies = [policy('a', schedulers('green')), policy('b', schedulers('blue'))];
    for (const strategy of ['deep', 'first', 'simple'] as const) {
      expect(review(policies, pod('{schedulerName: green}'), strategy).allowed).toBe(true);
    }
  });
});

describe('an intersection of policies with compatible requirements', () => {
  it('allows what each policy allows', () => {
    expect(judged('{schedulerName: y}', schedulers('x, y'), schedulers('y, z'))).toEqual([]);
    expect(judged('{schedulerName: x}', schedulers('x, y'), schedulers('y, z')).at(0)).toBe(
      'schedulerName: expected y or z, got "x" (scheduling policy b)',
    );
  });

  it('accepts any value for a label without values', () => {
    const spec = 'allowed: {nodeSelectors: {}}';
    expect(judged('{nodeSelector: {disk: ssd}}', disks(''), disks('ssd'), spec)).toEqual([]);
    expect(judged('{nodeSelector: {disk: ssd}}', disks('ssd'), disks(''), spec)).toEqual([]);
  });

  it('is rejected if one requires a label that another does not allow', () => {
    expect(
      judged('{nodeSelector: {disk: ssd}}', disks('ssd'), 'allowed: {nodeSelectors: {zone: []}}').at(0),
    ).toBe('nodeSelector disk: expected nothing, got "ssd"; allowed labels: zone (scheduling policy b)');
  });
});
