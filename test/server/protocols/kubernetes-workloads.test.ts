/** What the service answers about Deployments, Jobs and the like, and what it keeps of that. */
import { describe, expect, it } from 'vitest';
import { serviceLog } from '../../support/decision-logs.ts';
import { creating, policiesForAll, runKubernetes, VALIDATION } from '../../support/kubernetes-service.ts';
import { metric } from '../../support/metric.ts';

const disks = {
  required: { nodeSelectors: { disk: ['ssd', 'hdd'] } },
  allowed: { schedulerNames: [] },
  default: { nodeSelector: { disk: 'ssd' } },
};
const TAPE = { nodeSelector: { disk: 'tape' } };
const resource = { group: 'apps', version: 'v1', resource: 'deployments' };
const WARNING =
  'this Deployment\'s pods would be refused: nodeSelector disk: expected ssd or hdd, got "tape" (scheduling policy disks)';
const UNCHECKED = "it could not be checked whether this Deployment's pods fit the scheduling policies";

const deployment = (spec: unknown, changes: Readonly<Record<string, unknown>> = {}) =>
  creating(
    {},
    { resource, object: { metadata: { name: 'shop' }, spec: { template: { spec } } }, ...changes },
  );

async function run(workloads: 'warn' | 'refuse' | 'ignore' | undefined) {
  const { decision_log, of } = serviceLog();
  const service = await runKubernetes(policiesForAll({ disks }), {
    kubernetes: { ...(workloads && { workloads }) },
    service: { decision_log },
  });
  const ask = (body: object) => service.ask(body, VALIDATION);
  return { ask, close: () => of(service), logger: service.logger };
}

describe('a Deployment', () => {
  it('gets a warning, and is recorded like a decision of a policy in audit mode', async () => {
    const { ask, close } = await run(undefined);
    expect(await ask(deployment(TAPE))).toMatchObject({ allowed: true, warnings: [WARNING], patch: [] });
    expect(await ask(deployment({}))).toMatchObject({ allowed: true, warnings: [], patch: [] });
    const { records, metrics } = await close();
    const user_id = 'system:serviceaccount:shop:default';
    expect(records).toMatchObject([
      { project_id: 'shop', user_id, lease_name: 'shop', outcome: 'audit', warnings: [WARNING] },
      { operation: 'kubernetes.validation', outcome: 'allowed', warnings: [] },
    ]);
    const labels = { operation: 'kubernetes.validation', outcome: 'audit' };
    expect(metric(metrics, 'blazar_enforcement_decisions_total', labels)).toBe(1);
  });

  it('is refused with workloads = refuse, and let through with workloads = ignore', async () => {
    const refusing = await run('refuse');
    expect(await refusing.ask(deployment(TAPE))).toMatchObject({
      allowed: false,
      message: expect.stringContaining("this Deployment's pods would be refused: they do not fit"),
    });
    expect(await refusing.ask(deployment({}))).toMatchObject({ allowed: true, warnings: [] });
    expect((await refusing.close()).records.map(({ outcome }) => outcome)).toEqual(['rejected', 'allowed']);
    const ignoring = await run('ignore');
    expect(await ignoring.ask(deployment(TAPE))).toMatchObject({ allowed: true, warnings: [] });
    expect((await ignoring.close()).records).toEqual([]);
  });

  it('is not recorded for a dry run, nor when nothing about its pods changes', async () => {
    const { ask, close } = await run(undefined);
    expect((await ask(deployment(TAPE, { dryRun: true }))).warnings).toEqual([WARNING]);
    const { object } = deployment(TAPE).request;
    const update = deployment(TAPE, { operation: 'UPDATE', oldObject: object });
    expect((await ask(update)).warnings).toEqual([]);
    expect((await close()).records).toEqual([]);
  });

  it('is never refused where a warning was asked for, even if it cannot be judged', async () => {
    const { ask, close, logger } = await run('warn');
    for (const broken of [
      deployment(null),
      deployment({ tolerations: 7 }),
      deployment(TAPE, { namespace: null }),
      deployment(TAPE, { object: null }),
    ]) {
      expect(await ask(broken)).toMatchObject({ status: 200, allowed: true, warnings: [UNCHECKED] });
    }
    expect(logger.lines.filter(({ message }) => message === 'workload not checked')).toHaveLength(4);
    expect((await close()).records).toEqual([]);
    const refusing = await run('refuse');
    expect(await refusing.ask(deployment({ tolerations: 7 }))).toMatchObject({
      status: 200,
      allowed: false,
      message: expect.stringContaining('this Deployment cannot be judged: request.object.spec.template'),
    });
  });
});
