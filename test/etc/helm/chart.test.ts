/** The chart of etc/helm, by the manifests that it renders to: `chart-rendering.proof.test.ts` keeps them up to date. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { parseIni } from '../../../src/config/text.ts';
import { kubernetesSection } from '../../../src/kubernetes/options.ts';
import { serviceSection } from '../../../src/server/configuration/options.ts';
import { KUBERNETES_PATHS, kubernetesPathOf, OWN_PATHS } from '../../../src/server/own-paths.ts';
import { PAGES } from '../../docs/markdown.ts';
import { projectFile } from '../../support/files.ts';
import { FOLDER, type Manifest, manifests, only } from '../kubernetes/manifests.ts';
import { grantedRights, rbacTable, sorted } from '../kubernetes/rbac-table.ts';
import { CHART, configurationOf, namesOf, objectsOf, RELEASES, rendered, valuesFile } from './chart.ts';

const read = (path: string) => readFileSync(path, 'utf8');
const chartFile = (...path: string[]) => read(join(CHART, ...path));
const values = parseYaml(chartFile('values.yaml'));
const sets = RELEASES.map((release) => ({
  ...release,
  objects: rendered(release),
  names: namesOf(release),
  own: parseYaml(read(valuesFile(release))),
}));
const COPIES: readonly (readonly [string, string])[] = [
  ['crds', 'custom-resource-definition.yaml'],
  ['files', 'mutating-webhook-configuration.yaml'],
  ['files', 'validating-webhook-configuration.yaml'],
  ['files', 'rules-webhook-configuration.yaml'],
  ['files', 'policies.yaml'],
  ['files', 'roles.yaml'],
];

describe('the chart of etc/helm', () => {
  const accepts = new Ajv({ strict: false }).compile(JSON.parse(chartFile('values.schema.json')));

  it.each(COPIES)('has %s/%s of etc/kubernetes', (folder, name) => {
    expect(chartFile(folder, name), `cp etc/kubernetes/${name} etc/helm/${folder}/`).toBe(
      read(join(FOLDER, name)),
    );
  });

  it('has no other copies, and the version of the package', () => {
    const there = ['crds', 'files'].flatMap((folder) =>
      readdirSync(join(CHART, folder)).map((name) => [folder, name]),
    );
    expect(there.sort()).toEqual(COPIES.map((copy) => [...copy]).sort());
    const { version } = JSON.parse(read(projectFile('package.json')));
    expect(parseYaml(chartFile('Chart.yaml'))).toMatchObject({ version, appVersion: version });
  });

  it('accepts its values and those of the releases here, and refuses others', () => {
    for (const good of [values, ...sets.map(({ own }) => own)]) {
      expect({ good: accepts(good), errors: accepts.errors }).toEqual({ good: true, errors: null });
    }
    const wrong: object[] = [
      { replica: 3 },
      { replicas: 0 },
      { replicas: '3' },
      { image: { digest: 'sha256:12' } },
      { webhooks: { failurePolicy: 'fail' } },
      { webhooks: { timeoutSeconds: 30 } },
      { webhooks: { exemptNamespaces: ['*'] } },
      { apiServer: { token: { value: 'short' } } },
      { apiServer: { token: { value: `${'a'.repeat(32)}/../x` } } },
      { serviceToken: `${'a'.repeat(32)}\nb` },
      { certificates: { mode: 'none' } },
      { configuration: { kubernetes: { audit: { a: 1 } } } },
      { configuration: { 'kubernetes]\n[service': {} } },
      { podDisruptionBudget: { minAvailable: 'half' } },
      { existingSecret: 'Passwords' },
      { extraEnv: [{ value: 'nameless' }] },
      { extraEnv: [{ name: 'OS_SERVICE__DEADLINE', value: 4 }] },
      { extraEnvFrom: [{ name: 'more' }] },
      { extraVolumes: [{ emptyDir: {} }] },
      { extraVolumes: [{ name: 'tls' }] },
      { extraVolumeMounts: [{ name: 'log' }] },
      { extraVolumeMounts: [{ name: 'log', mountPath: 'log' }] },
    ];
    expect(wrong.filter((one) => accepts(one))).toEqual([]);
  });

  it('accepts what the pages set', () => {
    const text = PAGES.flatMap(({ blocks }) => blocks.map((block) => block.text)).join('\n');
    const flags = [...text.matchAll(/--set (?:'([^']+)'|(\S+))/g)].map(
      ([, quoted, bare]) => quoted ?? bare ?? '',
    );
    expect(flags.length).toBeGreaterThan(2);
    for (const flag of flags) {
      const [path = '', value = ''] = flag.split('=');
      // Helm: {a} is a list of one, [] an empty one.
      const set = /^[{[]/.test(value) ? value.slice(1, -1).split(',').filter(Boolean) : value;
      const object = path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), set);
      expect({ flag, accepted: accepts(object) }).toEqual({ flag, accepted: true });
      const [, section, option = ''] = /^configuration\.(\w+)\.(\w+)$/.exec(path) ?? [];
      expect(section === 'kubernetes' && Object.keys(kubernetesSection.schema.shape)).toEqual(
        section === undefined ? false : expect.arrayContaining([option]),
      );
    }
  });
});

const isForWorkloads = (name: string) => name.startsWith('workloads.');
/** As the file says that it has to be with `workloads = refuse`. */
const refusing = (webhook: Manifest) => ({ ...webhook, failurePolicy: 'Fail', timeoutSeconds: 5 });

describe.each(sets)('the release $name in $namespace, with $set', (release) => {
  const { objects, names, namespace, kubeVersion, own } = release;
  const deployment = only(objects, 'Deployment');
  const { template } = deployment.spec;
  const pod = template.spec;
  const containers: Manifest[] = [...(pod.initContainers ?? []), ...pod.containers];
  const [main] = pod.containers;
  const service = only(objects, 'Service');
  const webhooks: Manifest[] = objects.flatMap(({ webhooks = [] }) => webhooks);
  const { 'policy-service.conf': text = '' } = configurationOf(objects);
  const { sections, problems } = parseIni(text, 'policy-service.conf');
  const option = (section: string, name: string) => sections.get(section)?.get(name)?.value;
  const mode = own.certificates?.mode ?? values.certificates.mode;
  const workloads: string = own.configuration?.kubernetes?.workloads ?? 'warn';
  const minor = Number(kubeVersion.split('.')[1]);

  it('names every object after itself', () => {
    const clusterWide = /^(Cluster|CustomResource|SchedulingPolicy$|MutatingW|ValidatingW)/;
    for (const { kind, metadata } of objects) {
      const isShared = metadata.name.startsWith('sp:') || kind === 'SchedulingPolicy';
      expect(metadata.labels, `${kind} ${metadata.name}`).toMatchObject({
        'app.kubernetes.io/instance': release.name,
        'app.kubernetes.io/managed-by': 'Helm',
      });
      if (isShared) {
        continue;
      }
      const expected = clusterWide.test(kind) ? { name: names.cluster } : { namespace };
      expect({ name: metadata.name, namespace: metadata.namespace }, kind).toMatchObject(expected);
      expect(metadata.name.startsWith(names.own)).toBe(true);
    }
    const ids = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace} ${metadata.name}`);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('has options that the service knows and accepts', () => {
    expect(problems).toEqual([]);
    const known: Record<string, typeof kubernetesSection.schema | typeof serviceSection.schema> = {
      service: serviceSection.schema,
      kubernetes: kubernetesSection.schema,
    };
    expect([...sections.keys()].sort()).toEqual(Object.keys(known).sort());
    for (const [name, options] of sections) {
      const shape = known[name]?.shape ?? {};
      expect([...options.keys()].filter((one) => !(one in shape))).toEqual([]);
    }
    expect(option('kubernetes', 'source')).toBe('cluster');
    for (const [section, chosen] of Object.entries<Record<string, unknown>>(own.configuration ?? {})) {
      for (const [name, value] of Object.entries(chosen)) {
        expect(option(section, name), name).toBe([value].flat().join(', '));
      }
    }
  });

  it('elects the writer of the status by a Lease of its own', () => {
    const leases = objects
      .flatMap(({ kind, rules }) => (kind === 'Role' ? (rules as Manifest[]) : []))
      .filter(({ resources, resourceNames }) => resources.includes('leases') && resourceNames);
    const lease = option('kubernetes', 'status_lease');
    expect(leases.map(({ resourceNames }) => resourceNames)).toEqual(lease === undefined ? [] : [[lease]]);
    expect(lease).toBe(option('kubernetes', 'write_status') === 'true' ? names.own : undefined);
  });

  it('finds its configuration, tokens and certificates where they are mounted', () => {
    const paths = [
      option('service', 'tokens_file'),
      option('kubernetes', 'tokens_file'),
      option('kubernetes', 'client_ca_file'),
      option('service', 'tls_cert_file'),
      option('service', 'tls_key_file'),
      option('service', 'decision_log'),
      ...containers.flatMap(({ args }) => args.filter((one: string) => one.startsWith('/'))),
    ].filter((path) => path !== undefined);
    const mounts: Manifest[] = main.volumeMounts;
    expect(paths.filter((path) => !mounts.some(({ mountPath }) => path.startsWith(`${mountPath}/`)))).toEqual(
      [],
    );
    const volumes: Manifest[] = pod.volumes;
    expect(mounts.map(({ name }) => name).sort()).toEqual(volumes.map(({ name }) => name).sort());
    const made = objects.filter(({ kind }) => /^(Secret|ConfigMap|Certificate)$/.test(kind));
    const there = made.map(({ spec, metadata }) => spec?.secretName ?? metadata.name);
    const needed = volumes.flatMap(({ secret }) => secret?.secretName ?? []);
    const given = [own.existingSecret, own.certificates?.secret?.name].filter(Boolean);
    expect(needed.filter((name) => !there.includes(name))).toEqual(given);
    for (const { secret } of volumes.filter((volume) => volume.secret)) {
      expect(secret.defaultMode).toBe(0o440);
    }
    if (mode === 'self') {
      const folder = option('kubernetes', 'certificate_folder');
      expect(option('service', 'tls_cert_file')).toBe(`${folder}/server.pem`);
      expect(mounts.find(({ subPath }) => subPath)).toMatchObject({ mountPath: folder, subPath: 'own' });
      expect(folder).toBe(`${pod.initContainers[0].volumeMounts.at(-1).mountPath}/own`);
    }
  });

  it('has webhooks that call its service, with the rules of etc/kubernetes', () => {
    const reference: Manifest[] = manifests(
      'mutating-webhook-configuration.yaml',
      'validating-webhook-configuration.yaml',
    )
      .flatMap((one) => one.webhooks)
      .filter(({ name }) => workloads !== 'ignore' || !isForWorkloads(name))
      .map((one) => (workloads === 'refuse' && isForWorkloads(one.name) ? refusing(one) : one));
    const token = own.apiServer.token.value;
    for (const [index, webhook] of webhooks.entries()) {
      const { clientConfig, name, namespaceSelector, failurePolicy, matchConditions, ...rest } = webhook;
      const expected = reference[index];
      const kept = Object.keys(rest).map((key) => [key, expected[key]]);
      expect(rest).toEqual(Object.fromEntries(kept));
      expect(clientConfig.service).toMatchObject({ name: service.metadata.name, namespace });
      const path = kubernetesPathOf(clientConfig.service.path);
      expect(Object.values(KUBERNETES_PATHS)).toContain(path?.path);
      expect(path?.token).toBe(token);
      expect(
        clientConfig.service.path.startsWith(
          expected.clientConfig.service.path.replace('/token-put-by-kustomize', ''),
        ),
      ).toBe(true);
      expect(name).toBe(`${expected.name.split('.')[0]}.${names.cluster}.scheduling.blazar-enforcement`);
      expect(name.length).toBeLessThan(254);
      expect(matchConditions).toEqual(minor >= 27 ? expected.matchConditions : undefined);
      if (expected.namespaceSelector === undefined) {
        expect({ namespaceSelector, failurePolicy }).toEqual({
          namespaceSelector: undefined,
          failurePolicy: expected.failurePolicy,
        });
      } else {
        const chosen = own.webhooks?.failurePolicy ?? 'Fail';
        expect(failurePolicy).toBe(expected.failurePolicy === 'Fail' ? chosen : expected.failurePolicy);
        const [{ key, operator, values: exempt }] = namespaceSelector.matchExpressions;
        expect({ key, operator }).toEqual({ key: 'kubernetes.io/metadata.name', operator: 'NotIn' });
        const always = [namespace, 'kube-system'];
        const further = own.webhooks?.exemptNamespaces ?? [];
        expect(exempt).toEqual([...new Set([...always, ...further])]);
      }
      expect(clientConfig.caBundle === undefined).toBe(mode !== 'secret');
    }
    expect(webhooks).toHaveLength(reference.length);
    const bundled = objects.filter(({ kind }) => kind.endsWith('WebhookConfiguration'));
    expect(objectsOf(configurationOf(objects)['webhooks.yaml'] ?? ''), 'to be compared').toEqual(bundled);
    expect(option('kubernetes', 'installed_webhooks')).toMatch(/\/configuration\/webhooks\.yaml$/);
    const injected = mode === 'certManager' ? `${namespace}/${names.own}` : undefined;
    for (const { metadata } of bundled) {
      expect(metadata.annotations?.['cert-manager.io/inject-ca-from']).toBe(injected);
    }
  });

  it('selects its own pods everywhere, and no others', () => {
    const selector = {
      'app.kubernetes.io/name': 'blazar-enforcement',
      'app.kubernetes.io/instance': release.name,
    };
    expect(template.metadata.labels).toMatchObject(selector);
    expect(service.spec.selector).toEqual(selector);
    const of = (kind: string) => objects.filter((one) => one.kind === kind);
    const matching = [
      deployment.spec.selector,
      ...pod.topologySpreadConstraints.map(({ labelSelector }: Manifest) => labelSelector),
      ...of('PodDisruptionBudget').map(({ spec }) => spec.selector),
      ...of('NetworkPolicy').map(({ spec }) => spec.podSelector),
      ...of('ServiceMonitor').map(({ spec }) => spec.selector),
    ];
    for (const one of matching) {
      expect(one).toEqual({ matchLabels: selector });
    }
    const admin = option('service', 'admin_port');
    expect(main.ports).toEqual([
      { name: 'https', containerPort: Number(option('service', 'port')) },
      ...(admin === undefined ? [] : [{ name: 'admin', containerPort: Number(admin) }]),
    ]);
    const ports: string[] = main.ports.map(({ name }: Manifest) => name);
    expect(service.spec.ports.map(({ targetPort }: Manifest) => targetPort)).toEqual(ports);
    for (const { spec } of of('NetworkPolicy')) {
      expect(spec.ingress[0].ports.map(({ port }: Manifest) => port)).toEqual(ports);
    }
    for (const { spec } of of('ServiceMonitor')) {
      expect(spec).toMatchObject({ jobLabel: 'app.kubernetes.io/name', endpoints: [{ port: ports.at(-1) }] });
    }
  });

  it('has the rights of the table, for its service account alone', () => {
    const { status = {}, rights = {} } = own;
    const isGranted: Readonly<Record<string, boolean>> = {
      always: true,
      'unless `rights.followRbac` is off': rights.followRbac !== false,
      'unless `status.enabled` is off': status.enabled !== false,
      'with `certificates.mode` self': mode === 'self',
    };
    const rows = rbacTable();
    expect(rows.map(({ granted }) => granted).filter((granted) => !(granted in isGranted))).toEqual([]);
    const expected = rows.filter(({ granted }) => isGranted[granted]).flatMap((row) => row.rights);
    const granted = [...grantedRights(objects, names.cluster), ...grantedRights(objects, names.own)];
    expect(sorted(granted)).toEqual(sorted(expected));
    const account = own.serviceAccount?.name ?? names.own;
    expect(pod).toMatchObject({ serviceAccountName: account, automountServiceAccountToken: true });
    const bindings = objects.filter(
      ({ kind, metadata }) => /Binding$/.test(kind) && !/^sp:/.test(metadata.name),
    );
    for (const { subjects, roleRef, metadata } of bindings) {
      expect(subjects).toEqual([{ kind: 'ServiceAccount', name: account, namespace }]);
      expect(roleRef.name).toBe(metadata.name);
    }
    expect(option('kubernetes', 'write_status')).toBe(String(status.enabled ?? true));
    expect(option('kubernetes', 'rights')).toBe(rights.followRbac === false ? 'every' : undefined);
  });

  it('runs containers that may do little', () => {
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    for (const { securityContext } of containers) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
    expect(pod.nodeSelector).toEqual({ 'kubernetes.io/os': 'linux' });
    expect(pod.priorityClassName).toBe(own.priorityClassName === '' ? undefined : 'system-cluster-critical');
  });

  it('has the probes and the ends of etc/kubernetes', () => {
    const [reference] = only(manifests('deployment.yaml'), 'Deployment').spec.template.spec.containers;
    for (const name of ['startupProbe', 'readinessProbe', 'livenessProbe', 'lifecycle']) {
      expect(main[name], name).toEqual(reference[name]);
    }
    expect(OWN_PATHS).toContain(main.startupProbe.httpGet.path);
    const host = own.configuration?.service?.host;
    const [sets, ...more] = host ? main.env : [undefined, ...(main.env ?? [])];
    expect(sets, 'before what the image has').toEqual(host && { name: 'OS_SERVICE__HOST', value: host });
    for (const { env = [], envFrom } of containers) {
      expect({ more, envFrom }).toEqual({ more: own.extraEnv ?? [], envFrom: own.extraEnvFrom });
      expect(env).toEqual(main.env ?? []);
    }
    const sleeps = Number(main.lifecycle.preStop.exec.command[1]);
    const grace = Number(option('service', 'shutdown_grace'));
    const deadline = Number(option('service', 'deadline'));
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(sleeps + grace);
    expect(grace).toBeGreaterThan(deadline);
    const waitedFor = webhooks.filter(({ name }) => workloads === 'refuse' || !isForWorkloads(name));
    expect(waitedFor.filter(({ timeoutSeconds }) => timeoutSeconds <= deadline)).toEqual([]);
  });

  it('creates policies before the webhooks that would ask for them', () => {
    const policies = objects.filter(({ kind }) => kind === 'SchedulingPolicy');
    expect(policies).toHaveLength(own.bootstrap?.policies === false ? 0 : 4);
    for (const { metadata } of policies) {
      expect(metadata.annotations['helm.sh/hook']).toBe('pre-install,pre-upgrade');
    }
    const roles = objects.filter(({ metadata }) => metadata.name.startsWith('sp:'));
    expect(roles).toHaveLength(own.bootstrap?.roles === false ? 0 : 4);
    for (const { metadata } of roles) {
      expect(metadata.labels['kubernetes.io/bootstrapping']).toBe('rbac-defaults');
      expect(metadata.annotations['helm.sh/resource-policy'], 'for other releases').toBe('keep');
    }
  });
});

describe('releases in different namespaces', () => {
  it('share no object, but the policies and roles of the proposal', () => {
    const ids = sets.map(({ objects }) =>
      objects
        .filter(({ kind, metadata }) => kind !== 'SchedulingPolicy' && !metadata.name.startsWith('sp:'))
        .map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''} ${metadata.name}`),
    );
    const all = ids.flat();
    expect(all.filter((id, index) => all.indexOf(id) !== index)).toEqual([]);
    const webhooks = sets.map(({ objects }) =>
      objects.flatMap(({ webhooks: list = [] }) => list.map(({ name }: Manifest) => name)),
    );
    const names = webhooks.flat();
    expect(new Set(names).size).toBe(names.length);
  });
});
