/** The manifests of etc/kubernetes agree with each other, with the image and with the policy service. */
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
/** Kubernetes has had them since 1.25 at the latest. */
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
const NAMESPACE_OF: Readonly<Record<string, string>> = {
  Service: NAMESPACE,
  Deployment: NAMESPACE,
  PodDisruptionBudget: NAMESPACE,
  RoleBinding: 'kube-system',
};

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
const dockerfile = readFileSync(projectFile('Dockerfile'), 'utf8');
const mountOf = (volume: string) =>
  container.volumeMounts.find((one: Manifest) => one.name === volume)?.mountPath;
/** Whether the container has this file, or this folder of a volume. */
const mounted = (path: string) =>
  pod.volumes.some(({ name, configMap, secret }: Manifest) => {
    const { files } = generated(configMap?.name ?? secret?.secretName);
    return (
      mountOf(name) === path ||
      files.some((file: string) => `${mountOf(name)}/${file.replace(/^.*\//, '')}` === path)
    );
  });

describe('the manifests of etc/kubernetes', () => {
  it('are all applied, and no other files are', () => {
    expect([...kustomization.resources].sort()).toEqual([...MANIFESTS].sort());
    const handedOver = kustomization.configMapGenerator
      .filter(({ name }: Manifest) => name !== 'webhook-token')
      .flatMap(({ files }: Manifest) => files);
    const own = ['kustomization.yaml', 'certificate.sh', 'certificate', '.gitignore'];
    const known = [...MANIFESTS, ...handedOver, ...own];
    expect(readdirSync(FOLDER).filter((name) => !known.includes(name))).toEqual([]);
    expect(handedOver.filter((name: string) => !readdirSync(FOLDER).includes(name))).toEqual([]);
  });

  it('have versions that Kubernetes knows, and namespaces where they need one, and occur once', () => {
    const ids = all.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { apiVersion, kind, metadata } of all) {
      expect(apiVersion, kind).toBe(VERSIONS[kind]);
      expect(metadata.namespace, `${kind} ${metadata.name}`).toBe(NAMESPACE_OF[kind]);
    }
    expect(only(all, 'Namespace').metadata.name).toBe(NAMESPACE);
    for (const { namespace } of [...kustomization.configMapGenerator, ...kustomization.secretGenerator]) {
      expect(namespace).toBe(NAMESPACE);
    }
    expect(kustomization.namespace, 'it would move the RoleBinding out of kube-system').toBeUndefined();
  });

  it('select the same pods everywhere', () => {
    const matchLabels = template.metadata.labels;
    expect(service.spec.selector).toEqual(matchLabels);
    const budget = only(all, 'PodDisruptionBudget');
    const spread = pod.topologySpreadConstraints.map(({ labelSelector }: Manifest) => labelSelector);
    for (const selector of [deployment.spec.selector, budget.spec.selector, ...spread]) {
      expect(selector).toEqual({ matchLabels });
    }
  });

  it('use the port of the image', () => {
    expect(container.ports).toEqual([
      { name: service.spec.ports[0].targetPort, containerPort: serviceOptions.parse({}).port },
    ]);
    expect(dockerfile).toContain(`EXPOSE ${container.ports[0].containerPort}\n`);
    expect(option('service', 'port') + option('service', 'host')).toBe('');
    // The operator names the image in kustomization.yaml.
    expect(kustomization.images.map(({ name }: Manifest) => name)).toEqual([container.image]);
  });
});

describe('the webhooks of etc/kubernetes', () => {
  it('call the service at its paths', () => {
    for (const { clientConfig } of webhooks) {
      expect(clientConfig.service).toMatchObject({
        name: service.metadata.name,
        namespace: service.metadata.namespace,
      });
      expect(clientConfig.service.port ?? 443).toBe(service.spec.ports[0].port);
    }
    const paths = webhooks.map(({ clientConfig }) => clientConfig.service.path);
    // kustomization.yaml replaces the last part by the token.
    const { admission, validation } = KUBERNETES_PATHS;
    expect(paths.map((path) => kubernetesPathOf(path))).toEqual(
      [admission, validation, validation, validation].map((path) => ({ path, token: 'token' })),
    );
  });

  it('are called for everything that puts a pod on a node, and for policies', () => {
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
      expect(webhook.name.split('.').length, 'Kubernetes requires three parts').toBeGreaterThanOrEqual(3);
    }
  });

  it('are not called for updates that change nothing that the service compares', () => {
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

  it('skip kube-system and their own namespace, so that the service can always start', () => {
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
      expect(objectSelector, 'everyone may change labels').toBeUndefined();
    }
  });

  it('wait longer than the service, and together less than the API server', () => {
    const seconds = webhooks.map(({ timeoutSeconds }) => timeoutSeconds);
    expect(Math.min(...seconds)).toBeGreaterThan(Number(option('service', 'deadline')));
    const [first = 0, second = 0] = seconds;
    expect(2 * first + second).toBeLessThan(30);
  });

  it('can only be installed with the authority of the certificate', () => {
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
  it('starts an existing command with existing files', () => {
    const [command, ...args] = container.args as string[];
    expect(command).toBe(serveCommand().name());
    const flags = serveCommand().options.map(({ long }) => long);
    expect(args.filter((argument) => argument.startsWith('-') && !flags.includes(argument))).toEqual([]);
    const paths = args.filter((argument) => argument.startsWith('/'));
    expect(paths).toHaveLength(1);
    expect(paths.filter((path) => !mounted(path))).toEqual([]);
  });

  it('mounts the files of the configuration at their paths', () => {
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

  it('gives the service the policies and roles that are applied to the cluster', () => {
    const { files } = generated('blazar-enforcement-policies');
    expect(files.filter((name: string) => !kustomization.resources.includes(name))).toEqual([]);
    const handedOver = manifests(...files);
    const read = (objects: Manifest[]) => objects.filter(({ kind }) => /Policy$|Role|Binding/.test(kind));
    expect(handedOver).toEqual(read(handedOver));
    expect(read(all)).toHaveLength(handedOver.length);
  });

  it('has probes at existing paths, over https', () => {
    const probes: Manifest[] = [container.startupProbe, container.readinessProbe, container.livenessProbe];
    expect(probes.map(({ httpGet }) => httpGet.path)).toEqual(['/readyz', '/healthz', '/healthz']);
    for (const { httpGet } of probes) {
      expect(OWN_PATHS).toContain(httpGet.path);
      expect(httpGet).toMatchObject({ port: container.ports[0].name, scheme: 'HTTPS' });
    }
  });

  it('has no rights that it does not need', () => {
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
    expect(dockerfile).toContain(`\nUSER ${runAsUser}:${runAsGroup}\n`);
    for (const volume of ['tls', 'tokens']) {
      const { secret } = pod.volumes.find(({ name }: Manifest) => name === volume);
      expect({ fsGroup, mode: secret.defaultMode }, 'it reads the key as its group').toEqual({
        fsGroup: runAsGroup,
        mode: 0o440,
      });
    }
  });

  it('always keeps one pod, and lets each finish', () => {
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
