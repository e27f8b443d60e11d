/** Random SkyPilot configurations with valid keys, and questions about them. */
import fc from 'fast-check';
import { optional } from './properties.ts';

/** A configuration, and a question about one of its keys. */
export interface SkypilotQuestion {
  readonly config: Readonly<Record<string, unknown>>;
  readonly task: Readonly<Record<string, unknown>> | null;
  readonly key: readonly string[];
  readonly region: string | null;
  readonly zone: string | null;
  readonly workspace: string;
}

const text = fc.constantFrom('a', 'b', 'c');
const number = fc.integer({ min: 0, max: 9 });
const named = fc.record({ name: text }, { requiredKeys: ['name'] });
const labels = optional({ x: text, y: text, 'example.org/z': text });

const container = optional({
  name: text,
  args: fc.array(text, { maxLength: 2 }),
  env: fc.array(fc.record({ name: text, value: text }), { maxLength: 2 }),
  volumeMounts: fc.array(fc.record({ mountPath: text, name: text }), { maxLength: 2 }),
  resources: optional({ claims: fc.array(named, { maxLength: 2 }), limits: labels }),
  ports: fc.array(fc.record({ containerPort: number }), { maxLength: 2 }),
});
const podConfig = optional({
  metadata: optional({ labels, annotations: labels }),
  spec: optional({
    containers: fc.array(container, { maxLength: 2 }),
    initContainers: fc.array(fc.record({ name: text, command: fc.array(text, { maxLength: 2 }) }), {
      maxLength: 2,
    }),
    tolerations: fc.array(fc.record({ key: text }), { maxLength: 2 }),
    volumes: fc.array(fc.record({ name: text, emptyDir: fc.constant({}) }), { maxLength: 2 }),
    imagePullSecrets: fc.array(named, { maxLength: 2 }),
    nodeSelector: labels,
    priorityClassName: fc.option(text),
    // Sometimes a value that cannot be merged with the others.
    schedulerName: fc.oneof(
      { weight: 20, arbitrary: text },
      { weight: 1, arbitrary: labels },
      { weight: 1, arbitrary: fc.array(text) },
    ),
  }),
});
const metadata = optional({ labels, annotations: labels, finalizers: fc.array(text, { maxLength: 2 }) });
const identity = fc.oneof(text, labels);
const queues = {
  quota: optional({ queue: fc.option(text), priority: text }),
  kueue: optional({ local_queue_name: fc.option(text), admission_timeout: number }),
};
const pricing = optional({
  cpu: number,
  memory: number,
  accelerators: optional({ A100: number, H100: number }),
});
const dws = optional({ enabled: fc.boolean(), max_run_duration: text });

const kubernetesTask = {
  pod_config: podConfig,
  custom_metadata: metadata,
  provision_timeout: number,
  dws,
  ...queues,
  remote_identity: identity,
  enable_docker: fc.oneof(fc.boolean(), optional({ mode: text, images: fc.array(text, { maxLength: 2 }) })),
  set_pod_resource_limits: fc.oneof(fc.boolean(), number),
};
const kubernetesContext = {
  ...kubernetesTask,
  namespace: fc.option(text),
  autoscaler: fc.option(text),
  ports: text,
  pricing,
  allowed_nodes: optional({ names: fc.array(text, { maxLength: 2 }), label_selector: labels }),
  post_provision_runcmd: fc.array(text, { maxLength: 2 }),
  high_availability: optional({ storage_class_name: text }),
};
const contexts = (names: readonly string[], members: Record<string, fc.Arbitrary<unknown>>) =>
  optional(Object.fromEntries(names.map((name) => [name, optional(members)])));
const allowed = fc.option(fc.array(text, { maxLength: 2 }));

const kubernetes = {
  ...kubernetesContext,
  allowed_contexts: allowed,
  disabled: fc.option(fc.boolean()),
  context_configs: contexts(['east', 'west'], kubernetesContext),
};
const sshContext = {
  pod_config: podConfig,
  custom_metadata: metadata,
  provision_timeout: number,
  max_inline_command_length: number,
  namespace: text,
};
const ssh = {
  ...sshContext,
  remote_identity: text,
  allowed_node_pools: allowed,
  context_configs: contexts(['east', 'ssh-east', 'west'], sshContext),
};
const sbatch = optional({ time: fc.option(text), mem: number, exclusive: fc.boolean() });
const slurmCluster = {
  sbatch_options: sbatch,
  pricing,
  provision_timeout: number,
  cpu_partition: text,
  workdir: text,
};
const gpuMap = { gpu_partition_map: optional({ A100: fc.array(text), H100: fc.array(text) }) };
const slurm = {
  ...slurmCluster,
  ...gpuMap,
  allowed_clusters: allowed,
  cluster_configs: contexts(['east', 'west'], {
    ...slurmCluster,
    ...gpuMap,
    partition_configs: contexts(['fast'], { sbatch_options: sbatch, pricing }),
  }),
};
const nebiusRegion = { project_id: text, fabric: text, filesystems: fc.array(named, { maxLength: 2 }) };
const proxy = fc.oneof(text, optional({ east: text, west: text }));
const nebius = {
  ...nebiusRegion,
  domain: fc.option(text),
  tenant_id: fc.option(text),
  credentials_file_path: text,
  use_internal_ips: fc.boolean(),
  ssh_proxy_command: proxy,
  region_configs: contexts(['east', 'west'], nebiusRegion),
};
const ociRegion = { compartment_ocid: text, vcn_ocid: text, image_tag_gpu: text };
const oci = { ...ociRegion, region_configs: contexts(['default', 'east', 'west'], ociRegion) };
const gcpTask = {
  vpc_name: fc.option(text),
  subnet_names: fc.array(text),
  enable_gvnic: fc.boolean(),
  managed_instance_group: labels,
};
const gcp = {
  ...gcpTask,
  project_id: fc.option(text),
  labels,
  remote_identity: text,
  disabled: fc.boolean(),
  ssh_proxy_command: proxy,
};
const aws = {
  profile: text,
  labels,
  remote_identity: text,
  vpc_names: fc.array(text),
  ssh_proxy_command: proxy,
};
const azureTask = { vpc_name: text, remote_identity: text };
const vastTask = { datacenter_only: fc.boolean(), create_instance_kwargs: labels };
const dockerTask = { run_options: fc.oneof(text, fc.array(text)) };

const sections = {
  kubernetes,
  ssh,
  slurm,
  nebius,
  oci,
  gcp,
  aws,
  azure: azureTask,
  vast: vastTask,
  docker: dockerTask,
};
const taskSections = {
  kubernetes: kubernetesTask,
  ssh: { pod_config: podConfig, custom_metadata: metadata, provision_timeout: number },
  slurm: { sbatch_options: sbatch, cpu_partition: text },
  gcp: gcpTask,
  azure: azureTask,
  vast: vastTask,
  docker: dockerTask,
};
type Sections = Record<string, Record<string, fc.Arbitrary<unknown>>>;
const some = (of: Sections) =>
  optional(Object.fromEntries(Object.entries(of).map(([name, members]) => [name, optional(members)])));

const HOLDERS = ['context_configs', 'cluster_configs', 'region_configs'];
/** Each key once, the queue's keys in both spellings, and the members that SkyPilot reads separately. */
const KEYS = Object.entries(sections as Sections).flatMap(([cloud, members]) =>
  Object.keys(members)
    .filter((name) => !HOLDERS.includes(name))
    .flatMap((name) => {
      const below: Record<string, string[]> = {
        quota: ['queue'],
        kueue: ['local_queue_name', 'admission_timeout'],
        high_availability: ['storage_class_name'],
      };
      return Object.hasOwn(below, name)
        ? (below[name] ?? []).map((last) => [cloud, name, last])
        : [[cloud, name]];
    }),
);

/** Only the question's section, so that most questions find a value. */
export const skypilotQuestion: fc.Arbitrary<SkypilotQuestion> = fc.constantFrom(...KEYS).chain((key) => {
  const [cloud = ''] = key;
  const own = <Kind extends Sections>(of: Kind): Sections =>
    Object.hasOwn(of, cloud) ? { [cloud]: of[cloud] ?? {} } : {};
  const general = some(own(sections));
  return fc.record({
    config: fc
      .tuple(
        general,
        optional({
          lab: fc.oneof({ weight: 9, arbitrary: general }, { weight: 1, arbitrary: fc.constant(null) }),
          shop: general,
        }),
      )
      .map(([config, workspaces]) => ({ ...config, workspaces })),
    task: fc.option(some(own(taskSections))),
    key: fc.constant(key),
    region: fc.option(fc.constantFrom('east', 'west', 'north', ...(cloud === 'ssh' ? ['ssh-east'] : []))),
    zone: fc.constantFrom(null, 'fast'),
    workspace: fc.constantFrom('default', 'lab', 'shop', 'nowhere'),
  });
});
