import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { FollowedCluster } from '../../../src/kubernetes/cluster/live/follow-cluster.ts';
import { kubernetesOptions } from '../../../src/kubernetes/options.ts';
import { KubernetesReports } from '../../../src/server/followers/kubernetes-sources.ts';
import { FOLDER, manifests } from '../../etc/kubernetes/manifests.ts';
import { ClusterDouble } from '../../kubernetes/cluster/status/cluster-double.ts';
import { recordingLogger } from '../../support/logger.ts';

/** The first one loads the code. */

function reporting() {
  const observer = { statusWritten() {}, event() {} };
  const logger = recordingLogger();
  const reports = new KubernetesReports({ logger, observer });
  onTestFinished(() => reports.close());
  const follow = (double: ClusterDouble): FollowedCluster => ({
    client: double.client('policies'),
    policies: double.live,
    start() {},
    close: async () => undefined,
    permissions: { usable: (_, names) => names },
  });
  return { reports, follow, logger };
}
const options = (values: object = {}) => kubernetesOptions.parse({ source: 'cluster', ...values });
const leads = (reports: KubernetesReports) => expect.poll(() => reports.isLeader).toBe(true);

describe('the reports of a service', () => {
  it('begin with the configuration, follow its audit mode, and end with a lease that is free', async () => {
    const { reports, follow } = reporting();
    const double = new ClusterDouble();
    double.store('a');
    const cluster = follow(double);
    const reason = () => JSON.stringify(double.policies.get('a')?.status);
    reports.takeOver(cluster, options());
    await leads(reports);
    await expect.poll(reason).toContain('"reason":"Enforced"');
    reports.takeOver(cluster, options({ audit: ['a'] }));
    await expect.poll(reason).toContain('"reason":"Audited"');
    await reports.close();
    expect(reports.isLeader).toBeUndefined();
    expect([...double.objects.values()]).toMatchObject([{ spec: { holderIdentity: '' } }]);
  });

  it('say in the cluster, the log and the metrics whether API servers have webhooks', async () => {
    const { reports, follow, logger } = reporting();
    const double = new ClusterDouble();
    double.store('a');
    const reason = () => JSON.stringify(double.policies.get('a')?.status);
    const file = 'validating-webhook-configuration.yaml';
    const installed = options({ installed_webhooks: [join(FOLDER, file)] });
    const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/blazar-enforcement';
    const cluster = follow(double);
    reports.takeOver(cluster, options());
    await expect.poll(reason).toContain('"reason":"Enforced"');
    expect(reports.missingWebhooks).toBeUndefined();
    // Every configuration looks at once.
    reports.takeOver(cluster, installed);
    await expect.poll(reason).toContain('"reason":"NotAsked"');
    expect(reports.missingWebhooks).toBe(1);
    double.put(path, manifests(file)[0]);
    reports.takeOver(cluster, installed);
    await expect.poll(reason).toContain('"reason":"Enforced"');
    expect(reports.missingWebhooks).toBe(0);
    expect(logger.lines.filter(({ message }) => message.includes('as they were installed'))).toHaveLength(2);
  });

  it('move to the cluster of the next configuration', async () => {
    const { reports, follow } = reporting();
    const first = new ClusterDouble();
    const second = new ClusterDouble();
    reports.takeOver(follow(first), options());
    await leads(reports);
    reports.takeOver(follow(second), options());
    expect(reports.isLeader).toBe(false);
    await leads(reports);
    expect([...first.objects.values()]).toMatchObject([{ spec: { holderIdentity: '' } }]);
    expect(second.objects.size).toBe(1);
  });

  it('move to the lease of the next configuration, and give the one before back', async () => {
    const { reports, follow } = reporting();
    const double = new ClusterDouble();
    const cluster = follow(double);
    reports.takeOver(cluster, options({ status_lease: 'one' }));
    await leads(reports);
    reports.takeOver(cluster, options({ status_lease: 'another' }));
    await leads(reports);
    expect([...double.objects.values()]).toMatchObject([
      { metadata: { name: 'one' }, spec: { holderIdentity: '' } },
      { metadata: { name: 'another' }, spec: { holderIdentity: expect.stringMatching(/./) } },
    ]);
    expect(double.listening).toBe(1);
    await reports.close();
    expect(double.listening).toBe(0);
  });

  it('are none with write_status = false, and none with files', async () => {
    const { reports, follow } = reporting();
    const double = new ClusterDouble();
    reports.takeOver(follow(double), options({ write_status: false }));
    reports.takeOver(undefined, options({ source: 'files' }));
    await reports.close();
    expect(reports.isLeader).toBeUndefined();
    expect(double.calls).toEqual([]);
  });
});
