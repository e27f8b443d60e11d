/** The names in rules for tasks of SkyPilot. */
import { objectType, RuleEnvironment } from '../cel/environment.ts';
import { Failure } from '../cel/frame.ts';
import { JsonMap, Timestamp } from '../cel/values.ts';

/** One way in which a task may run. `undefined` = any. */
export interface TaskResources {
  /** Lower case, without aliases. */
  readonly cloud: string | undefined;
  readonly region: string | undefined;
  readonly zone: string | undefined;
  readonly instanceType: string | undefined;
  /** At most one: others are separate ways. Names in upper case, of TPUs in lower case. */
  readonly accelerators: ReadonlyMap<string, number>;
  /** Whether an accelerator may be the named one. */
  readonly mayBe: (name: string) => boolean;
  /** `undefined` = not given, or in a form without a number. */
  readonly cpus: number | undefined;
  /** In gigabytes. */
  readonly memory: number | undefined;
  readonly useSpot: boolean;
  /** Containers as `docker:name`. */
  readonly images: readonly string[];
  readonly ports: readonly string[];
  /** In gigabytes. */
  readonly diskSize: number | undefined;
  /** In minutes; -1 = it is off. */
  readonly autostop: number | undefined;
  readonly labels: object;
  readonly attributes: object;
}

export interface TaskRequestParts {
  readonly requestName: string;
  readonly clusterName: string | undefined;
  readonly atClientSide: boolean;
  readonly dryrun: boolean;
  readonly taskName: string | undefined;
  readonly numNodes: bigint;
  /** The names of environment variables, without secrets. */
  readonly envs: readonly string[];
  /** All ways in which it may run. */
  readonly resources: readonly TaskResources[];
  readonly user: { readonly id: string; readonly name: string } | undefined;
  readonly workspace: string;
  readonly config: object;
  /** The configurations of the task itself, for all ways in which it may run. */
  readonly overrides: readonly object[];
  readonly now: Date;
}

class TaskRequestInfo {
  readonly parts: TaskRequestParts;

  constructor(parts: TaskRequestParts) {
    this.parts = parts;
  }
}

class TaskUserView {
  readonly id: string | undefined;
  readonly name: string | undefined;

  constructor(user: TaskRequestParts['user']) {
    this.id = user?.id;
    this.name = user?.name;
  }
}

class ResourcesView {
  readonly parts: TaskResources;

  constructor(parts: TaskResources) {
    this.parts = parts;
  }
}

class TaskView {
  readonly parts: TaskRequestParts;
  readonly resources: readonly ResourcesView[];

  constructor(parts: TaskRequestParts) {
    this.parts = parts;
    this.resources = parts.resources.map((one) => new ResourcesView(one));
  }
}

export class TaskActivation {
  readonly now: Timestamp;
  readonly request: TaskRequestInfo;
  readonly user: TaskUserView;
  readonly workspace: string;
  readonly task: TaskView;
  readonly config: JsonMap;
  readonly overrides: readonly JsonMap[];

  constructor(parts: TaskRequestParts) {
    this.now = new Timestamp(BigInt(parts.now.getTime()) * 1_000_000n);
    this.request = new TaskRequestInfo(parts);
    this.user = new TaskUserView(parts.user);
    this.workspace = parts.workspace;
    this.task = new TaskView(parts);
    this.config = new JsonMap(parts.config);
    this.overrides = parts.overrides.map((one) => new JsonMap(one));
  }

  get resources(): readonly ResourcesView[] {
    return this.task.resources;
  }
}

/** Maximum for a task with its lists of alternatives and of accelerators. */
export const MAX_WAYS = 1000;

const REQUEST = objectType('TaskRequest', 'What is asked of SkyPilot.', TaskRequestInfo, {
  name: {
    type: 'string',
    description: 'The name of the request: `launch`, `exec`, `jobs.launch`, `serve.up`, …',
    read: ({ parts }) => parts.requestName,
  },
  cluster_name: {
    type: 'string',
    description: 'The name of the cluster. Missing if the user gives none.',
    read: ({ parts }) => parts.clusterName,
  },
  client_side: {
    type: 'bool',
    description: "Whether the user's machine asks. The API server asks again, and then the user is known.",
    read: ({ parts }) => parts.atClientSide,
  },
  dryrun: {
    type: 'bool',
    description: 'Whether nothing is to be started.',
    read: ({ parts }) => parts.dryrun,
  },
});

const USER = objectType('TaskUser', 'Who asks. Known only to the API server of SkyPilot.', TaskUserView, {
  id: { type: 'string', description: 'Their id. Missing at the client.' },
  name: { type: 'string', description: 'Their name. Missing at the client.' },
});

const ANY = 'Missing if it may be any.';

const RESOURCES = objectType('Resources', 'One way in which a task may run.', ResourcesView, {
  cloud: {
    type: 'string',
    description: `The cloud, in lower case: \`kubernetes\`, never \`k8s\`. ${ANY}`,
    read: ({ parts }) => parts.cloud,
  },
  region: {
    type: 'string',
    description: `The region, the context of Kubernetes, or the cluster of Slurm. ${ANY}`,
    read: ({ parts }) => parts.region,
  },
  zone: {
    type: 'string',
    description: `The zone, or the partition of Slurm. ${ANY}`,
    read: ({ parts }) => parts.zone,
  },
  instance_type: {
    type: 'string',
    description: `The type of machine, which may have accelerators that \`accelerators\` does not see. ${ANY}`,
    read: ({ parts }) => parts.instanceType,
  },
  accelerators: {
    type: 'map<string, double>',
    description:
      'At most one kind of accelerator, by name in upper case (of TPUs in lower case), and how many for each node.',
    read: ({ parts }) => parts.accelerators,
  },
  cpus: {
    type: 'double',
    description: 'The least number of CPUs. Missing if none is asked for.',
    read: ({ parts }) => parts.cpus,
  },
  memory: {
    type: 'double',
    description: 'The least memory in gigabytes. Missing if none is asked for, or as a multiple of the CPUs.',
    read: ({ parts }) => parts.memory,
  },
  use_spot: { type: 'bool', description: 'Whether on spot instances.', read: ({ parts }) => parts.useSpot },
  images: {
    type: 'list<string>',
    description: 'Images that it may run: of containers as `docker:name`.',
    read: ({ parts }) => parts.images,
  },
  ports: { type: 'list<string>', description: 'Ports to open.', read: ({ parts }) => parts.ports },
  disk_size: {
    type: 'double',
    description: 'The disk in gigabytes. Missing if none is asked for.',
    read: ({ parts }) => parts.diskSize,
  },
  autostop: {
    type: 'double',
    description: 'Minutes of idleness until it stops; -1 = never. Missing if it is not set.',
    read: ({ parts }) => parts.autostop,
  },
  labels: {
    type: 'map<string, dyn>',
    description: 'Its labels.',
    read: ({ parts }) => new JsonMap(parts.labels),
  },
  attributes: {
    type: 'map<string, dyn>',
    description:
      'Everything that the task says of it, as it is written: in any spelling that SkyPilot accepts.',
    read: ({ parts }) => new JsonMap(parts.attributes),
  },
});

const TASK = objectType('Task', 'A task of SkyPilot.', TaskView, {
  name: {
    type: 'string',
    description: 'Its name. Missing if it has none.',
    read: ({ parts }) => parts.taskName,
  },
  num_nodes: {
    type: 'int',
    description: 'The number of nodes; 1 if the task does not say.',
    read: ({ parts }) => parts.numNodes,
  },
  envs: {
    type: 'list<string>',
    description: 'The names of its environment variables.',
    read: ({ parts }) => parts.envs,
  },
  resources: {
    type: 'list<Resources>',
    description:
      'Every way in which it may run: each of `any_of` or `ordered`, with each of its accelerators.',
    isDistinct: true,
  },
});

export function taskEnvironment(): RuleEnvironment {
  return new RuleEnvironment()
    .object(REQUEST, USER, RESOURCES, TASK)
    .variable('now', 'timestamp', 'The current time.')
    .variable('request', 'TaskRequest', 'What is asked of SkyPilot.')
    .variable('user', 'TaskUser', 'Who asks. Known only to the API server of SkyPilot.')
    .variable('workspace', 'string', 'The workspace; `default` if none is chosen.')
    .variable('task', 'Task', 'The task.')
    .variable(
      'resources',
      'list<Resources>',
      'The same as `task.resources`. SkyPilot chooses one, so a rule must hold for all: `resources.all(one, …)`.',
      { isDistinct: true },
    )
    .variable('config', 'map<string, dyn>', "SkyPilot's configuration for the request.")
    .variable(
      'overrides',
      'list<map<string, dyn>>',
      'The configurations that the task itself brings, which SkyPilot puts over `config`.',
    )
    .function('may_be(Resources, string): bool', {
      description:
        'Whether the accelerator may be the named one, as SkyPilot completes names and memory: `may_be(one, "H100")`. For what is forbidden.',
      run: (_, resources, name) =>
        resources instanceof ResourcesView
          ? resources.parts.mayBe(String(name))
          : new Failure('expected resources'),
    })
    .function('count(Resources): double', {
      description: 'How many accelerators for each node; 0 if none.',
      run: (_, resources) => {
        if (!(resources instanceof ResourcesView)) {
          return new Failure('expected resources');
        }
        const [count = 0] = resources.parts.accelerators.values();
        return count;
      },
    });
}
