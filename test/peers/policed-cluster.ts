/** A real cluster with etc/kubernetes in it, whose webhooks ask a service that runs here and follows the cluster. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, vi } from 'vitest';
import { type Service, startService } from '../../src/server/service.ts';
import { type Manifest, manifests } from '../etc/kubernetes/manifests.ts';
import { type RecordingLogger, recordingLogger } from '../support/logger.ts';
import { accountSubject, binding, clusterRole, namespace, useOf, webhooksAt } from './cluster-objects.ts';
import { type Cluster, startCluster } from './kubernetes.ts';

const SETTLED = { timeout: 120_000, interval: 200 };
const CONTAINERS = [{ name: 'c', image: 'example.org/none' }];

export interface PolicedCluster {
  readonly cluster: Cluster;
  readonly service: Service;
  readonly log: RecordingLogger['lines'];
  /** Writes `[kubernetes]` anew and reloads. */
  configure(kubernetes: Readonly<Record<string, string>>): Promise<void>;
  /** What the API server says to a new object; empty = it is created. Warnings are left out. */
  create(object: object, as?: string): Promise<string>;
  /** A configuration of webhooks that ask this service. */
  toService(configuration: Manifest): Manifest;
  close(): Promise<void>;
}

/** A cluster for the tests of one file, which are skipped where there is none: `started` is `undefined` there. `options`: of `startCluster`. */
export function policedClusterOfFile(options?: Parameters<typeof startCluster>[0]) {
  const started = startCluster(options);
  let policed: PolicedCluster | undefined;
  afterAll(async () => {
    await policed?.close();
    started?.stop();
  });
  return {
    started,
    /** The service begins to follow it, with further options of `[kubernetes]`. A second call has no effect. */
    police: async (cluster: Cluster, kubernetes?: Readonly<Record<string, string>>) => {
      policed ??= await policedCluster(cluster, kubernetes);
    },
    here(): PolicedCluster {
      if (policed === undefined) {
        throw new Error('there is no cluster');
      }
      return policed;
    },
  };
}

/** `kubernetes`: further options. */
export async function policedCluster(
  cluster: Cluster,
  kubernetes: Readonly<Record<string, string>> = {},
): Promise<PolicedCluster> {
  const file = (name: string) => join(cluster.folder, name);
  const of = (all: readonly Manifest[], ...kinds: string[]) => all.filter(({ kind }) => kinds.includes(kind));
  const all = manifests();
  await cluster.apply(of(all, 'CustomResourceDefinition', 'Namespace'));
  await vi.waitUntil(async () => (await cluster.kubectl(['get', 'schedpol'])).status === 0, SETTLED);
  const configuration = file('policy-service.conf');
  const write = (options: Readonly<Record<string, string>>) =>
    writeFileSync(
      configuration,
      [
        '[service]',
        'host = 127.0.0.1',
        'port = 0',
        // The certificate of the API server is for 127.0.0.1 too.
        `tls_cert_file = ${file('api.crt')}`,
        `tls_key_file = ${file('api.key')}`,
        '[kubernetes]',
        'source = cluster',
        `kubeconfig = ${file('admin.conf')}`,
        // What stands in the paths, before kustomization.yaml puts a token of its own there.
        'tokens = token-put-by-kustomize',
        ...Object.entries({ ...kubernetes, ...options }).map(([name, value]) => `${name} = ${value}`),
      ].join('\n'),
    );
  write({});
  const logger = recordingLogger();
  const service = await startService({ environment: {}, configFiles: [configuration] }, { logger });
  // 1.20 has no policy/v1, and nothing here needs the pods of the service.
  await cluster.apply(all.filter(({ kind }) => !/Definition|Namespace|Budget|Webhook|Deployment/.test(kind)));
  const toService = webhooksAt(service.url, cluster.folder);
  await cluster.apply(all.filter(({ kind }) => kind.includes('Webhook')).map(toService));
  const create = async (object: object, as?: string) => (await cluster.create(object, { as })).error;
  await cluster.apply([namespace('first')]);
  // The API server takes a moment to know webhooks and accounts.
  await vi.waitUntil(
    async () => (await create(pod('first', 'early', { nodeName: 'n1' }))).includes('denied'),
    SETTLED,
  );
  await vi.waitUntil(async () => (await create(pod('first', 'first'))) === '', SETTLED);
  return {
    cluster,
    service,
    log: logger.lines,
    create,
    toService,
    async configure(options) {
      write(options);
      expect(await service.reload()).toBe(true);
    },
    close: () => service.close(),
  };
}

export function pod(namespace: string, name: string, spec: object = {}, metadata: object = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, ...metadata },
    spec: { containers: CONTAINERS, ...spec },
  };
}

/** A role for the use of policies, and its binding to a service account in a namespace. */
export function granted(namespace: string, account: string, ...policies: string[]): object[] {
  const name = `use-${policies.join('-')}`;
  return [
    clusterRole(name, useOf(...policies)),
    binding(name, name, [accountSubject(account, namespace)], namespace),
  ];
}
