/** The manifests of etc/kubernetes agree with each other, with the image and with the policy service. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { evaluate } from '@marcbachmann/cel-js';
import { describe, expect, it } from 'vitest';
import { serveCommand } from '../../../src/cli/serve.ts';
import { parseIni } from '../../../src/config/text.ts';
import { SCHEDULING_FIELDS } from '../../../src/kubernetes/admission/pod-admission.ts';
import { POD_KINDS, WORKLOAD_KINDS, workloadKindOf } from '../../../src/kubernetes/admission/pod-kinds.ts';
import { SCHEDULERS } from '../../../src/kubernetes/policies/cluster-settings.ts';
import { serviceOptions } from '../../../src/server/configuration/options.ts';
import { KUBERNETES_PATHS, kubernetesPathOf } from '../../../src/server/own-paths.ts';
import { projectFile } from '../../support/files.ts';
import { FOLDER, MANIFESTS, type Manifest, manifests, only, parse, RULES_MANIFEST } from './manifests.ts';

const NAMESPACE = 'blazar-enforcement';
const CONFIGURATION = 'policy-service.conf';
/** Kubernetes has had them since 1.25 at the latest. */
const VERSIONS: Readonly<Record<string, string>> = {
  Namespace: 'v1',
  Service: 'v1',
  Deployment: 'apps/v1',
  PodDisruptionBudget: 'policy/v1',
  ServiceAccount: 'v1',
  ClusterRole: 'rbac.authorization.k8s.io/v1',
  ClusterRoleBinding: 'rbac.authorization.k8s.io/v1',
  Role: 'rbac.authorization.k8s.io/v1',
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
  ServiceAccount: NAMESPACE,
  Role: NAMESPACE,
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
const policies: Manifest[] = [mutating.webhooks[1], validating.webhooks[2]];
/** It warns; the others refuse. */
const workloads = validating.webhooks[3];
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
    const own = ['kustomization.yaml', RULES_MANIFEST, 'certificate.sh', 'certificate'];
    const known = [...MANIFESTS, ...handedOver, ...own];
    expect(readdirSync(FOLDER).filter((name) => !known.includes(name))).toEqual([]);
    expect(handedOver.filter((name: string) => !readdirSync(FOLDER).includes(name))).toEqual([]);
  });

  it('have versions that Kubernetes knows, and namespaces where they need one, and occur once', () => {
    const ids = all.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { apiVersion, kind, metadata } of all) {
      expect(apiVersion, kind).toBe(VERSIONS[kind]);
      const expected =
        kind !== 'RoleBinding' ? NAMESPACE_OF[kind] : metadata.name === NAMESPACE ? NAMESPACE : 'kube-system';
      expect(metadata.namespace, `${kind} ${metadata.name}`).toBe(expected);
    }
    expect(only(all, 'Namespace').metadata.name).toBe(NAMESPACE);
    for (const { namespace } of [...kustomization.configMapGenerator, ...kustomization.secretGenerator]) {
      expect(namespace).toBe(NAMESPACE);
    }
    expect(kustomization.namespace, 'it would move the RoleBinding out of kube-system').toBeUndefined();
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
      [admission, admission, validation, validation, validation, validation].map((path) => ({
        path,
        token: 'token-put-by-kustomize',
      })),
    );
  });

  it('are called for everything that puts a pod on a node, and for policies', () => {
    const of = (resources: string[], operations: string[], apiGroups = ['']) => [
      { apiGroups, apiVersions: ['v1'], operations, resources, scope: 'Namespaced' },
    ];
    const both = ['CREATE', 'UPDATE'];
    const daemonSets = of(['daemonsets'], both, ['apps']);
    expect(mutating.webhooks).toHaveLength(2);
    expect(mutating.webhooks[1]).toMatchObject({ rules: validating.webhooks[2].rules });
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
      [
        ...of(['deployments', 'replicasets', 'statefulsets'], both, ['apps']),
        { ...of(['jobs', 'cronjobs'], both, ['batch'])[0], apiVersions: ['v1', 'v1beta1'] },
        ...of(['replicationcontrollers'], both),
      ],
    ]);
    const asked: Manifest[] = workloads.rules;
    const kinds = asked.flatMap(({ apiGroups, resources }) =>
      resources.map((resource: string) => workloadKindOf(apiGroups[0], resource)),
    );
    expect(kinds.sort()).toEqual([...WORKLOAD_KINDS].sort());
    for (const webhook of webhooks) {
      expect(webhook).toMatchObject({
        failurePolicy: webhook === workloads ? 'Ignore' : 'Fail',
        matchPolicy: 'Equivalent',
        sideEffects: policies.includes(webhook) ? 'None' : 'NoneOnDryRun',
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
    const [{ expression: bindings }] = validating.webhooks[1].matchConditions;
    expect(SCHEDULERS.map((user) => `request.userInfo.username != '${user}'`)).toEqual([bindings]);
  });

  it('are not called for updates of DaemonSets that leave their template as it is', () => {
    const daemonSet = (image: string, metadata: object = {}) => ({ metadata, spec: { template: { image } } });
    const isAsked = ([webhook]: Manifest[], object: object) =>
      webhook.matchConditions.every(({ expression }: Manifest) =>
        evaluate(expression, {
          request: { operation: 'UPDATE', resource: { resource: 'daemonsets' } },
          object,
          oldObject: daemonSet('x', { finalizers: ['foregroundDeletion'] }),
        }),
      );
    for (const { webhooks } of [mutating, validating]) {
      expect(isAsked(webhooks, daemonSet('x'))).toBe(false);
      expect(isAsked(webhooks, daemonSet('y'))).toBe(true);
    }
  });

  it('are called for what rules judge and policies do not, if that file is applied', () => {
    const [configuration] = manifests(RULES_MANIFEST);
    const [webhook] = configuration.webhooks;
    const [validation] = validating.webhooks;
    const { name, rules, matchConditions, ...rest } = webhook;
    const { name: _name, rules: _rules, matchConditions: _conditions, ...asValidation } = validation;
    expect(rest).toEqual(asValidation);
    expect(rules).toEqual([
      {
        apiGroups: [''],
        apiVersions: ['v1'],
        operations: ['UPDATE'],
        scope: 'Namespaced',
        resources: ['pods', 'pods/ephemeralcontainers', 'pods/resize'],
      },
    ]);
    const [{ expression }] = matchConditions;
    const isAsked = (metadata: object, spec: object = {}) =>
      evaluate(expression, { object: { metadata, spec }, oldObject: { metadata: {}, spec: {} } });
    expect(isAsked({ finalizers: ['a'], ownerReferences: [{}], resourceVersion: '2', labels: {} })).toBe(
      false,
    );
    expect(isAsked({ labels: { a: 'b' } })).toBe(true);
    expect(isAsked({ annotations: { a: 'b' } })).toBe(true);
    expect(isAsked({}, { ephemeralContainers: [{ name: 'debugger' }] })).toBe(true);
    expect(kustomization.resources).not.toContain(RULES_MANIFEST);
    expect(readFileSync(join(FOLDER, 'kustomization.yaml'), 'utf8')).toContain(`\n  # - ${RULES_MANIFEST}\n`);
  });

  it('are not called for workloads that another object controls, or whose template stays the same', () => {
    const conditions: Manifest[] = workloads.matchConditions;
    const isAsked = (resource: string, operation: string, object: object, oldObject: object | null) =>
      conditions.every(
        ({ expression }) =>
          evaluate(expression, { request: { operation, resource: { resource } }, object, oldObject }) ===
          true,
      );
    for (const kind of WORKLOAD_KINDS) {
      const { resource = '' } = POD_KINDS[kind] ?? {};
      const object = (image: string, metadata: object = {}, replicas = 1) => {
        const template = { spec: { containers: [{ image }] } };
        const spec = kind === 'CronJob' ? { jobTemplate: { spec: { template } } } : { replicas, template };
        return { metadata, spec };
      };
      const owner = (controller?: boolean) => ({ ownerReferences: [{ name: 'x' }, { controller }] });
      const updated = (...[image, ...more]: Parameters<typeof object>) =>
        isAsked(resource, 'UPDATE', object(image, ...more), object('x'));
      expect(isAsked(resource, 'CREATE', object('x'), null), kind).toBe(true);
      expect(isAsked(resource, 'CREATE', object('x', owner(false)), null), kind).toBe(true);
      expect(isAsked(resource, 'CREATE', object('x', owner(true)), null), kind).toBe(false);
      expect(updated('y'), kind).toBe(true);
      expect(updated('y', owner(true)), kind).toBe(false);
      expect(updated('x', { labels: { a: 'b' } }, 2), kind).toBe(false);
    }
  });

  it('skip kube-system and their own namespace, so that the service can always start', () => {
    for (const { namespaceSelector, objectSelector } of webhooks.filter((one) => !policies.includes(one))) {
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
    const seconds = webhooks.filter((one) => one !== workloads).map(({ timeoutSeconds }) => timeoutSeconds);
    expect(Math.min(...seconds)).toBeGreaterThan(Number(option('service', 'deadline')));
    const [first, second] = [mutating, validating].map((one) => one.webhooks[0].timeoutSeconds);
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
      option('kubernetes', 'installed_webhooks'),
      // To be compared with the ones of the cluster.
      ...MANIFESTS.filter((name) => name.endsWith('-webhook-configuration.yaml')).map(
        (name) => `${option('kubernetes', 'installed_webhooks')}/${name}`,
      ),
    ];
    expect(named.filter((path) => !mounted(path))).toEqual([]);
    const mounts: Manifest[] = container.volumeMounts;
    expect(mounts.map(({ name }) => name).sort()).toEqual(
      pod.volumes.map(({ name }: Manifest) => name).sort(),
    );
    expect(mounts.filter(({ readOnly, subPath }) => readOnly !== true || subPath !== undefined)).toEqual([]);
  });

  it('lets the service follow the cluster as its service account', () => {
    expect(option('kubernetes', 'source')).toBe('cluster');
    expect(option('kubernetes', 'kubeconfig')).toBe('');
    const { metadata, automountServiceAccountToken } = only(all, 'ServiceAccount');
    expect(automountServiceAccountToken, 'no other pod gets a token by chance').toBe(false);
    expect(pod).toMatchObject({
      serviceAccountName: metadata.name,
      automountServiceAccountToken: true,
    });
  });

  it('has no rights that it does not need', () => {
    expect(pod).toMatchObject({
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
