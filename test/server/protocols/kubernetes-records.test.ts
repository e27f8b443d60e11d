/** What is kept of an admission: in the decision log, in the metrics, on the page. And what is kept nowhere. */
import { describe, expect, it } from 'vitest';
import { serviceLog } from '../../support/decision-logs.ts';
import {
  admissionReview,
  creating,
  type KubernetesService,
  type KubernetesSettings,
  policiesForAll,
  runKubernetes,
  updating,
  VALIDATION,
} from '../../support/kubernetes-service.ts';
import { metric } from '../../support/metric.ts';

const disks = {
  required: { nodeSelectors: { disk: ['ssd', 'hdd'] } },
  allowed: { schedulerNames: [], nodeSelectors: { zone: [] } },
  default: { nodeSelector: { disk: 'ssd' } },
};
const MESSAGE =
  'the pod does not fit the scheduling policies of system:serviceaccount:shop:default: nodeSelector disk: expected ssd or hdd, got "tape" (scheduling policy disks)';
const TAPE = { nodeSelector: { disk: 'tape' } };
const SSD = { nodeSelector: { disk: 'ssd' } };

async function recorded(
  use: (service: KubernetesService) => Promise<unknown>,
  kubernetes: KubernetesSettings['kubernetes'] = {},
  further: Readonly<Record<string, object>> = {},
) {
  const { decision_log, of } = serviceLog();
  const text = policiesForAll({ disks, ...further });
  const service = await runKubernetes(text, { kubernetes, service: { decision_log } });
  await use(service);
  const { text: page } = await service.request('/');
  const { records, metrics } = await of(service);
  const everything = [JSON.stringify(records), metrics, page, JSON.stringify(service.logger.lines)].join(
    '\n',
  );
  return { records, metrics, page, everything };
}

/** A line of the log, about the pod of `creating`. */
function line(outcome: string, changes: object = {}) {
  const message = outcome === 'rejected' ? MESSAGE : null;
  const filter = 'SchedulingPolicy';
  const own = outcome === 'audit' ? 'allowed' : outcome;
  return {
    time: expect.any(String),
    request_id: expect.stringMatching(/^req-/),
    operation: 'kubernetes.admission',
    project_id: 'shop',
    user_id: 'system:serviceaccount:shop:default',
    lease_id: null,
    lease_name: 'web',
    allowed: outcome !== 'rejected',
    outcome,
    filter: outcome === 'allowed' ? null : filter,
    message,
    failed: false,
    warnings: [],
    filters: [{ filter, outcome: own, audit: false, message, duration_ms: expect.any(Number) }],
    generation: 1,
    duration_ms: expect.any(Number),
    ...changes,
  };
}

describe('an admission', () => {
  it('is a line of the decision log, whatever the result', async () => {
    const { records, metrics, page } = await recorded(async ({ ask }) => {
      await ask(creating(SSD));
      await ask(creating({}));
      await ask(creating(TAPE));
      await ask(creating(TAPE), VALIDATION);
      await ask(updating(SSD, { ...SSD, nodeName: '' }));
    });
    expect(records).toEqual([
      line('allowed'),
      line('changed'),
      line('rejected'),
      line('rejected', { operation: 'kubernetes.validation' }),
      line('allowed'),
    ]);
    const decisions = (labels = {}) => metric(metrics, 'blazar_enforcement_decisions_total', labels);
    const filter = 'SchedulingPolicy';
    expect(decisions({ operation: 'kubernetes.admission', outcome: 'allowed', filter: '' })).toBe(2);
    expect(decisions({ operation: 'kubernetes.admission', outcome: 'changed', filter })).toBe(1);
    expect(decisions({ operation: 'kubernetes.validation', outcome: 'rejected', filter })).toBe(1);
    expect(decisions()).toBe(5);
    const enforced = { policy: 'disks', rule: 'nodeSelector', mode: 'enforce' };
    expect(metric(metrics, 'blazar_enforcement_kubernetes_refusals_total', enforced)).toBe(2);
    expect(page).toContain('system:serviceaccount:shop:default');
    const paths = ['/kubernetes/admission', '/kubernetes/validation'].map((path) =>
      metric(metrics, 'blazar_enforcement_http_requests_total', { path, status: '200' }),
    );
    expect(paths).toEqual([4, 1]);
  });

  it('in audit mode is recorded as such, with the warnings', async () => {
    const { records, metrics } = await recorded(
      async ({ ask }) => {
        await ask(creating(TAPE));
        await ask(creating(SSD));
      },
      { audit: ['*'] },
    );
    const warnings = [
      'a scheduling policy in audit mode would reject this pod: nodeSelector disk: expected ssd or hdd, got "tape" (scheduling policy disks)',
    ];
    expect(records).toEqual([line('audit', { warnings, filters: expect.anything() }), line('allowed')]);
    expect(records[0]?.filters).toMatchObject([
      { outcome: 'allowed', audit: false },
      { outcome: 'rejected', audit: true, message: null },
    ]);
    const refused = { operation: 'kubernetes.admission', filter: 'SchedulingPolicy', outcome: 'rejected' };
    expect(metric(metrics, 'blazar_enforcement_audit_refusals_total', refused)).toBe(1);
    const tried = { policy: 'disks', rule: 'nodeSelector', mode: 'audit' };
    expect(metric(metrics, 'blazar_enforcement_kubernetes_refusals_total', tried)).toBe(1);
    const labels = { operation: 'kubernetes.admission', outcome: 'audit', filter: 'SchedulingPolicy' };
    expect(metric(metrics, 'blazar_enforcement_decisions_total', labels)).toBe(1);
  });

  it('names the pod as well as possible, with a bounded length', async () => {
    const { records } = await recorded(async ({ ask }) => {
      await ask(admissionReview('create-by-replica-set'));
      const long = 'n'.repeat(300);
      const object = { metadata: { name: long }, spec: { serviceAccountName: long.slice(0, 253) } };
      await ask(creating({}, { object, namespace: long }));
      await ask(creating({}, { object: { spec: {} } }));
      await ask(creating({}, { object: { metadata: { name: null }, spec: {} } }));
    });
    expect(records.map(({ project_id, lease_name }) => [project_id, lease_name])).toEqual([
      ['shop', 'web-7c5ddbdf54-'],
      [`${'n'.repeat(255)}…`, `${'n'.repeat(255)}…`],
      ['shop', null],
      ['shop', null],
    ]);
    expect(records[0]?.user_id).toBe('system:serviceaccount:shop:web');
    expect(records[1]?.user_id?.length).toBe(256);
  });

  it("records nothing of the pod's content", async () => {
    const { everything } = await recorded(async ({ ask, post }) => {
      for (const name of ['create-by-replica-set', 'update-adding-a-toleration'] as const) {
        const { answer } = await ask(admissionReview(name));
        expect(answer.text).not.toContain('s3cret');
        const review = admissionReview(name);
        review.request.object.spec.nodeSelector = { disk: 'tape' };
        expect((await ask(review)).allowed).toBe(false);
        review.request.object.spec.nodeSelector = ['s3cret'];
        expect((await ask(review)).allowed).toBe(false);
        await post('/kubernetes/admission', JSON.stringify(review).slice(0, -1));
      }
    });
    expect(everything).toContain('shop');
    expect(everything).not.toMatch(/s3cret|registry\.example|lin@example/);
  });
});

describe('a dry run', () => {
  it('is decided like any other, and not recorded', async () => {
    const { records, metrics, page } = await recorded(async ({ ask }) => {
      for (const path of ['/kubernetes/admission', VALIDATION]) {
        for (const spec of [SSD, {}, TAPE]) {
          const dry = await ask(creating(spec, { dryRun: true, namespace: 'dry-namespace' }), path);
          const real = await ask(creating(spec, { dryRun: false }), path);
          expect(dry.answer.text.replaceAll('dry-namespace', 'shop')).toBe(real.answer.text);
          expect(dry.answer.headers.get('X-Enforcement-Generation')).toBe('1');
        }
      }
    });
    expect(records).toHaveLength(6);
    expect(metric(metrics, 'blazar_enforcement_decisions_total')).toBe(6);
    expect(JSON.stringify(records) + metrics + page).not.toContain('dry-namespace');
  });
});

it('unjudged and invalid reviews are not recorded', async () => {
  const { records, metrics } = await recorded(async ({ ask }) => {
    await ask(creating({}, { operation: 'DELETE', object: null }));
    await ask(creating({}, { object: null }));
    await ask({});
  });
  expect(records).toEqual([]);
  expect(metric(metrics, 'blazar_enforcement_decisions_total')).toBe(0);
});
