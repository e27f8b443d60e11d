/** The manifests of etc/kubernetes: what they say of each other, of the image and of the policy service is so. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { serveCommand } from '../../../src/cli/serve.ts';
import { parseIni } from '../../../src/config/ini.ts';
import { SCHEDULERS } from '../../../src/kubernetes/cluster.ts';
import { SCHEDULING_FIELDS } from '../../../src/kubernetes/pod-admission.ts';
import { serviceOptions } from '../../../src/server/options.ts';
import { KUBERNETES_PATHS, kubernetesPathOf, OWN_PATHS } from '../../../src/server/own-paths.ts';
import { projectFile } from '../../support/files.ts';
import { FOLDER, MANIFESTS, type Manifest, manifests, only, parse } from './manifests.ts';

const NAMESPACE = 'blazar-enforcement';
const CONFIGURATION = 'policy-service.conf';
/** As Kubernetes has them since 1.25 at the latest. */
const VERSIONS: Readonly<Record<string, string>> = {
  Namespace: 'v1',
  Service: 'v1',
  Deployment: 'apps/v1',
  PodDisruptionBudget: 'policy/v1',
  ClusterRole: 'rbac.authorization.k8s.io/v1',
  ClusterRoleBinding: 'rbac.authorization.k8s.io/v1',
  RoleBinding: 'rbac.authorization.k8s.io/v1',
  CustomResourceDefinition: 'apiextensions.k8s.io/v1',
  SchedulingPolicy: 'scheduling.blazar-enforcement/v1alpha1',
  MutatingWebhookConfiguration: 'admissionregistration.k8s.io/v1',
  ValidatingWebhookConfiguration: 'admissionregistration.k8s.io/v1',
};
const NAMESPACED = ['Service', 'Deployment', 'PodDisruptionBudget', 'RoleBinding'];

const all = manifests();
const [kustomization] = parse(readFileSync(join(FOLDER, 'kustomization.yaml'), 'utf8'));
const service = only(all, 'Service');
const deployment = only(all, 'Deployment');
const template = deployment.spec.template;
const pod = template.spec;
const [container] = pod.containers;
const mutating = only(all, 'MutatingWebhookConfiguration');
const validating = only(all, 'ValidatingWebhookConfiguration');
const webhooks: Manifest[] = [...mutating.webhooks, ...validating.webhooks];
const policies = validating.webhooks[2];
const { sections } = parseIni(readFileSync(join(FOLDER, CONFIGURATION), 'utf8'), CONFIGURATION);
const option = (section: string, name: string) => sections.get(section)?.get(name)?.value ?? '';
const generated = (name: string): Manifest =>
  [...kustomization.configMapGenerator, ...kustomization.secretGenerator].find((one) => one.name === name);
const mountOf = (volume: string) =>
  container.volumeMounts.find((one: Manifest) => one.name === volume)?.mountPath;
/** Where a file is in the container; of a folder, that of a volume. */
const mounted = (path: string) =>
  pod.volumes.some(({ name, configMap, secret }: Manifest) => {
    const { files } = generated(configMap?.name ?? secret?.secretName);
    return (
      mountOf(name) === path ||
      files.some((file: string) => `${mountOf(name)}/${file.replace(/^.*\//, '')}` === path)
    );
  });

describe('the manifests of etc/kubernetes', () => {
  it('are all applied, and nothing else is', () => {
    expect([...kustomization.resources].sort()).toEqual([...MANIFESTS].sort());
    const handedOver = kustomization.configMapGenerator
      .filter(({ name }: Manifest) => name !== 'webhook-token')
      .flatMap(({ files }: Manifest) => files);
    const own = ['kustomization.yaml', 'certificate.sh', 'certificate', '.gitignore'];
    const known = [...MANIFESTS, ...handedOver, ...own];
    expect(readdirSync(FOLDER).filter((name) => !known.includes(name))).toEqual([]);
    expect(handedOver.filter((name: string) => !readdirSync(FOLDER).includes(name))).toEqual([]);
  });

  it('are of versions that Kubernetes has, each once, in a namespace where they need one', () => {
    const ids = all.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { apiVersion, kind, metadata } of all) {
      expect(apiVersion, kind).toBe(VERSIONS[kind]);
      const expected = NAMESPACED.includes(kind)
        ? kind === 'RoleBinding'
          ? 'kube-system'
          : NAMESPACE
        : undefined;
      expect(metadata.namespace, `${kind} ${metadata.name}`).toBe(expected);
    }
    expect(only(all, 'Namespace').metadata.name).toBe(NAMESPACE);
    for (const { namespace } of [...kustomization.configMapGenerator, ...kustomization.secretGenerator]) {
      expect(namespace).toBe(NAMESPACE);
    }
    expect(kustomization.namespace, 'it would move the RoleBinding out of kube-system').toBeUndefined();
  });

  it('select the same pods everywhere', () => {
    const labels = template.metadata.labels;
    expect(deployment.spec.selector).toEqual({ matchLabels: labels });
    expect(service.spec.selector).toEqual(labels);
    expect(only(all, 'PodDisruptionBudget').spec.selector).toEqual({ matchLabels: labels });
    for (const { labelSelector } of pod.topologySpreadConstraints) {
      expect(labelSelector).toEqual({ matchLabels: labels });
    }
  });

  it('find the port on which the image listens', () => {
    expect(container.ports).toEqual([
      { name: service.spec.ports[0].targetPort, containerPort: serviceOptions.parse({}).port },
    ]);
    const dockerfile = readFileSync(projectFile('Dockerfile'), 'utf8');
    expect(dockerfile).toContain(`EXPOSE ${container.ports[0].containerPort}\n`);
    expect(option('service', 'port') + option('service', 'host')).toBe('');
  });

  it('name an image that the operator replaces', () => {
    expect(kustomization.images.map(({ name }: Manifest) => name)).toEqual([container.image]);
  });
});

describe('the webhooks of etc/kubernetes', () => {
  it('ask the service at the paths that it has', () => {
    for (const { clientConfig } of webhooks) {
      expect(clientConfig.service).toMatchObject({
        name: service.metadata.name,
        namespace: service.metadata.namespace,
      });
      expect(clientConfig.service.port ?? 443).toBe(service.spec.ports[0].port);
    }
    const paths = webhooks.map(({ clientConfig }) => clientConfig.service.path);
    // The last part is where kustomization.yaml puts the token.
    const { admission, validation } = KUBERNETES_PATHS;
    expect(paths.map((path) => kubernetesPathOf(path))).toEqual(
      [admission, validation, validation, validation].map((path) => ({ path, token: 'token' })),
    );
  });

  it('are asked about all that puts a pod on a node, and about policies', () => {
    const of = (resources: string[], operations: string[], apiGroups = ['']) => [
      { apiGroups, apiVersions: ['v1'], operations, resources, scope: 'Namespaced' },
    ];
    const both = ['CREATE', 'UPDATE'];
    const daemonSets = of(['daemonsets'], both, ['apps']);
    expect(mutating.webhooks).toHaveLength(1);
    expect(mutating.webhooks[0]).toMatchObject({
      rules: [...of(['pods'], ['CREATE']), ...daemonSets],
      reinvocationPolicy: 'IfNeeded',
    });
    expect(validating.webhooks.map(({ rules }: Manifest) => rules)).toEqual([
      [...of(['pods'], both), ...daemonSets],
      of(['pods/binding', 'bindings'], ['CREATE']),
      [
        {
          apiGroups: ['scheduling.blazar-enforcement'],
          apiVersions: ['v1alpha1'],
          operations: both,
          resources: ['schedulingpolicies'],
          scope: 'Cluster',
        },
      ],
    ]);
    for (const webhook of webhooks) {
      expect(webhook).toMatchObject({
        failurePolicy: 'Fail',
        matchPolicy: 'Equivalent',
        sideEffects: webhook === policies ? 'None' : 'NoneOnDryRun',
        admissionReviewVersions: ['v1'],
      });
      expect(webhook.name.split('.').length, 'Kubernetes wants three parts').toBeGreaterThanOrEqual(3);
    }
  });

  it('leave alone the updates that change nothing that the service compares', () => {
    const [{ name, expression }] = validating.webhooks[0].matchConditions;
    expect(name).toBe('can-move-a-pod');
    const empty: Readonly<Record<string, string>> = {
      nodeSelector: '{}',
      affinity: '{}',
      tolerations: '[]',
      topologySpreadConstraints: '[]',
    };
    const changes = SCHEDULING_FIELDS.map((field) => {
      const of = (object: string) =>
        `(has(${object}.spec.${field}) ? ${object}.spec.${field} : ${empty[field] ?? "''"})`;
      return `${of('object')} != ${of('oldObject')}`;
    });
    const always = ["request.operation != 'UPDATE'", "request.resource.resource != 'pods'"];
    expect(expression).toBe([...always, ...changes].join(' || '));
    expect(mutating.webhooks[0].matchConditions, 'it sees no updates of pods').toBeUndefined();
    const [{ expression: bindings }] = validating.webhooks[1].matchConditions;
    expect(SCHEDULERS.map((user) => `request.userInfo.username != '${user}'`)).toEqual([bindings]);
  });

  it('leave out their own namespace, so that the service can always be started, and kube-system', () => {
    for (const { namespaceSelector, objectSelector } of webhooks.filter((one) => one !== policies)) {
      expect(namespaceSelector).toEqual({
        matchExpressions: [
          {
            key: 'kubernetes.io/metadata.name',
            operator: 'NotIn',
            values: [deployment.metadata.namespace, 'kube-system'],
          },
        ],
      });
      expect(objectSelector, 'labels are for everybody to write').toBeUndefined();
    }
  });

  it('wait longer than the service takes, and together not as long as the API server has', () => {
    const seconds = webhooks.map(({ timeoutSeconds }) => timeoutSeconds);
    expect(Math.min(...seconds)).toBeGreaterThan(Number(option('service', 'deadline')));
    const [first = 0, second = 0] = seconds;
    expect(2 * first + second).toBeLessThan(30);
  });

  it('can only be installed with the authority that vouches for the service', () => {
    for (const { clientConfig } of webhooks) {
      // Not base64: without kustomization.yaml the API server refuses it.
      expect(clientConfig.caBundle).toMatch(/[^A-Za-z0-9+/=]/);
    }
    const { source, targets } = kustomization.replacements.find(
      (one: Manifest) => one.source.kind === 'Secret',
    );
    const secret = kustomization.secretGenerator[0];
    expect(source).toEqual({ kind: 'Secret', name: secret.name, fieldPath: 'data.[ca.crt]' });
    expect(secret.files).toContain('certificate/ca.crt');
    expect(targets.map(({ select }: Manifest) => select.kind)).toEqual([mutating.kind, validating.kind]);
    for (const { fieldPaths } of targets) {
      expect(fieldPaths).toEqual(['webhooks.*.clientConfig.caBundle']);
    }
  });
});

describe('the deployment of etc/kubernetes', () => {
  it('starts a command that there is, with files that are there', () => {
    const [command, ...args] = container.args as string[];
    expect(command).toBe(serveCommand().name());
    const flags = serveCommand().options.map(({ long }) => long);
    expect(args.filter((argument) => argument.startsWith('-') && !flags.includes(argument))).toEqual([]);
    const paths = args.filter((argument) => argument.startsWith('/'));
    expect(paths).toHaveLength(1);
    expect(paths.filter((path) => !mounted(path))).toEqual([]);
  });

  it('mounts what the configuration names, where it says', () => {
    const named = [
      option('service', 'tls_cert_file'),
      option('service', 'tls_key_file'),
      option('service', 'tokens_file'),
      option('kubernetes', 'tokens_file'),
      option('kubernetes', 'scheduling_policies'),
    ];
    expect(named.filter((path) => !mounted(path))).toEqual([]);
    expect(mountOf('policies')).toBe(option('kubernetes', 'scheduling_policies'));
    const mounts: Manifest[] = container.volumeMounts;
    expect(mounts.map(({ name }) => name).sort()).toEqual(
      pod.volumes.map(({ name }: Manifest) => name).sort(),
    );
    expect(mounts.filter(({ readOnly, subPath }) => readOnly !== true || subPath !== undefined)).toEqual([]);
  });

  it('hands the service the policies and roles that are applied to the cluster', () => {
    const { files } = generated('blazar-enforcement-policies');
    expect(files.filter((name: string) => !kustomization.resources.includes(name))).toEqual([]);
    const handedOver = manifests(...files);
    const read = (objects: Manifest[]) => objects.filter(({ kind }) => /Policy$|Role|Binding/.test(kind));
    expect(handedOver).toEqual(read(handedOver));
    expect(read(all)).toHaveLength(handedOver.length);
  });

  it('is looked after at paths that there are, over https', () => {
    const probes: Manifest[] = [container.startupProbe, container.readinessProbe, container.livenessProbe];
    expect(probes.map(({ httpGet }) => httpGet.path)).toEqual(['/readyz', '/healthz', '/healthz']);
    for (const { httpGet } of probes) {
      expect(OWN_PATHS).toContain(httpGet.path);
      expect(httpGet).toMatchObject({ port: container.ports[0].name, scheme: 'HTTPS' });
    }
  });

  it('may do nothing that it needs not', () => {
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    const { runAsUser, runAsGroup, fsGroup } = pod.securityContext;
    const dockerfile = readFileSync(projectFile('Dockerfile'), 'utf8');
    expect(dockerfile).toContain(`\nUSER ${runAsUser}:${runAsGroup}\n`);
    for (const volume of ['tls', 'tokens']) {
      const { secret } = pod.volumes.find(({ name }: Manifest) => name === volume);
      expect({ fsGroup, mode: secret.defaultMode }, 'it reads the key as its group').toEqual({
        fsGroup: runAsGroup,
        mode: 0o440,
      });
    }
  });

  it('always leaves one to answer, and lets each end in peace', () => {
    const { replicas, strategy } = deployment.spec;
    const { minAvailable } = only(all, 'PodDisruptionBudget').spec;
    expect(replicas).toBeGreaterThan(minAvailable);
    expect(minAvailable).toBeGreaterThan(0);
    expect(strategy.rollingUpdate.maxUnavailable).toBe(0);
    const [command, seconds] = container.lifecycle.preStop.exec.command;
    expect(command).toBe('sleep');
    const grace = Number(option('service', 'shutdown_grace'));
    expect(grace).toBeGreaterThan(Number(option('service', 'deadline')));
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(Number(seconds) + grace);
  });
});
