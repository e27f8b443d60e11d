import { describe, expect, it } from 'vitest';
import type { LivePolicy } from '../../../../src/kubernetes/cluster/live/contract.ts';
import {
  conditionsOf,
  isWritten,
  shownText,
  statusPatch,
} from '../../../../src/kubernetes/cluster/status/conditions.ts';

const NOW = new Date('2026-11-22T10:00:00.999Z');

function live(changes: Partial<LivePolicy> = {}): LivePolicy {
  return {
    name: 'a',
    uid: 'u',
    generation: 4,
    resourceVersion: '9',
    status: undefined,
    mistake: undefined,
    enforcedGeneration: 4,
    leftOut: [],
    ...changes,
  };
}
const said = (policy: LivePolicy, isAudited = false, missing: string[] = []) =>
  conditionsOf(policy, isAudited, missing).map(({ type, status, reason }) => `${type}=${status} ${reason}`);

describe('the conditions', () => {
  const mistake = 'spec.allowed: expected an object';
  it.for<[string, LivePolicy, boolean, string]>([
    ['valid', live(), false, 'Accepted=True Valid, Enforced=True Enforced, Exportable=True Complete'],
    [
      'valid and tried',
      live(),
      true,
      'Accepted=True Valid, Enforced=False Audited, Exportable=False LeftOut',
    ],
    [
      'invalid with a last good form',
      live({ mistake, enforcedGeneration: 3 }),
      false,
      'Accepted=False Invalid, Enforced=True LastGoodForm, Exportable=False Invalid',
    ],
    [
      'invalid with a last good form that is tried',
      live({ mistake, enforcedGeneration: 3 }),
      true,
      'Accepted=False Invalid, Enforced=False Audited, Exportable=False Invalid',
    ],
    [
      'never valid',
      live({ mistake, enforcedGeneration: undefined }),
      false,
      'Accepted=False Invalid, Enforced=False Invalid, Exportable=False Invalid',
    ],
  ])('of a policy that is %s', ([, policy, isAudited, expected]) => {
    expect(said(policy, isAudited).join(', ')).toBe(expected);
  });

  it('say that nothing is in force, nor tried, if API servers do not ask', () => {
    const notAsked = ['one is missing', 'two: failurePolicy is "Ignore"'];
    expect(said(live(), true, notAsked)).toContain('Enforced=False NotAsked');
    expect(conditionsOf(live(), false, notAsked)[1]?.message).toContain(`: ${notAsked.join('; ')}`);
  });

  it('name the mistake and the generation that is in force', () => {
    const [accepted, enforced] = conditionsOf(live({ mistake, enforcedGeneration: 3 }), false, []);
    expect(accepted).toMatchObject({ message: mistake, observedGeneration: 4 });
    expect(enforced?.message).toContain('Generation 3');
  });

  it('name what an export leaves out', () => {
    const leftOut = ['policy a: default.schedulerName = "x" is not added', 'and more'];
    const [, , exportable] = conditionsOf(live({ leftOut }), false, []);
    expect(exportable).toMatchObject({ type: 'Exportable', status: 'False', message: leftOut.join('; ') });
    expect(conditionsOf(live({ leftOut }), true, [])[2]?.message).toContain('in audit mode');
  });

  it('have messages of at most 1024 bytes, which hide nothing', () => {
    for (const mistake of ['x'.repeat(5000), '\u202e'.repeat(5000), '€'.repeat(1000), '😀'.repeat(999)]) {
      const [accepted] = conditionsOf(live({ mistake }), false, []);
      const message = accepted?.message ?? '';
      expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1024);
      expect(message).toMatch(/…$/);
      expect(message).not.toMatch(/[\u202e\ufffd\ud800-\udbff](?![\udc00-\udfff])/);
    }
    expect(shownText('x'.repeat(1024))).toBe('x'.repeat(1024));
  });
});

describe('a written status', () => {
  const conditions = conditionsOf(live(), false, []);
  const written = statusPatch(live(), conditions, NOW).body.status;
  const [accepted, enforced, exportable] = written.conditions;

  it('is recognized, beside conditions of others', () => {
    const foreign = { type: 'Foreign', status: 'True' };
    expect(isWritten(live({ status: written }), conditions)).toBe(true);
    const beside = { ...written, conditions: [foreign, exportable, enforced, accepted, 7, null], more: 1 };
    expect(isWritten(live({ status: beside }), conditions)).toBe(true);
  });

  it.for<[string, unknown]>([
    ['is missing', undefined],
    ['has conditions of no form', { ...written, conditions: { Accepted: true } }],
    ['has one condition', { ...written, conditions: [accepted] }],
    ['is of another generation', { ...written, observedGeneration: 3 }],
    [
      'has a condition of another generation',
      { ...written, conditions: [{ ...accepted, observedGeneration: 3 }, enforced, exportable] },
    ],
    [
      'has another reason',
      { ...written, conditions: [accepted, { ...enforced, reason: 'Fine' }, exportable] },
    ],
    [
      'has another status',
      { ...written, conditions: [{ ...accepted, status: 'False' }, enforced, exportable] },
    ],
    [
      'has no time',
      { ...written, conditions: [{ ...accepted, lastTransitionTime: 'today' }, enforced, exportable] },
    ],
  ])('that %s is written anew', ([, status]) => {
    expect(isWritten(live({ status }), conditions)).toBe(false);
  });

  it('keeps the time of a transition only while the status stays, and only if it is a time', () => {
    const times = (changes: object) =>
      statusPatch(live({ status: { conditions: [{ ...accepted, ...changes }] } }), conditions, NOW).body
        .status.conditions[0]?.lastTransitionTime;
    expect(times({ lastTransitionTime: '2020-01-01T00:00:00Z', reason: 'Old' })).toBe('2020-01-01T00:00:00Z');
    expect(times({ lastTransitionTime: '2020-01-01T00:00:00Z', status: 'False' })).toBe(
      '2026-11-22T10:00:00Z',
    );
    expect(times({ lastTransitionTime: 'once' })).toBe('2026-11-22T10:00:00Z');
  });
});
