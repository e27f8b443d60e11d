/** Pods that cannot be read, beside a real API server that lets pass what is not answered. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createApiClient } from '../../src/kubernetes/cluster/api/api-client.ts';
import type { ApiClient } from '../../src/kubernetes/cluster/api/contract.ts';
import { startCluster } from './kubernetes.ts';
import { type PolicedCluster, pod, policedCluster } from './policed-cluster.ts';

const cluster = startCluster();

describe.skipIf(cluster === undefined)('with failurePolicy Ignore', () => {
  let policed: PolicedCluster | undefined;
  let client: ApiClient | undefined;

  /** What the API server says; empty = it is created. Not by kubectl, which escapes texts itself. */
  const create = async (name: string, spec: object, metadata: object = {}): Promise<string> => {
    const path = '/api/v1/namespaces/first/pods';
    const body = pod('first', name, spec, metadata);
    const answered = client?.request({ method: 'POST', path, body, query: { dryRun: 'All' } });
    return (await answered?.then(() => '', String)) ?? 'no cluster';
  };

  beforeAll(async () => {
    if (cluster === undefined) {
      return;
    }
    policed = await policedCluster(cluster);
    for (const kind of ['mutatingwebhookconfiguration', 'validatingwebhookconfiguration']) {
      const { webhooks } = (await cluster.get('get', kind, 'blazar-enforcement')) as { webhooks: unknown[] };
      // A busy machine takes long for a large pod, and what is not answered in time passes.
      const changed = { failurePolicy: 'Ignore', timeoutSeconds: 30 };
      const ignored = webhooks.flatMap((_, index) =>
        Object.entries(changed).map(([field, value]) => ({
          ...{ op: 'replace', path: `/webhooks/${index}/${field}`, value },
        })),
      );
      const patch = ['patch', kind, 'blazar-enforcement', '--type=json', '-p', JSON.stringify(ignored)];
      expect((await cluster.kubectl(patch)).stderr).toBe('');
    }
    client = createApiClient({ kubeconfig: join(cluster.folder, 'admin.conf') });
    expect(await create('plain', {})).toBe('');
    await vi.waitUntil(async () => (await create('node', { nodeName: 'n1' })).includes('denied'), 120_000);
  });

  afterAll(async () => {
    await client?.close();
    await policed?.close();
    cluster?.stop();
  });

  it('pods with more tolerations or names than are read, and those that are too large, are refused', async () => {
    const tolerations = Array.from({ length: 1001 }, (_, index) => ({
      key: `k${index}`,
      operator: 'Exists',
    }));
    expect(await create('many', { nodeName: 'n1', tolerations })).toMatch(
      /denied the request: the pod cannot be judged: request\.object\.spec\.tolerations/,
    );
    // The API server escapes each of these letters by six.
    const env = [{ name: 'a', value: '<'.repeat(2_000_000) }];
    const containers = [{ name: 'c', image: 'example.org/none', env }];
    expect(await create('large', { nodeName: 'n1', containers })).toMatch(
      /denied the request: the pod cannot be judged: expected a body of at most 8388608 bytes/,
    );
    const labels = Object.fromEntries(Array.from({ length: 11_000 }, (_, index) => [`label-${index}`, 'x']));
    expect(await create('wide', { nodeName: 'n1' }, { labels })).toMatch(
      /denied the request: the pod (cannot be judged|does not fit)/,
    );
  });
});
