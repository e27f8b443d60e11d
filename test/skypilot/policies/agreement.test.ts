import { describe, expect, it } from 'vitest';
import { MAX_PASSES } from '../../../src/skypilot/policies/policy-evaluation.ts';
import { chainOf, chainOn, FAILED, inside, policyFiles, probe, received } from '../../support/skypilot.ts';
import { policyFile } from './temporary-policy.ts';

describe('a policy', () => {
  it('is asked again when a later one changes the request, and rejects what that made of it', async () => {
    const { review } = await chainOf({
      EastPolicy: "if (task.place !== 'east') throw new PolicyRejected('only east');",
      MovingPolicy: "task.place = 'west';",
    });
    expect(await review(received({ task: 'place: east\n' }))).toMatchObject({
      allowed: false,
      failed: false,
      policy: 'EastPolicy',
      message: 'only east',
      answer: null,
      outcomes: [
        { policy: 'EastPolicy', allowed: false },
        { policy: 'MovingPolicy', allowed: true, changed: true },
      ],
    });
  });

  it('is asked again until nothing changes, and its changes are told together', async () => {
    const { review } = await chainOf({
      CapPolicy: 'task.cost = Math.min(task.cost ?? 5, 5); if (task.nodes > 2) task.big = true;',
      NodesPolicy: 'task.nodes = 4;',
      PricePolicy: 'if (task.big) task.cost = Math.min(task.cost, 3);',
    });
    const answer = await review(received({ task: 'cost: 9\n' }));
    expect(answer).toMatchObject({ allowed: true, changed: true, task: { cost: 3, nodes: 4, big: true } });
    expect(answer.outcomes.map(({ policy, changes }) => [policy, changes?.list.length])).toEqual([
      ['CapPolicy', 2],
      ['NodesPolicy', 1],
      ['PricePolicy', 1],
    ]);
    const again = await review(received(inside(answer.answer ?? '')));
    expect(again).toMatchObject({ allowed: true, changed: false });
  });

  it('is asked once if no later one changes the request', async () => {
    const asked = probe<string[]>([]);
    const { review } = await chainOf({
      FirstPolicy: "probe.push('first'); task.a = 1;",
      SecondPolicy: "probe.push('second'); task.b = 1;",
      LastPolicy: "probe.push('last');",
    });
    await review(received());
    expect(asked).toEqual(['first', 'second', 'last', 'first']);
    asked.length = 0;
    await review(received({ task: 'a: 1\nb: 1\n' }));
    expect(asked).toEqual(['first', 'second', 'last']);
  });

  it('that is in audit_policies is asked once', async () => {
    const asked = probe<string[]>([]);
    const { specifiers } = policyFiles({ TriedPolicy: "probe.push('tried');", LastPolicy: 'task.b = 1;' });
    const { review } = await chainOn({ admin_policies: specifiers, audit_policies: ['TriedPolicy'] });
    expect(await review(received())).toMatchObject({ allowed: true, changed: true });
    expect(asked).toEqual(['tried']);
  });
});

describe('policies that undo what others set', () => {
  it.each([
    ['a label', { DoingPolicy: 'task.label = 1;', UndoingPolicy: 'delete task.label;' }],
    ['a number', { OnePolicy: 'task.n = 1;', TwoPolicy: 'task.n = 2;' }],
    ['their own', { OtherPolicy: 'task.m = (task.m ?? 0) + 1;', CountPolicy: 'task.n = (task.n ?? 0) + 1;' }],
  ])('fail closed, and the log names them: %s', async (_, policies) => {
    const { review, logger } = await chainOf(policies);
    const names = Object.keys(policies);
    expect(await review(received())).toMatchObject({
      allowed: false,
      failed: true,
      message: FAILED,
      answer: null,
      changed: false,
      outcomes: names.map((policy) => ({ policy, failed: true, allowed: false })),
    });
    expect(logger.lines).toMatchObject([
      {
        level: 'error',
        message: 'policy failed',
        fields: {
          policy: names[0],
          error: `the policies do not agree: asked ${MAX_PASSES} times, ${names.join(' and ')} still changed what another policy, or the policy itself, had set`,
        },
      },
    ]);
  });

  it('agree if one of them judges the request of the user alone', async () => {
    const admin_policies = [
      policyFile('ResetPolicy', 'delete task.label;', { extra: 'static askedOnce = true;' }),
      policyFile('LabelPolicy', 'task.label = 1;'),
    ];
    const { review } = await chainOn({ admin_policies });
    expect(await review(received({ task: 'label: 7\n' }))).toMatchObject({
      allowed: true,
      task: { label: 1 },
    });
  });
});
