import { describe, expect, it } from 'vitest';
import { reviewRecord } from '../../../src/decisions/review-record.ts';
import { auditProblems } from '../../../src/skypilot/policies/policy-loader.ts';
import {
  ALLOWED_AS_IT_CAME,
  chainOn,
  FAILED,
  inside,
  policyFiles,
  received,
  skypilotProblems,
} from '../../support/skypilot.ts';

const LABEL = "task.labels = { ...task.labels, seen: String(task.labels?.seen ?? '') + 'x' };";

async function chainWith(
  policies: Readonly<Record<string, string>>,
  audit_policies: readonly string[],
  more: Readonly<Record<string, unknown>> = {},
) {
  return chainOn({ admin_policies: policyFiles(policies).specifiers, audit_policies, ...more });
}

describe('an audited policy', () => {
  it('changes nothing, and the next policy gets the request without its changes', async () => {
    const { review, logger } = await chainWith({ TriedPolicy: LABEL, NextPolicy: LABEL }, ['TriedPolicy']);
    const answer = await review(received());
    expect(answer).toMatchObject({
      allowed: true,
      changed: true,
      warnings: ['TriedPolicy (tried, not enforced) would have changed the request.'],
      outcomes: [
        { policy: 'TriedPolicy', audit: true, changed: true, allowed: true },
        { policy: 'NextPolicy', audit: false, changed: true, allowed: true },
      ],
    });
    expect(answer.task.labels).toEqual({ seen: 'x' });
    expect(inside(answer.answer ?? '').task).toContain('seen: x\n');
    expect(logger.lines).toEqual([
      {
        level: 'warn',
        fields: { request_id: 'req-1', policy: 'TriedPolicy', user_id: '0a1b2c3d' },
        message: 'TriedPolicy (tried, not enforced) would have changed the request.',
      },
    ]);
  });

  it.each([
    [
      'would reject',
      "throw new PolicyRejected('not on Sundays');",
      'would have rejected: not on Sundays',
      false,
    ],
    ['fails', "throw new Error('the cause');", 'failed.', true],
  ] as const)('that %s leaves the request as it came', async (_, text, warning, failed) => {
    const { review } = await chainWith({ TriedPolicy: `${LABEL} ${text}` }, ['TriedPolicy']);
    const request = received();
    const answer = await review(request);
    expect(answer).toMatchObject(ALLOWED_AS_IT_CAME);
    expect(answer.warnings).toEqual([`TriedPolicy (tried, not enforced) ${warning}`]);
    expect(answer.outcomes).toMatchObject([{ audit: true, allowed: false, failed }]);
    expect(inside(answer.answer ?? '')).toEqual({
      task: request.task.toString(),
      skypilot_config: request.skypilotConfig.toString(),
    });
    const record = reviewRecord(answer, { requestId: 'r', generation: 1, milliseconds: 1, request });
    expect(record).toMatchObject({
      allowed: true,
      outcome: 'audit',
      filter: 'TriedPolicy',
      failed: false,
      warnings: answer.warnings,
      filters: [{ filter: 'TriedPolicy', audit: true, outcome: failed ? 'failed' : 'rejected' }],
    });
  });

  it('that hangs takes no time from the others, and is not waited for to the end', async () => {
    const { review } = await chainWith(
      { HangingPolicy: 'return new Promise(() => {});', NextPolicy: LABEL },
      ['HangingPolicy'],
    );
    const answer = await review(received(), 0.4);
    expect(answer).toMatchObject({
      allowed: true,
      changed: true,
      warnings: ['HangingPolicy (tried, not enforced) failed.'],
    });
  });

  it('is asked after a rejection too, and the rejection stands', async () => {
    const { review } = await chainWith(
      {
        RejectingPolicy: "throw new PolicyRejected('no');",
        TriedPolicy: "throw new PolicyRejected('never');",
        LastPolicy: LABEL,
      },
      ['TriedPolicy'],
    );
    expect(await review(received())).toMatchObject({
      allowed: false,
      message: 'no',
      policy: 'RejectingPolicy',
      warnings: ['TriedPolicy (tried, not enforced) would have rejected: never'],
      outcomes: [{ policy: 'RejectingPolicy' }, { policy: 'TriedPolicy', audit: true }],
    });
  });

  it('shows no secret of the request in its warning', async () => {
    const { review, logger } = await chainWith(
      { TriedPolicy: "throw new PolicyRejected('not with ' + task.secrets.TOKEN);" },
      ['TriedPolicy'],
    );
    const answer = await review(received({ task: 'secrets: {TOKEN: open-sesame}\n' }));
    expect(JSON.stringify([answer.warnings, answer.outcomes, logger.lines])).not.toContain('sesame');
  });

  it('does not excuse one that is enforced and fails', async () => {
    const { review } = await chainWith(
      { TriedPolicy: "throw new Error('x');", BrokenPolicy: "throw new Error('y');" },
      ['TriedPolicy'],
    );
    expect(await review(received())).toMatchObject({ allowed: false, failed: true, message: FAILED });
  });
});

describe('the names in audit_policies', () => {
  const problemsOf = (...audit_policies: string[]) =>
    auditProblems({ admin_policies: ['AddLabelsPolicy', './x.js#MyPolicy'], audit_policies }).map(
      ({ severity, message }) => `${severity}: ${message}`,
    );

  it('are those of classes in admin_policies, once', () => {
    expect(problemsOf('MyPolicy')).toEqual([
      'warning: MyPolicy is tried, not enforced: it rejects and changes no request',
    ]);
    expect(problemsOf('AddLabelPolicy', './x.js#MyPolicy', '__proto__')).toEqual([
      'error: there is no policy "AddLabelPolicy" in admin_policies; the nearest right name is "AddLabelsPolicy"',
      'error: expected the name of a class, got "./x.js#MyPolicy": write MyPolicy',
      expect.stringMatching(/^error: there is no policy "__proto__" in admin_policies/),
    ]);
    expect(problemsOf('MyPolicy', 'MyPolicy')).toContain('error: "MyPolicy" is named twice');
  });

  it('that are all policies enforce nothing, and a warning says so', () => {
    expect(problemsOf('MyPolicy', 'AddLabelsPolicy')).toContain(
      'warning: no policy is enforced: every request is allowed as it is',
    );
  });

  it('are checked with the configuration, and without any policy', async () => {
    const audit_policies = ['RejectAllPolicy'];
    const warning = { severity: 'warning', option: 'audit_policies' };
    expect(await skypilotProblems({ admin_policies: audit_policies, audit_policies })).toMatchObject([
      warning,
      warning,
    ]);
    expect(await skypilotProblems({ audit_policies })).toContainEqual(
      expect.objectContaining({ severity: 'error', option: 'audit_policies' }),
    );
  });
});
