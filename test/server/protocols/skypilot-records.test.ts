/** What is kept of a review: in the decision log, in the metrics, on the page. And what is kept nowhere. */
import { describe, expect, it, vi } from 'vitest';
import { PolicyChain } from '../../../src/skypilot/policies/policy-chain.ts';
import { serviceLog } from '../../support/decision-logs.ts';
import { metric } from '../../support/metric.ts';
import { FAILED, wireBody } from '../../support/skypilot.ts';
import { PATH, runSkypilot, type SkypilotService } from '../../support/skypilot-service.ts';

const LABEL = "task.labels = { team: 'ml' };";
/** One policy for all, told by the name of the task what to do. */
const BY_NAME = `switch (task.name) {
  case 'change': ${LABEL} break;
  case 'reject': throw new PolicyRejected('Not on Sundays.');
  case 'break': throw new Error('the cause');
}`;

async function recorded(
  policies: Readonly<Record<string, string>>,
  use: (service: SkypilotService) => Promise<unknown>,
  options: { readonly skypilot?: Readonly<Record<string, unknown>> } = {},
) {
  const { decision_log, of } = serviceLog();
  const service = await runSkypilot(policies, { ...options, service: { decision_log } });
  await use(service);
  const { text: page } = await service.request('/decisions');
  const { records, metrics } = await of(service);
  return { records, text: JSON.stringify(records), metrics, page, service };
}

describe('a review', () => {
  it('is a line of the decision log, whatever the result', async () => {
    const policies = { FirstPolicy: '', NamePolicy: BY_NAME };
    const { records, metrics, service } = await recorded(policies, async ({ ask }) => {
      for (const name of ['keep', 'change', 'reject', 'break']) {
        await ask({ task: `name: ${name}\n`, skypilot_config: 'active_workspace: structure\n' });
      }
    });
    const first = { filter: 'FirstPolicy', outcome: 'allowed', audit: false, message: null };
    const of = (outcome: string, filter: string | null, message: string | null = null) => ({
      time: expect.any(String),
      request_id: expect.stringMatching(/^req-/),
      operation: 'skypilot.launch',
      side: 'server',
      launch: true,
      project_id: 'structure',
      user_id: '0a1b2c3d',
      lease_id: null,
      lease_name: 'one',
      allowed: message === null,
      outcome,
      filter,
      message,
      failed: outcome === 'failed',
      warnings: [],
      filters: [first, { filter: 'NamePolicy', outcome, audit: false, message }].map((one) => ({
        ...one,
        duration_ms: expect.any(Number),
        ...(one.outcome === 'changed' && {
          changes: [{ path: 'task.labels.team', before: null, after: 'ml' }],
        }),
      })),
      generation: 1,
      duration_ms: expect.any(Number),
    });
    expect(records).toEqual([
      of('allowed', null),
      of('changed', 'NamePolicy'),
      of('rejected', 'NamePolicy', 'Not on Sundays.'),
      of('failed', 'NamePolicy', FAILED),
    ]);
    expect(service.logger.lines.find(({ message }) => message === 'policy failed')?.fields.request_id).toBe(
      records[3]?.request_id,
    );
    const count = (name: string, labels: Record<string, string>) =>
      metric(metrics, `blazar_enforcement_${name}`, labels);
    const [operation, filter] = ['skypilot.launch', 'NamePolicy'];
    expect(count('decisions_total', { operation, outcome: 'allowed', filter: '' })).toBe(1);
    for (const outcome of ['changed', 'rejected', 'failed']) {
      expect(count('decisions_total', { operation, outcome, filter })).toBe(1);
      expect(count('filter_duration_seconds_count', { operation, outcome, filter })).toBe(1);
    }
    expect(count('http_requests_total', { path: PATH, status: '200' })).toBe(2);
  });

  it('names no user if SkyPilot sends none, nor a request that it makes up', async () => {
    const { records, metrics } = await recorded({ IdlePolicy: '' }, async ({ ask }) => {
      await ask(wireBody('launch-client'));
      await ask(wireBody('validate-server'));
      await ask(wireBody('jobs-launch-server'));
      await ask({ request_name: 'volumes.apply', skypilot_config: 'active_workspace: {a: 1}\n', user: '' });
      await ask({ request_options: { cluster_name: 'c'.repeat(300) }, request_name: undefined });
    });
    const seen = records.map(({ operation, project_id, user_id, lease_name }) => [
      operation,
      project_id,
      user_id,
      lease_name,
    ]);
    expect(seen).toEqual([
      ['skypilot.launch', 'structure', null, 'fold-west'],
      ['skypilot.validate', null, '7be31c02', 'fold-west'],
      ['skypilot.jobs.launch', null, '7be31c02', null],
      ['skypilot.other', null, null, 'one'],
      ['skypilot.other', null, '0a1b2c3d', `${'c'.repeat(255)}…`],
    ]);
    expect(metrics).not.toContain('volumes.apply');
  });

  it('is not recorded for an invalid or unauthenticated request', async () => {
    const { records, metrics } = await recorded(
      { IdlePolicy: '' },
      async ({ ask, request }) => {
        await ask();
        await ask('{', '?token=secret-0123456789abcdef');
        await ask({ task: '[' }, '?token=secret-0123456789abcdef');
        await request(PATH);
      },
      { skypilot: { tokens: ['secret-0123456789abcdef'] } },
    );
    expect(records).toEqual([]);
    expect(metric(metrics, 'blazar_enforcement_decisions_total')).toBe(0);
    const answered = (status: string) =>
      metric(metrics, 'blazar_enforcement_http_requests_total', { path: PATH, status });
    expect(['401', '422', '405'].map(answered)).toEqual([1, 2, 1]);
  });
});

describe('secrets of a request', () => {
  const SECRETS = [
    'the-token-of-the-fixtures',
    'policy.example.org',
    'the-password-of-the-fixtures',
    'proxy.example.org',
    'the-query-token',
    's3cret-token-0123456789abcdef',
    'python fold.py',
    'allowed_users',
  ];

  it('are in no log, decision, metric, page or other response', async () => {
    const answers: string[] = [];
    const { text, metrics, page, service } = await recorded(
      { NamePolicy: BY_NAME.replaceAll('task.name', "request.requestName.split('-')[1]") },
      async ({ ask, post, request }) => {
        const inner = JSON.parse(JSON.parse(wireBody('launch-server')) as string) as object;
        const send = async (members: object | string, query = '?token=s3cret-token-0123456789abcdef') => {
          const { status, text: answer } = await ask(
            typeof members === 'string' ? members : { ...inner, ...members },
            query,
          );
          if (status !== 200) {
            answers.push(answer);
          }
        };
        await send({});
        for (const way of ['change', 'reject', 'break']) {
          await send({ request_name: `x-${way}` });
        }
        await send({}, '?token=the-query-token');
        await send({ task: 'the-password-of-the-fixtures: [' });
        await send({
          skypilot_config: 'admin_policy: https://policy.example.org/?token=the-token-of-the-fixtures: x',
        });
        await send({ user: 'the-password-of-the-fixtures' });
        await send('{"the-password-of-the-fixtures');
        answers.push((await post(`${PATH}x?token=s3cret-token-0123456789abcdef`, inner)).text);
        answers.push((await request(`${PATH}?token=s3cret-token-0123456789abcdef`)).text);
        answers.push((await request('/openapi.json')).text, (await request('/readyz')).text);
      },
      { skypilot: { tokens: ['s3cret-token-0123456789abcdef'] } },
    );
    expect(answers.length).toBe(11);
    const everything = { text, metrics, page, answers, log: service.logger.lines };
    for (const [where, what] of Object.entries(everything)) {
      for (const secret of SECRETS) {
        expect(JSON.stringify(what).includes(secret), `${secret} in ${where}`).toBe(false);
      }
    }
  });

  it('are not in the log of a failure either, which repetitions do not fill', async () => {
    const { ask, logger } = await runSkypilot(
      { IdlePolicy: '' },
      { skypilot: { tokens: ['s3cret-token-0123456789abcdef'] } },
    );
    vi.spyOn(PolicyChain.prototype, 'review').mockRejectedValue(new Error('a fault'));
    for (let count = 0; count < 40; count += 1) {
      expect((await ask(wireBody('launch-server'), '?token=s3cret-token-0123456789abcdef')).status).toBe(500);
    }
    const failed = logger.lines.filter(({ message }) => message === 'request failed');
    expect(failed).toHaveLength(30);
    expect(failed[0]).toMatchObject({ fields: { path: PATH } });
    const log = JSON.stringify(logger.lines);
    expect(SECRETS.filter((secret) => log.includes(secret))).toEqual([]);
  });
});
