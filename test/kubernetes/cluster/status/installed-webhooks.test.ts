import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ApiError } from '../../../../src/kubernetes/cluster/api/contract.ts';
import { watchWebhooks } from '../../../../src/kubernetes/cluster/status/installed-webhooks.ts';
import { FOLDER, type Manifest, manifests } from '../../../etc/kubernetes/manifests.ts';
import { recordingLogger } from '../../../support/logger.ts';
import { ClusterDouble } from './cluster-double.ts';

const FILES = ['mutating-webhook-configuration.yaml', 'validating-webhook-configuration.yaml'];
const paths = FILES.map((name) => join(FOLDER, name));
const at = (kind: string) =>
  `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}s/blazar-enforcement`;

/** Webhooks as an API server has them, and the first two looks at them. */
function watched(edit: (webhooks: Readonly<Record<string, Manifest>>) => void = () => {}) {
  const double = new ClusterDouble();
  const objects = manifests(...FILES);
  // What an API server adds, and what kustomize puts.
  for (const webhook of objects.flatMap(({ webhooks }) => webhooks)) {
    Object.assign(webhook, { objectSelector: {}, namespaceSelector: webhook.namespaceSelector ?? {} });
    webhook.clientConfig.service.path += '-a-token';
    webhook.clientConfig.caBundle = 'YQ==';
  }
  const named = objects.flatMap(({ webhooks }) => webhooks).map((one) => [one.name.split('.')[0], one]);
  edit(Object.fromEntries(named));
  for (const { kind, ...object } of objects) {
    double.put(at(kind), object);
  }
  const looks: (readonly string[])[] = [];
  const looked = (notAsked: readonly string[]) => void looks.push(notAsked);
  const logger = recordingLogger();
  const closing = new AbortController();
  const options = { client: double.client(), paths, looked, logger, signal: closing.signal, intervalMs: 1 };
  const watching = watchWebhooks(options);
  onTestFinished(async () => {
    closing.abort();
    await watching;
  });
  return { double, looks, logger };
}

describe('installed webhooks', () => {
  it.for<[string, (webhooks: Readonly<Record<string, Manifest>>) => void, ...string[]]>([
    ['that are as they were', () => {}],
    [
      'that ask about more',
      ({ validation, workloads }) => {
        Object.assign(validation, { matchConditions: undefined, namespaceSelector: {}, timeoutSeconds: 10 });
        workloads.failurePolicy = 'Fail';
      },
    ],
    [
      'that let pods through while the service is away',
      ({ admission }) => {
        admission.failurePolicy = 'Ignore';
      },
      'admission.scheduling.blazar-enforcement: failurePolicy is "Ignore"',
    ],
    [
      'without updates, or without subresources',
      ({ validation, binding }) => {
        validation.rules[0].operations = ['CREATE'];
        binding.rules[0].resources = ['bindings'];
      },
      'validation.scheduling.blazar-enforcement: rules is [{',
      'binding.scheduling.blazar-enforcement: rules is',
    ],
    [
      'of a namespace more that is left out',
      ({ validation }) => validation.namespaceSelector.matchExpressions[0].values.push('research'),
      'namespaceSelector is {"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["blazar-enforcement","kube-system","research"]}]}',
    ],
    [
      'of pods with a label',
      ({ validation }) => {
        validation.objectSelector = { matchLabels: { judged: 'yes' } };
      },
      'objectSelector is {"matchLabels":{"judged":"yes"}}',
    ],
    [
      'with another condition, or a changed one',
      ({ admission, binding }) => {
        admission.matchConditions.push({ name: 'never', expression: 'false' });
        binding.matchConditions[0].expression = 'false';
      },
      'admission.scheduling.blazar-enforcement: matchConditions is',
      'binding.scheduling.blazar-enforcement: matchConditions is [{"name":"not-by-the-scheduler-of-kubernetes","expression":"false"}]',
    ],
    [
      'with less time, fewer versions, and another service',
      ({ validation, binding }) => {
        validation.timeoutSeconds = 1;
        validation.matchPolicy = 'Exact';
        binding.clientConfig = { url: 'https://example.org/kubernetes/validation/a-token' };
      },
      'matchPolicy is "Exact"',
      'timeoutSeconds is 1',
      'clientConfig is "a URL"',
    ],
    [
      'of which one is gone',
      ({ policies }) => {
        policies.name = 'others.example.org';
      },
      'ValidatingWebhookConfiguration blazar-enforcement: policies.scheduling.blazar-enforcement is missing',
    ],
  ])('%s', async ([, edit, ...expected]) => {
    const { looks } = watched(edit);
    await expect.poll(() => looks.length).toBeGreaterThan(1);
    const [found = []] = looks;
    expect(found.map((text, index) => text.includes(expected[index] ?? 'nothing') || text)).toEqual(
      expected.map(() => true),
    );
    expect(JSON.stringify(found)).not.toContain('token');
  });

  it('that are deleted while it looks, and come back', async () => {
    const { double, looks } = watched();
    await expect.poll(() => looks.at(-1)).toEqual([]);
    const path = at('MutatingWebhookConfiguration');
    const kept = double.objects.get(path);
    double.objects.delete(path);
    await expect
      .poll(() => looks.at(-1))
      .toEqual(['MutatingWebhookConfiguration blazar-enforcement is missing']);
    double.put(path, kept);
    await expect.poll(() => looks.at(-1)).toEqual([]);
  });

  it('that cannot be read are not known, which is logged once', async () => {
    const { double, looks, logger } = watched();
    await expect.poll(() => looks.length).toBeGreaterThan(0);
    double.fault = () => new ApiError(403, 'Forbidden', 'may not get');
    await expect.poll(() => logger.lines.length).toBe(1);
    const { length } = looks;
    const { length: calls } = double.calls;
    await expect.poll(() => double.calls.length).toBeGreaterThan(calls + 2);
    expect({ looks: looks.length, lines: logger.lines }).toMatchObject({
      looks: length,
      lines: [
        {
          message: 'whether API servers still ask about pods is not known',
          fields: { error: 'may not get' },
        },
      ],
    });
  });
});
