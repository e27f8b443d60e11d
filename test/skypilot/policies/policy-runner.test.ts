import { describe, expect, it } from 'vitest';
import { policyOf } from '../../../src/skypilot/policies/policy-loader.ts';
import { isIsolated } from '../../../src/skypilot/policies/policy-runner.ts';
import { policyFiles } from '../../support/skypilot.ts';

describe('isolation', () => {
  it.each([
    ['of a file', './own-policy.js#OwnPolicy', { foreign: true, worker: true, none: false }],
    ['that is included', 'AddLabelsPolicy', { foreign: false, worker: true, none: false }],
    [
      'that is included and parses large files',
      'DynamicKubernetesContextsUpdatePolicy',
      { foreign: true, worker: true, none: false },
    ],
    [
      'that is included and records launches',
      'UsageBudgetPolicy',
      { foreign: false, worker: false, none: false },
    ],
  ])('gives a policy %s a thread as documented', async (_, specifier, expected) => {
    const own = policyFiles({ OwnPolicy: '' }).specifiers[0] ?? '';
    const policyClass = await policyOf(specifier.startsWith('.') ? own : specifier);
    const named = { specifier, policyClass, options: [] };
    const isolated = (['foreign', 'worker', 'none'] as const).map((isolation) => [
      isolation,
      isIsolated(named, isolation),
    ]);
    expect(Object.fromEntries(isolated)).toEqual(expected);
  });
});
