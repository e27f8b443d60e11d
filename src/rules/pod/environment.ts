/** The names in rules for pods. */
import { objectType, RuleEnvironment } from '../cel/environment.ts';
import { Failure } from '../cel/frame.ts';
import { ContainerView, PodRequestInfo, PodUserView, PodView } from './pod-view.ts';

const REQUEST = objectType('PodRequest', 'The request to the API server.', PodRequestInfo, {
  operation: { type: 'string', description: '`create` or `update`.' },
  kind: {
    type: 'string',
    description: '`Pod`, or what would have such pods: `DaemonSet`, `Deployment`, `Job`, …',
  },
});

const USER = objectType('PodUser', 'Who sends the request to the API server.', PodUserView, {
  name: {
    type: 'string',
    description: 'Their name; for most pods, a controller. Not known for workloads.',
  },
  groups: { type: 'list<string>', description: 'Their groups. Not known for workloads.' },
});

const CONTAINER = objectType('Container', 'A container of a pod.', ContainerView, {
  name: { type: 'string', description: 'Its name.' },
  image: { type: 'string', description: 'Its image, as written.' },
  is_init: { type: 'bool', description: 'Whether it is an init container.', read: ({ isInit }) => isInit },
  requests: {
    type: 'map<string, double>',
    description: 'What it requests by resource; the limit, where it requests nothing.',
  },
  attributes: { type: 'map<string, dyn>', description: 'All of its attributes in the pod.' },
});

const POD = objectType('Pod', 'A pod.', PodView, {
  name: { type: 'string', description: 'Its name, or the beginning of it. Not known for workloads.' },
  namespace: { type: 'string', description: 'The name of its namespace.' },
  service_account: {
    type: 'string',
    description: 'The service account that it runs as; `default` if it names none.',
    read: ({ serviceAccount }) => serviceAccount,
  },
  labels: { type: 'map<string, dyn>', description: 'Its labels.' },
  annotations: { type: 'map<string, dyn>', description: 'Its annotations.' },
  containers: {
    type: 'list<Container>',
    description: 'All of its containers: init containers, containers, and ephemeral ones.',
    isDistinct: true,
  },
  requests: {
    type: 'map<string, double>',
    description:
      'What it requests in all, by resource: `cpu` in cores, `memory` in bytes, `nvidia.com/gpu`. What it does not request is missing.',
  },
  gpus: {
    type: 'map<string, double>',
    description:
      'The GPUs and parts of GPUs in `requests`, by the name of the resource; without memory or cores of GPUs beside a number of them in a container, such as `nvidia.com/gpumem`.',
  },
  claims: {
    type: 'int',
    description: 'How many ResourceClaims it has. Each may claim several devices, which `gpus` does not see.',
  },
  metadata: { type: 'map<string, dyn>', description: 'As it is written.' },
  spec: { type: 'map<string, dyn>', description: 'As it is written.' },
});

export function podEnvironment(): RuleEnvironment {
  return new RuleEnvironment()
    .object(REQUEST, USER, CONTAINER, POD)
    .variable('now', 'timestamp', 'The current time.')
    .variable('request', 'PodRequest', 'The request to the API server.')
    .variable('user', 'PodUser', 'Who sends the request to the API server.')
    .variable('pod', 'Pod', 'The pod as it would be stored, with defaults.')
    .function('requested(Pod, string): double', {
      description:
        'How much of a resource a pod requests in all: `requested(pod, "cpu")` in cores, `requested(pod, "memory")` in bytes; 0 if nothing.',
      run: (_, pod, name) =>
        pod instanceof PodView ? (pod.requests.get(String(name)) ?? 0) : new Failure('expected a pod'),
    })
    .function('gpus(Pod): double', {
      description: 'How many GPUs a pod requests in all, of every kind, parts of GPUs included.',
      run: ({ meter }, pod) => {
        if (!(pod instanceof PodView)) {
          return new Failure('expected a pod');
        }
        const gpus = [...pod.gpus.values()];
        meter.spend(Math.min(gpus.length, 1));
        return gpus.reduce((sum, amount) => sum + amount, 0);
      },
      estimate: () => ({ steps: 2, shape: { text: 0, items: 0, weight: 1 } }),
    });
}
