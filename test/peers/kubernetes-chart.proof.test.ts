/**
 * The chart in a real cluster: its objects, exactly its rights, and with these the built command: `scheduling-policy certificates`. Then two
 * services renew the certificate that they share while API servers call.
 */
import { X509Certificate } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from 'node:tls';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { createApiClient } from '../../src/kubernetes/cluster/api/api-client.ts';
import { holdCertificate, issueCertificate } from '../../src/kubernetes/cluster/certificates/certificate.ts';
import { serviceAccount } from '../../src/kubernetes/policies/access.ts';
import { type Service, startService } from '../../src/server/service.ts';
import { CHART, configurationOf, namesOf, RELEASES, type Release, rendered } from '../etc/helm/chart.ts';
import { type Manifest, parse } from '../etc/kubernetes/manifests.ts';
import { rbacTable } from '../etc/kubernetes/rbac-table.ts';
import { recordingLogger } from '../support/logger.ts';
import { type RunningCommand, runCommand, startCommand } from '../support/run-command.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { pod } from './policed-cluster.ts';
import { kubeconfigOfAccount } from './service-account.ts';

const { cluster, here, closing } = clusterOfFile();

const running: RunningCommand[] = [];
closing.push(async () => {
  for (const { process } of running) {
    process.kill('SIGKILL');
  }
  await Promise.all(running.map(({ ended }) => ended));
});

const SETTLED = { timeout: 120_000, interval: 200 };
/** This API server trusts a new authority within so many milliseconds, also on a busy machine. By default, two minutes are waited for it. */
const SETTLE_MS = 10_000;
const [release] = RELEASES as [Release];
const { namespace } = release;
const { own, cluster: configurations } = namesOf(release);
const objects = rendered(release);
const SECRET = `${own}-certificate`;
/** The API server calls the services here by this name. */
const HOST = 'localhost';
const HOUR = 3_600_000;

interface Target {
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string | undefined;
  readonly name?: string;
}
const POLICIES = { group: 'scheduling.blazar-enforcement', resource: 'schedulingpolicies' };
const RBAC = 'rbac.authorization.k8s.io';
const WEBHOOKS = 'admissionregistration.k8s.io';
const FORBIDDEN: readonly (readonly [verb: string, target: Target])[] = [
  ['list', { group: '', resource: 'secrets' }],
  ['create', { group: '', resource: 'secrets' }],
  ['delete', { group: '', resource: 'secrets', name: SECRET }],
  ['get', { group: '', resource: 'pods' }],
  ['create', { group: '', resource: 'pods' }],
  ['update', POLICIES],
  ['patch', POLICIES],
  ['use', { ...POLICIES, name: 'privileged' }],
  ['create', { group: RBAC, resource: 'clusterrolebindings' }],
  ['escalate', { group: RBAC, resource: 'clusterroles' }],
  ['impersonate', { group: '', resource: 'serviceaccounts' }],
  ['delete', { group: WEBHOOKS, resource: 'validatingwebhookconfigurations', name: configurations }],
  ['create', { group: WEBHOOKS, resource: 'mutatingwebhookconfigurations' }],
  ['*', { group: '*', resource: '*' }],
];
let kubeconfig = '';

const of = (pattern: RegExp) => objects.filter(({ kind }) => pattern.test(kind));
const secret = async () => (await here().get('-n', namespace, 'get', 'secret', SECRET)) as Manifest;
const decoded = (base64: string) => Buffer.from(base64, 'base64').toString();

/** Replaces what the Secret holds. */
const fill = (data: Readonly<Record<string, string>>) =>
  here().apply([
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: SECRET, namespace },
      type: 'Opaque',
      stringData: data,
    },
  ]);

/** A configuration in a folder of its own. */
function configured(name: string, kubernetes: Readonly<Record<string, string>> = {}) {
  const folder = join(here().folder, name);
  mkdirSync(folder, { recursive: true });
  const own = join(folder, 'own');
  const pem = join(own, 'server.pem');
  const file = join(folder, 'policy-service.conf');
  const options = {
    source: 'cluster',
    tokens: 'token-put-by-kustomize',
    kubeconfig,
    certificate_secret: SECRET,
    certificate_folder: own,
    certificate_names: HOST,
    certificate_days: '1',
    webhook_configurations: configurations,
    ...kubernetes,
  };
  writeFileSync(
    file,
    [
      '[service]',
      'host = 127.0.0.1',
      'port = 0',
      `tls_cert_file = ${pem}`,
      `tls_key_file = ${pem}`,
      '[kubernetes]',
      ...Object.entries(options).map(([option, value]) => `${option} = ${value}`),
    ].join('\n'),
  );
  return { folder, own, pem, file };
}

const CERTIFICATES = ['scheduling-policy', 'certificates', '--config-file'];
function started(args: readonly string[]): RunningCommand {
  const command = startCommand(args);
  running.push(command);
  return command;
}
/** Until the command has said it, on standard error. */
const said = (command: RunningCommand, text: string) =>
  expect.poll(() => command.output().stderr, SETTLED).toContain(text);

/** The fingerprint of the certificate with which somebody is answered there. */
function servedAt(url: string): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: Number(new URL(url).port), rejectUnauthorized: false };
    const socket = connect(options, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256);
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

/** Ends a command as Ctrl-C does. */
async function stopped(command: RunningCommand) {
  command.process.kill('SIGINT');
  return command.ended;
}

describe.skipIf(cluster === undefined)('the chart in a real cluster', () => {
  beforeAll(async () => {
    const { apply, kubectl } = here();
    await apply([
      ...['shop', namespace].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
      ...parse(readFileSync(join(CHART, 'crds/custom-resource-definition.yaml'), 'utf8')),
    ]);
    await vi.waitUntil(async () => (await kubectl(['get', 'schedpol'])).status === 0, SETTLED);
    await apply(of(/^SchedulingPolicy$/));
    // 1.20 has no policy/v1.
    await apply(of(/^PodDisruptionBudget$/).map((one) => ({ ...one, apiVersion: 'policy/v1beta1' })));
    await apply(of(/^(?!SchedulingPolicy$|PodDisruptionBudget$|Secret$|.*Webhook)/));
    await kubectl(['-n', namespace, 'scale', 'deployment', own, '--replicas=0']);
    kubeconfig = await kubeconfigOfAccount(here(), namespace, own);
  });

  it('the service account has the rights of the table, and these alone', async () => {
    const admin = createApiClient({ kubeconfig: join(here().folder, 'admin.conf') });
    closing.push(() => admin.close());
    const may = async (verb: string, target: Target, where: string): Promise<boolean> => {
      const { user, groups } = serviceAccount(namespace, own);
      const resourceAttributes = { verb, ...target, namespace: where };
      const body = {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: { user, groups, resourceAttributes },
      };
      const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
      const { status } = (await admin.request({ method: 'POST', path, body })) as Manifest;
      return status.allowed;
    };
    const answers: Record<string, boolean> = {};
    const expected: Record<string, boolean> = {};
    const ask = async (verb: string, target: Target, where: string, allowed: boolean) => {
      const about = JSON.stringify({ verb, ...target, where });
      answers[about] = await may(verb, target, where);
      expected[about] = allowed;
    };
    for (const { where, group, resource: full, named, verb } of rbacTable().flatMap(({ rights }) => rights)) {
      const [resource = '', subresource] = full.split('/');
      const name =
        group === '' && resource === 'secrets' ? SECRET : where === 'cluster' ? configurations : own;
      const target = { group, resource, subresource };
      const place = where === 'cluster' ? 'shop' : namespace;
      await ask(verb, { ...target, ...(named && { name }) }, place, true);
      if (named) {
        await ask(verb, { ...target, name: 'another' }, place, false);
      }
      if (where === 'own namespace') {
        await ask(verb, { ...target, ...(named && { name }) }, 'shop', false);
      }
    }
    for (const [verb, target] of FORBIDDEN) {
      for (const where of ['shop', namespace]) {
        await ask(verb, target, where, false);
      }
    }
    expect(answers).toEqual(expected);
  });

  it('certificates wait for a Secret that is not there and that the account may not create', async () => {
    const { file, pem } = configured('without-secret');
    const command = started([...CERTIFICATES, file]);
    await said(command, 'cannot create resource \\"secrets\\"');
    expect(existsSync(pem)).toBe(false);
    await fill({});
    const { code, stderr } = await command.ended;
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stderr).not.toContain('PRIVATE KEY');
    expect(statSync(pem).mode & 0o777).toBe(0o600);
    expect(readFileSync(pem, 'utf8')).toContain(decoded((await secret()).data['tls.crt']));
  });

  it('certificates wait for an account that may not read the Secret, and end with a signal', async () => {
    const { file, pem } = configured('without-rights', { certificate_secret: 'of-others' });
    const command = started([...CERTIFICATES, file]);
    await said(command, 'cannot get resource \\"secrets\\"');
    expect(await stopped(command)).toMatchObject({ code: 3 });
    expect(existsSync(pem)).toBe(false);
  });

  it('certificates are not written into a folder that everyone may write', async () => {
    const { file, folder, pem } = configured('open-folder');
    chmodSync(folder, 0o777);
    const { code, stderr } = await runCommand([...CERTIFICATES, file]);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('may write') });
    expect(existsSync(pem)).toBe(false);
  });

  it('the service does not start before there is a certificate', async () => {
    const { file, pem } = configured('early');
    const { code, stderr } = await runCommand(['serve', '--config-file', file]);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining(pem) });
  });

  it('certificates change under two services, and no call of the API server fails', async () => {
    const { apply, create } = here();
    // Of one day, 17 hours ago: less than a third is left.
    const old = await issueCertificate({ names: [HOST], lifeMs: 24 * HOUR }, Date.now() - 17 * HOUR);
    await fill({ 'tls.crt': old.certificate, 'tls.key': old.key, 'ca.crt': old.authority });
    const logger = recordingLogger();
    const services: Service[] = [];
    const installed_webhooks = join(here().folder, 'webhooks.yaml');
    writeFileSync(installed_webhooks, configurationOf(objects)['webhooks.yaml'] ?? '');
    for (const name of ['a', 'b']) {
      const { file } = configured(name, { installed_webhooks });
      expect(await runCommand([...CERTIFICATES, file])).toMatchObject({ code: 0 });
      const service = await startService(
        { environment: {}, configFiles: [file] },
        { logger, pollMs: 100, certificateTiming: { intervalMs: 1000, settleMs: SETTLE_MS } },
      );
      services.push(service);
      closing.push(() => service.close());
    }
    const served = () => Promise.all(services.map(({ url }) => servedAt(url)));
    const before = new X509Certificate(old.certificate).fingerprint256;
    expect(await served()).toEqual([before, before]);
    const items = of(/Webhook/).map((configuration) => ({
      ...configuration,
      webhooks: configuration.webhooks.map(({ clientConfig, ...webhook }: Manifest) => {
        const { url = '' } = services[configuration.kind.startsWith('Mutating') ? 0 : 1] ?? {};
        const path = clientConfig.service.path.replace(/[^/]*$/, 'token-put-by-kustomize');
        // 1.20 gives namespaces no label of their name; only one namespace has pods here.
        return {
          ...webhook,
          namespaceSelector: undefined,
          clientConfig: { url: `${url.replace('127.0.0.1', HOST)}${path}` },
        };
      }),
    }));
    writeFileSync(installed_webhooks, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    await apply(items);
    const said = async (name: string, spec: object = {}) =>
      (await create(pod('shop', name, spec), { isDryRun: true })).error;
    await vi.waitUntil(async () => (await said('first')) === '', { timeout: 240_000, interval: 500 });
    const answers = new Set<string>();
    let count = 0;
    let after = 0;
    // Until both have served with the next certificate for a while.
    for (const end = Date.now() + 900_000; after < 10 && Date.now() < end; count += 1) {
      const [good, bad] = await Promise.all([
        said(`good-${count}`),
        said(`bad-${count}`, { nodeName: 'n1' }),
      ]);
      answers.add(good);
      expect(bad).toContain('nodeName: ');
      await pause(100);
      after += (await served()).every((one) => one !== before) ? 1 : 0;
    }
    expect([...answers]).toEqual(['']);
    expect(after).toBe(10);
    console.info(`${count * 2} pods while the certificate changed`);
    const [first, second] = await served();
    const { data } = await secret();
    const held = holdCertificate(
      {
        certificate: decoded(data['tls.crt']),
        key: decoded(data['tls.key']),
        authorities: decoded(data['ca.crt']),
      },
      [HOST],
      Date.now(),
    );
    expect(held).toMatchObject({ fingerprint: first });
    expect(second).toBe(first);
    const conditions = async () =>
      ((await here().get('get', 'schedpol', 'restricted')) as Manifest).status?.conditions?.map(
        ({ type, status, reason }: Manifest) => `${type} ${status} ${reason}`,
      ) ?? [];
    await expect.poll(conditions, SETTLED).toContain('Enforced True Enforced');
    // In an emergency, or by mistake.
    await here().kubectl(['delete', 'validatingwebhookconfiguration', configurations]);
    await expect.poll(conditions, SETTLED).toContain('Enforced False NotAsked');
    expect(JSON.stringify(logger.lines)).not.toContain('PRIVATE KEY');
  });
});
