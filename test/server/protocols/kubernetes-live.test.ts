import { describe, expect, it, vi } from 'vitest';
import { schedulingPolicy } from '../../peers/cluster-objects.ts';
import { type ApiServerDouble, startApiServerDouble } from '../../support/api-server-double.ts';
import { sectionText } from '../../support/files.ts';
import { asking, creating, type KubernetesService } from '../../support/kubernetes-service.ts';
import { metric } from '../../support/metric.ts';
import { runServiceOnFile } from '../../support/running-service.ts';

const SOON = { timeout: 120_000, interval: 20 };
const POLICIES = '/apis/scheduling.blazar-enforcement/v1alpha1/schedulingpolicies';
const SSD = creating({ nodeSelector: { disk: 'ssd' } });
const HDD = creating({ nodeSelector: { disk: 'hdd' } });

const allowing = (...disk: readonly string[]) => ({
  allowed: { schedulerNames: [], nodeSelectors: { disk } },
});

type Options = Readonly<Record<string, unknown>>;

/** A service that follows a cluster in which everybody may use every policy. */
async function following({ cluster, kubernetes }: { cluster?: ApiServerDouble; kubernetes?: Options } = {}) {
  const double = cluster ?? (await startApiServerDouble());
  if (cluster === undefined) {
    double.review = () => true;
    double.store.put(POLICIES, schedulingPolicy('disks', allowing('ssd')));
  }
  const options = { source: 'cluster', kubeconfig: double.kubeconfig(), ...kubernetes };
  const written = (changes: Options = {}) =>
    `[service]\nport = 0\n${sectionText('kubernetes', { ...options, ...changes })}`;
  const { change, ...running } = await runServiceOnFile(written());
  const reload = (changes: Options) => change(written(changes));
  const ask: KubernetesService['ask'] = asking(running);
  const ready = async () => {
    const { status, json } = await running.request('/readyz');
    return { httpStatus: status, ...(json as Record<string, unknown>) };
  };
  const whenReady = () => expect.poll(ready).toMatchObject({ httpStatus: 200 });
  const metrics = async () => (await running.request('/metrics')).text;
  const allows = async (review: typeof SSD) => (await ask(review)).allowed;
  return { ...running, double, reload, ask, ready, whenReady, metrics, allows };
}

describe('a service that follows a cluster', () => {
  it('enforces what the cluster has now, and the last good form of what is invalid', async () => {
    const { double, whenReady, allows, ready, metrics, ask } = await following();
    await whenReady();
    expect([await allows(SSD), await allows(HDD)]).toEqual([true, false]);
    expect(await ready()).toMatchObject({
      status: 'ready',
      policies: { state: 'current', age_seconds: 0, problem: null },
    });
    double.store.put(POLICIES, schedulingPolicy('disks', allowing('hdd')));
    await expect.poll(() => allows(HDD)).toBe(true);
    double.store.put(POLICIES, schedulingPolicy('disks', { allowed: { colour: ['red'] } }));
    double.store.put(POLICIES, schedulingPolicy('never', { allowed: { colour: ['red'] } }));
    const refused = await vi.waitFor(async () => {
      const answer = await ask(HDD);
      expect(answer.allowed).toBe(false);
      return answer;
    }, SOON);
    expect(refused.message).toMatch(/the policy is invalid: spec\.allowed\.colour: unknown field/);
    const text = await metrics();
    const count = (state: string) => metric(text, 'blazar_enforcement_kubernetes_policies', { state });
    expect([count('enforced'), count('outdated'), count('invalid')]).toEqual([0, 1, 1]);
    const invalid = { policy: 'never', rule: 'invalid', mode: 'enforce' };
    expect(metric(text, 'blazar_enforcement_kubernetes_refusals_total', invalid)).toBe(1);
    expect(metric(text, 'blazar_enforcement_kubernetes_source_age_seconds')).toBe(0);
    double.store.remove(POLICIES, 'never');
    await expect.poll(async () => [await allows(HDD), await allows(SSD)]).toEqual([true, false]);
  });

  it('is not ready before it has read them, refuses every pod, and says why', async () => {
    const double = await startApiServerDouble();
    double.review = () => true;
    double.unknown.add('schedulingpolicies');
    const { ask, ready, whenReady, logger, metrics, allows } = await following({ cluster: double });
    await expect.poll(ready).toMatchObject({
      httpStatus: 503,
      status: 'policies not known',
      problems: [expect.stringContaining('does not know schedulingpolicies')],
      policies: { state: 'starting', age_seconds: null },
    });
    const { status, allowed, message, answer } = await ask(SSD);
    expect({ status, allowed, message }).toEqual({
      status: 200,
      allowed: false,
      message:
        'the scheduling policies of system:serviceaccount:shop:default cannot be determined now; try again',
    });
    const said = { code: 503, reason: 'ServiceUnavailable' };
    expect(answer.json).toMatchObject({ response: { status: said } });
    const id = answer.headers.get('X-Openstack-Request-Id');
    const lines = logger.lines.filter(({ fields }) => fields.request_id === id);
    expect(lines).toMatchObject([
      { level: 'warn', fields: { error: expect.stringContaining('not known yet') } },
    ]);
    for (let count = 0; count < 100; count += 1) {
      await ask(SSD);
    }
    expect(
      logger.lines.filter(({ message }) => message.startsWith('the scheduling policies of an')),
    ).toHaveLength(30);
    const labels = { operation: 'kubernetes.admission', outcome: 'failed', filter: 'SchedulingPolicy' };
    expect(metric(await metrics(), 'blazar_enforcement_decisions_total', labels)).toBe(101);
    // No policy is known either where there is none.
    expect(logger.lines.filter(({ message }) => message.includes('does not know'))).toHaveLength(1);
    double.unknown.clear();
    await whenReady();
    double.store.put(POLICIES, schedulingPolicy('disks', allowing('ssd')));
    await expect.poll(() => allows(SSD)).toBe(true);
  });

  it('stays ready while what it knows is enforced, and says how old that is', async () => {
    const { double, whenReady, ready, allows } = await following();
    await whenReady();
    double.fault = ({ path }) => (path === POLICIES ? { status: 500 } : undefined);
    double.cutWatches();
    await expect.poll(ready).toMatchObject({
      httpStatus: 200,
      status: 'ready',
      problems: [],
      policies: { state: 'behind', age_seconds: expect.any(Number), problem: expect.any(String) },
    });
    expect([await allows(SSD), await allows(HDD)]).toEqual([true, false]);
  });

  it('refuses the pods whose rights the API server does not tell', async () => {
    const { double, whenReady, ask, metrics } = await following();
    await whenReady();
    double.fault = ({ path }) => (path.endsWith('reviews') ? { status: 403 } : undefined);
    expect(await ask(SSD)).toMatchObject({
      status: 200,
      allowed: false,
      message: expect.stringContaining('try again'),
    });
    const text = await metrics();
    expect(metric(text, 'blazar_enforcement_kubernetes_access_answers_total', { how: 'failed' })).toBe(1);
    const failed = 'blazar_enforcement_kubernetes_access_review_duration_seconds_count';
    expect(metric(text, failed, { outcome: 'failed' })).toBeGreaterThan(0);
  });

  it.each([
    ['*', true],
    ['disks', false],
  ])('with audit = %s and a cluster that is away allows: %s', async (audit, allowed) => {
    const { double, whenReady, ask, metrics } = await following({ kubernetes: { audit } });
    await whenReady();
    double.fault = ({ path }) => (path.endsWith('reviews') ? 'closed' : undefined);
    const answer = await ask(HDD);
    expect(answer.allowed).toBe(allowed);
    expect(answer.warnings).toEqual(
      allowed ? [expect.stringMatching(/^scheduling policies in audit mode could not be tried: /)] : [],
    );
    const labels = { operation: 'kubernetes.admission', filter: 'SchedulingPolicy', outcome: 'failed' };
    expect(metric(await metrics(), 'blazar_enforcement_audit_refusals_total', labels)).toBe(allowed ? 1 : 0);
  });

  it('warns of audited policies that the cluster does not have', async () => {
    const { whenReady, logger } = await following({ kubernetes: { audit: 'disks, disk' } });
    await whenReady();
    await expect
      .poll(() => logger.lines.filter(({ message }) => message.includes('audit: ')))
      .toMatchObject([{ level: 'warn', fields: { policies: ['disk'] } }]);
  });

  it('goes on with what it knows after a reload, merged in another way', async () => {
    const { double, whenReady, allows, reload, ready } = await following();
    double.store.put(POLICIES, schedulingPolicy('tapes', allowing('hdd')));
    await whenReady();
    await expect.poll(() => allows(HDD)).toBe(true);
    // A watch begins after its list, which was enough so far.
    await expect.poll(() => double.watches).toBe(5);
    const lists = () =>
      double.requests.filter(({ path, query }) => path === POLICIES && !query.has('watch')).length;
    const before = lists();
    expect(await reload({ merge_strategy: 'first' })).toBe(true);
    expect(await ready()).toMatchObject({ httpStatus: 200, generation: 2 });
    expect([await allows(SSD), await allows(HDD)]).toEqual([true, false]);
    expect(lists()).toBe(before);
    expect(double.watches).toBeGreaterThan(0);
  });

  it('ends its watches when it stops', async () => {
    const { double, whenReady, service } = await following();
    await whenReady();
    await expect.poll(() => double.watches).toBe(5);
    await service.close();
    await expect.poll(() => double.watches).toBe(0);
  });
});
