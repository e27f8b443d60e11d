/** Replicas of the service, each the built command in a process of its own, with no more rights than etc/kubernetes gives them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { vi } from 'vitest';
import { type Manifest, manifests } from '../etc/kubernetes/manifests.ts';
import { projectFile } from '../support/files.ts';
import { watched } from '../support/run-command.ts';
import { webhooksAt } from './cluster-objects.ts';
import type { Cluster } from './kubernetes.ts';
import { kubeconfigOfAccount } from './service-account.ts';

const SETTLED = { timeout: 120_000, interval: 200 };
const NAMESPACE = 'blazar-enforcement';

export interface ReplicaProcess {
  readonly name: string;
  /** Where it listens. */
  readonly url: string;
  /** All that it has logged and printed. */
  readonly output: () => string;
  /** Asks it as an API server would. `undefined` = it gives no answer. */
  ask(path: string, body?: object): Promise<{ readonly status: number; readonly text: string } | undefined>;
  stop(): Promise<void>;
}

/** Applies all of etc/kubernetes but its webhooks, and what 1.20 has not. */
export async function applyWithoutWebhooks({ apply, kubectl }: Cluster): Promise<void> {
  const all = manifests();
  await apply(all.filter(({ kind }) => /Definition|Namespace/.test(kind)));
  await vi.waitUntil(async () => (await kubectl(['get', 'schedpol'])).status === 0, SETTLED);
  await apply(all.filter(({ kind }) => !/Definition|Namespace|Budget|Webhook|Deployment/.test(kind)));
}

/** A kubeconfig of the service account of etc/kubernetes. */
export const kubeconfigOfService = (cluster: Cluster) => kubeconfigOfAccount(cluster, NAMESPACE, NAMESPACE);

/** `options`: of `[kubernetes]`. */
export async function startReplica(
  { folder }: Cluster,
  name: string,
  options: Readonly<Record<string, string>>,
): Promise<ReplicaProcess> {
  const place = join(folder, name);
  mkdirSync(place);
  const file = (from: string) => join(folder, from);
  const configuration = join(place, 'policy-service.conf');
  const lines = Object.entries(options).map(([option, value]) => `${option} = ${value}`);
  writeFileSync(
    configuration,
    [
      '[service]',
      'host = 127.0.0.1',
      'port = 0',
      'deadline = 4',
      // The certificate of the API server is for 127.0.0.1 too.
      `tls_cert_file = ${file('api.crt')}`,
      `tls_key_file = ${file('api.key')}`,
      '[kubernetes]',
      'source = cluster',
      'tokens = token-put-by-kustomize',
      ...lines,
    ].join('\n'),
  );
  const main = projectFile('dist/src/cli/main.js');
  const child = spawn(process.execPath, [main, 'serve', '--config-file', configuration], {
    cwd: place,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH },
  });
  const { output, printed, ended } = watched(child);
  const [, url = ''] = await printed(/Listening on (https:\S+)/);
  const ca = readFileSync(file('ca.crt'));
  return {
    name,
    url,
    output: () => Object.values(output()).join(''),
    ask: (path, body) => ask(new URL(path, url), ca, body),
    stop: () => stop(child, ended),
  };
}

function ask(url: URL, ca: Buffer, body: object | undefined): ReturnType<ReplicaProcess['ask']> {
  return new Promise((resolve) => {
    const options = { ca, method: body === undefined ? 'GET' : 'POST', timeout: 6000 };
    const headers = { 'content-type': 'application/json' };
    const sent = request(url, { ...options, headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
      answer.on('error', () => resolve(undefined));
    });
    sent.on('timeout', () => sent.destroy());
    sent.on('error', () => resolve(undefined));
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function stop(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  child.kill('SIGCONT');
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), 120_000);
  await ended;
  clearTimeout(late);
}

/** The webhooks of etc/kubernetes for the namespaces with the label `replica` of a replica, and only for them. */
export function webhooksFor({ folder }: Cluster, { name, url }: ReplicaProcess): Manifest[] {
  return manifests()
    .filter(({ kind }) => kind.includes('Webhook'))
    .map(webhooksAt(url, folder))
    .map((manifest) => ({
      ...manifest,
      metadata: { name: `${manifest.metadata.name}-${name}` },
      webhooks: manifest.webhooks
        // The policies are of both.
        .filter((webhook: Manifest) => webhook.namespaceSelector !== undefined)
        .map(({ matchConditions, ...webhook }: Manifest) => ({
          ...webhook,
          namespaceSelector: { matchLabels: { replica: name } },
        })),
    }));
}
