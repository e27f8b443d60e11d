import { describe, expect, it } from 'vitest';
import { chainOn, FAILED, policyFiles, received } from '../../support/skypilot.ts';
import { runSkypilot } from '../../support/skypilot-service.ts';

const WRONG_TASK = received({ task: 'resources: {acelerators: A100:8}\n' });
const WRONG_CONFIG = received({ skypilot_config: 'kubernetes: {provison_timeout: 5}\n' });
const TASK_PROBLEM =
  'the request is not valid for SkyPilot 0.13: task: resources.acelerators: unknown key; the nearest right key is "accelerators"';
const CONFIG_PROBLEM =
  'the request is not valid for SkyPilot 0.13: configuration: kubernetes.provison_timeout: unknown key; the nearest right key is "provision_timeout"';

function chain(config_validation: string, policies: Readonly<Record<string, string>> = { FirstPolicy: '' }) {
  return chainOn({ admin_policies: policyFiles(policies).specifiers, config_validation });
}

describe('config_validation = error', () => {
  it.for([
    [WRONG_TASK, TASK_PROBLEM],
    [WRONG_CONFIG, CONFIG_PROBLEM],
  ] as const)('rejects a request that is not valid, before the policies', async ([request, problem]) => {
    const { review } = await chain('error', { BrokenPolicy: "throw new Error('called');" });
    expect(await review(request)).toMatchObject({
      allowed: false,
      failed: false,
      policy: 'config_validation',
      message: problem.replace('the', 'The'),
      answer: null,
      outcomes: [],
      mismatches: ['config_validation'],
    });
  });

  it('fails a policy whose answer is not valid, and says why only in the log', async () => {
    const { review, logger } = await chain('error', {
      FirstPolicy: '',
      WrongPolicy: "config.assign(['kubernetes', 'provison_timeout'], 5);",
      LastPolicy: "throw new Error('called');",
    });
    expect(await review(received())).toMatchObject({
      allowed: false,
      failed: true,
      policy: 'WrongPolicy',
      message: FAILED,
      answer: null,
      outcomes: [{ policy: 'FirstPolicy' }, { policy: 'WrongPolicy', failed: true, changed: false }],
      mismatches: ['WrongPolicy'],
    });
    expect(logger.lines).toMatchObject([
      {
        message: 'policy failed',
        fields: {
          policy: 'WrongPolicy',
          error:
            'the answer of WrongPolicy is not valid for SkyPilot 0.13: configuration: kubernetes.provison_timeout: unknown key; the nearest right key is "provision_timeout"',
        },
      },
    ]);
  });

  it('says a limited number of problems, without secrets', async () => {
    const keys = Array.from({ length: 30 }, (_, index) => `unrelated_${index}: 1`).join(', ');
    const { review } = await chain('error');
    const { message } = await review(
      received({ task: `secrets: {HF_TOKEN: the-token}\nnum_nodes: the-token\nresources: {${keys}}\n` }),
    );
    expect(message).toContain('; and 26 more');
    expect(message).not.toContain('the-token');
  });
});

describe('config_validation = warning, the default', () => {
  it('allows the request, warns, and logs each problem once', async () => {
    const { review, logger } = await chain('warning');
    for (const request of [WRONG_TASK, WRONG_TASK, WRONG_CONFIG]) {
      const { allowed, warnings, mismatches } = await review(request);
      expect(allowed).toBe(true);
      expect(warnings).toEqual([request === WRONG_TASK ? TASK_PROBLEM : CONFIG_PROBLEM]);
      expect(mismatches).toEqual(['config_validation']);
    }
    expect(logger.lines.map(({ fields }) => fields.problem)).toEqual([TASK_PROBLEM, CONFIG_PROBLEM]);
  });

  it('names the policy that made a task invalid, not the ones after it', async () => {
    const { review } = await chain('warning', {
      WrongPolicy: "task.resources = { acelerators: 'A100' };",
      LastPolicy: "task.name = 'changed';",
    });
    const { allowed, changed, warnings, mismatches } = await review(received());
    expect({ allowed, changed, mismatches }).toEqual({
      allowed: true,
      changed: true,
      mismatches: ['WrongPolicy'],
    });
    expect(warnings).toEqual([expect.stringContaining('the answer of WrongPolicy is not valid')]);
  });
});

it('config_validation = ignore checks nothing', async () => {
  const { review, logger } = await chain('ignore');
  expect(await review(WRONG_TASK)).toMatchObject({ allowed: true, warnings: [], mismatches: [] });
  expect(logger.lines).toEqual([]);
});

it('the service counts mismatches, and answers 400 with the reason when they are errors', async () => {
  const service = await runSkypilot({ FirstPolicy: '' }, { skypilot: { config_validation: 'error' } });
  const { status, text } = await service.ask({ task: 'resource: {}\n' });
  expect({ status, text }).toEqual({
    status: 400,
    text: 'The request is not valid for SkyPilot 0.13: task: resource: unknown key; the nearest right key is "resources"',
  });
  const { text: metrics } = await service.request('/metrics');
  expect(metrics).toContain('blazar_enforcement_skypilot_mismatches_total{filter="config_validation"} 1');
});
