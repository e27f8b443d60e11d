/** Credential plugins of a kubeconfig beside a real API server: with a client certificate, and with a token that is revoked. */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createApiClient } from '../../src/kubernetes/cluster/api/api-client.ts';
import { peerProgram } from '../support/peers.ts';
import { accountSubject, binding, serviceAccount } from './cluster-objects.ts';
import { type Cluster, startCluster } from './kubernetes.ts';

const there = peerProgram('KUBERNETES_PEER') !== undefined;
const VERSION = 'client.authentication.k8s.io/v1beta1';
const NAMESPACES = { method: 'GET', path: '/api/v1/namespaces/default' } as const;

describe.skipIf(!there)('a credential plugin beside a real API server', () => {
  let cluster: Cluster;

  beforeAll(() => {
    const started = startCluster();
    if (started === undefined) {
      throw new Error('the cluster does not start');
    }
    cluster = started;
  });

  afterAll(() => cluster?.stop());

  /** A client whose plugin prints what a file beside it holds. */
  function loggedInBy(name: string, status: object) {
    const credential = join(cluster.folder, `${name}.json`);
    const print = (given: object) =>
      writeFileSync(
        credential,
        JSON.stringify({ kind: 'ExecCredential', apiVersion: VERSION, status: given }),
      );
    print(status);
    const program = join(cluster.folder, name);
    writeFileSync(program, `#!/bin/sh\necho run >>'${program}.runs'\nexec cat '${credential}'\n`);
    chmodSync(program, 0o755);
    const kubeconfig = join(cluster.folder, `${name}.conf`);
    const text = readFileSync(join(cluster.folder, 'admin.conf'), 'utf8');
    const exec = `exec: {apiVersion: ${VERSION}, command: ./${name}, provideClusterInfo: true}`;
    writeFileSync(kubeconfig, text.replace(/user: \{client.*\}\}\]/, `user: {${exec}}}]`));
    const client = createApiClient({ kubeconfig });
    onTestFinished(() => client.close());
    return { client, print, runs: () => readFileSync(`${program}.runs`, 'utf8').split('\n').length - 1 };
  }

  async function tokenOf(name: string): Promise<string> {
    const admin = createApiClient({ kubeconfig: join(cluster.folder, 'admin.conf') });
    onTestFinished(() => admin.close());
    const path = `/api/v1/namespaces/default/serviceaccounts/${name}/token`;
    const made = await admin.request({ method: 'POST', path, body: { spec: {} } });
    return (made as { readonly status: { readonly token: string } }).status.token;
  }

  it('logs in with a client certificate', async () => {
    const [clientCertificateData, clientKeyData] = ['crt', 'key'].map((ending) =>
      readFileSync(join(cluster.folder, `admin.${ending}`), 'utf8'),
    );
    const { client, runs } = loggedInBy('certificate', { clientCertificateData, clientKeyData });
    for (let call = 0; call < 3; call += 1) {
      expect(await client.request(NAMESPACES)).toMatchObject({ kind: 'Namespace' });
    }
    expect(runs()).toBe(1);
  });

  it('logs in again when its account, and so its token, is gone', async () => {
    const account = serviceAccount('reader', 'default');
    await cluster.apply([account, binding('reader', 'view', [accountSubject('reader', 'default')])]);
    const { client, print, runs } = loggedInBy('token', { token: await tokenOf('reader') });
    // The API server learns of a new binding a moment after it has been made.
    await expect
      .poll(() => client.request(NAMESPACES).then(() => 'read', String), { timeout: 120_000 })
      .toBe('read');
    await cluster.kubectl(['delete', 'serviceaccount', 'reader']);
    await cluster.apply([account]);
    const fresh = { token: await tokenOf('reader') };
    // The API server learns of the new account a moment after it has been made.
    const probe = loggedInBy('probe', fresh);
    await expect
      .poll(() => probe.client.request(NAMESPACES).then(() => 'read', String), { timeout: 120_000 })
      .toBe('read');
    print(fresh);
    // The API server keeps what it has found out about a token for some seconds.
    await expect
      .poll(async () => [await client.request(NAMESPACES).then(() => 'read', String), runs()], {
        timeout: 120_000,
      })
      .toEqual(['read', 2]);
  });
});
