/** The manifests of `rendered` are what the chart renders to: with Helm where it is, else with the renderer in Go. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { temporaryFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { type Manifest, only } from '../kubernetes/manifests.ts';
import {
  configurationOf,
  helm,
  objectsOf,
  ownRenderer,
  RELEASES,
  type Release,
  type Renderer,
  rendered,
  renderedFile,
  valuesFile,
} from './chart.ts';

// RENDER=1 writes the files again.
const compiled = mkdtempSync(join(tmpdir(), 'blazar-enforcement-renderer-'));
afterAll(() => rmSync(compiled, { recursive: true }));
const own = ownRenderer(compiled);
const renderers: [string, Renderer][] = [];
const real = helm();
if (real !== undefined) {
  renderers.push(['Helm', real]);
}
if (own !== undefined) {
  renderers.push(['the renderer in Go', own]);
}
if (renderers.length === 0) {
  console.warn('neither helm nor Go with sprig is installed: etc/helm is NOT rendered here');
}

const [defaults] = RELEASES as [Release];
const values = (text: string) =>
  temporaryFile('values.yaml', `${readFileSync(valuesFile(defaults), 'utf8')}\n${text}`);

describe.skipIf(renderers.length === 0).each(renderers)('the chart, rendered by %s', (_, render) => {
  it.each(RELEASES)('is what `rendered` keeps of $set', (release) => {
    const { status, stdout, stderr } = render(release, valuesFile(release));
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    if (process.env.RENDER === '1') {
      const lines = objectsOf(stdout).map((object) => `${JSON.stringify(object)}\n`);
      writeFileSync(renderedFile(release), lines.join(''));
    }
    expect(inOrder(objectsOf(stdout))).toEqual(inOrder(rendered(release)));
  });

  it.each([
    [
      'an option that the chart sets',
      'configuration: {kubernetes: {source: files}}',
      'configuration.kubernetes.source',
    ],
    ['a port of its own', 'configuration: {service: {port: 9000}}', 'configuration.service.port'],
    [
      'an option with two lines',
      'configuration: {kubernetes: {audit: "a\\nsource = files"}}',
      'expected one line',
    ],
    [
      'a list with an item of two lines',
      'configuration: {kubernetes: {audit: ["a\\nb"]}}',
      'expected one line',
    ],
    [
      'a variable for an option that the chart sets',
      'extraEnv: [{name: OS_SERVICE__PORT, value: "9000"}]',
      'extraEnv: OS_SERVICE__PORT',
    ],
    ['nodes that are never drained', 'podDisruptionBudget: {minAvailable: 2}', 'minAvailable: expected less'],
    ['no service account', 'serviceAccount: {create: false}', 'serviceAccount.name is needed'],
    [
      'no Secret with a certificate',
      'certificates: {mode: secret}',
      'is needed if certificates.mode is secret',
    ],
  ])('refuses %s', (_what, text, reason) => {
    const { status, stderr } = render(defaults, values(text));
    expect(status).not.toBe(0);
    expect(stderr).toContain(reason);
  });

  it('refuses to let everybody ask', () => {
    const file = temporaryFile('values.yaml', 'apiServer: {token: {enabled: false}}');
    expect(render(defaults, file).stderr).toContain('expected token.enabled or clientCa');
  });

  it('asks for the changes that rules judge, where there are rules', () => {
    const objects = (more: object) =>
      objectsOf(render(defaults, temporaryFile('values.yaml', JSON.stringify(more))).stdout);
    const named = (more: object): string[] =>
      only(objects(more), 'ValidatingWebhookConfiguration').webhooks.map(({ name }: Manifest) => name);
    const without = named({});
    const rules = '  rules:\n  - {name: small, on: pod, allow: "gpus(pod) == 0.0", message: No.}\n';
    const rules_path = '/etc/blazar-enforcement/rules';
    for (const more of [{ rules }, { configuration: { kubernetes: { rules_path } } }]) {
      expect(named(more).slice(0, -1)).toEqual(without);
      expect(named(more).at(-1)).toMatch(/^rules\./);
    }
    const data = configurationOf(objects({ rules }));
    expect(data['rules.yaml']).toBe(rules);
    expect(data['policy-service.conf']).toContain(
      'rules_path = /etc/blazar-enforcement/configuration/rules.yaml\n',
    );
    const digest = (more: object) =>
      only(objects(more), 'Deployment').spec.template.metadata.annotations['checksum/configuration'];
    expect(digest({ rules })).not.toBe(digest({ rules: rules.replace('0.0', '1.0') }));
  });

  it('keeps a password of the configuration in a Secret', () => {
    const text = 'configuration: {ledger: {connection: "postgresql://user:hidden@db/ledger"}}';
    const objects = objectsOf(render(defaults, values(text)).stdout);
    const holders = objects.filter((one) => JSON.stringify(one).includes(':hidden@'));
    expect(holders.map(({ kind }) => kind)).toEqual(['Secret']);
  });

  it('shows Prometheus an authority that is there, also with a Secret of somebody else', () => {
    const authority = '-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n';
    const certificates = { mode: 'secret', secret: { name: 'mine', caBundle: authority } };
    const text = JSON.stringify({ certificates, serviceMonitor: { enabled: true } });
    const objects = objectsOf(render(defaults, temporaryFile('values.yaml', text)).stdout);
    const [{ tlsConfig }] = only(objects, 'ServiceMonitor').spec.endpoints;
    expect(tlsConfig.ca).toEqual({ secret: { name: 'blazar-enforcement-configuration', key: 'ca.crt' } });
    expect(configurationOf(objects)['ca.crt']).toBe(authority);
  });

  it('takes names that YAML would read as numbers or truths', () => {
    const named = (before: string) => {
      const given = {
        fullnameOverride: `${before}true`,
        nameOverride: `${before}12`,
        serviceAccount: { name: `${before}34` },
        priorityClassName: `${before}56`,
        image: { pullSecrets: [`${before}78`] },
        serviceMonitor: { enabled: true, interval: `${before}9` },
      };
      const odd = { ...defaults, name: `${before}007`, namespace: `${before}1e5` };
      const { stdout } = render(odd, values(stringify(given)));
      return JSON.stringify(objectsOf(stdout)).replaceAll(/checksum[^,}]*|zz|\\"/g, '');
    };
    expect(named('')).toBe(named('zz'));
  });

  it('lets the node of a single replica be drained', () => {
    const objects = objectsOf(render(defaults, values('replicas: 1')).stdout);
    expect(objects.map(({ kind }) => kind)).not.toContain('PodDisruptionBudget');
  });

  it('makes tokens of its own, the same in all objects', () => {
    const objects = objectsOf(render(defaults, temporaryFile('values.yaml', '{}')).stdout);
    const secret = objects.find(({ metadata }) => metadata.name.endsWith('-tokens'));
    const token = Buffer.from(secret.data['kubernetes-token'], 'base64').toString();
    expect(token).toMatch(/^[a-z0-9]{64}$/);
    expect(Buffer.from(secret.data['service-token'], 'base64').toString()).not.toBe(token);
    for (const kind of ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration']) {
      for (const { clientConfig } of only(objects, kind).webhooks) {
        expect(clientConfig.service.path.split('/').at(-1)).toBe(token);
      }
    }
  });
});

describe.skipIf(own === undefined)('the chart in a cluster where it finds objects', () => {
  const renderOwn = own as Renderer;

  it('keeps its tokens, policies that are there, and roles of other releases', () => {
    const token = 'kept'.repeat(8);
    const data = { 'kubernetes-token': Buffer.from(`${token}\n${'old'.repeat(11)}`).toString('base64') };
    const there = [
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'blazar-enforcement-tokens', namespace: 'blazar-enforcement' },
        data,
      },
      {
        apiVersion: 'scheduling.blazar-enforcement/v1alpha1',
        kind: 'SchedulingPolicy',
        metadata: { name: 'restricted' },
      },
      role('sp:restricted', 'blazar-enforcement', 'other'),
      role('sp:privileged', 'blazar-enforcement', 'blazar-enforcement'),
    ];
    const file = join(temporaryFolder(), 'objects.json');
    writeFileSync(file, JSON.stringify(there));
    const next = 'next'.repeat(8);
    const text = JSON.stringify({ apiServer: { token: { accepted: [next] } } });
    const objects = objectsOf(renderOwn(defaults, temporaryFile('values.yaml', text), file).stdout);
    expect(only(objects, 'MutatingWebhookConfiguration').webhooks[0].clientConfig.service.path).toMatch(
      new RegExp(`/${token}$`),
    );
    const tokens = objects.find(({ metadata }) => metadata.name.endsWith('-tokens'));
    expect(Buffer.from(tokens.data['kubernetes-token'], 'base64').toString()).toBe(`${token}\n${next}`);
    const named = (kind: string) =>
      objects.filter((one) => one.kind === kind).map(({ metadata }) => metadata.name);
    expect(named('SchedulingPolicy')).not.toContain('restricted');
    expect(named('SchedulingPolicy')).toContain('privileged');
    expect(named('ClusterRole')).not.toContain('sp:restricted');
    expect(named('ClusterRole')).toContain('sp:privileged');
  });

  it('renders numbers alike, however a version of Helm reads them', () => {
    process.env.NUMBERS = 'text';
    try {
      for (const release of RELEASES) {
        const { stdout } = renderOwn(release, valuesFile(release));
        expect(objectsOf(stdout)).toEqual(rendered(release));
      }
    } finally {
      delete process.env.NUMBERS;
    }
  });
});

function role(name: string, release: string, namespace: string): object {
  const annotations = { 'meta.helm.sh/release-name': release, 'meta.helm.sh/release-namespace': namespace };
  return { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name, annotations } };
}

/** Helm sorts objects by kind. */
function inOrder(objects: readonly Manifest[]): Manifest[] {
  const id = ({ kind, metadata }: Manifest) => `${kind} ${metadata.namespace ?? ''} ${metadata.name}`;
  return [...objects].sort((one, other) => id(one).localeCompare(id(other)));
}
