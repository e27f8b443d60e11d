/**
 * How SkyPilot reads each key of its configuration. Source: the calls of `get_nested`,
 * `get_effective_region_config`, `get_effective_workspace_region_config`, `get_workspace_cloud`,
 * `get_effective_queue_name` and `get_effective_namespace` in SkyPilot 0.13.
 */

/** Descriptions of the rules. `task over all` and `task first` read the configuration as `region` does. */
export const RULES = {
  region: 'the value of the context or region, else the general one; in kubernetes, mappings are merged',
  workspace: 'the value in the workspace, else the general one; in each, that of the context first',
  spellings: 'the first that is set, in the workspace first; in each, that of the context first',
  'task over all': 'the general value, that of the context, and that of the task, merged in this order',
  'task first': 'the value of the task, else as configured',
  levels:
    'the general value, that of the cluster or context, the partition, and the task, merged in this order',
  'workspace section': 'the section of the workspace, merged over the general one',
  'by region': 'the general value; of a mapping, the member with the name of the region',
  'default region': 'the value of the region, else that of the region named default',
  general: 'one value for all contexts and regions',
} as const satisfies Readonly<Record<string, string>>;

type Rule = keyof typeof RULES;

export interface Reader {
  /** `*` is any cloud. */
  readonly key: readonly string[];
  readonly rule: Rule;
  /** Whether SkyPilot passes the `config` of the task to this read. */
  readonly task?: boolean;
  /** Synonymous keys; the first one wins. */
  readonly spellings?: readonly (readonly string[])[];
  /** How `region` merges two mappings. Default: depends on the cloud. */
  readonly mappings?: 'members';
  /** Looks up an SSH node pool by its bare name; other keys use its context's name, `ssh-` and the name. */
  readonly pool?: boolean;
  /** Always reads this region. */
  readonly fixedRegion?: string;
}

type Options = Omit<Reader, 'key' | 'rule' | 'spellings'>;

const readers = (rule: Rule, names: string, options: Options = {}): Reader[] =>
  names.split(' ').map((name) => ({ key: name.split('.'), rule, ...options }));

const QUEUE = [
  ['quota', 'queue'],
  ['kueue', 'local_queue_name'],
];

const READERS: readonly Reader[] = [
  ...readers('task over all', 'kubernetes.pod_config kubernetes.custom_metadata', { task: true }),
  ...readers('task over all', 'ssh.pod_config ssh.custom_metadata', { task: true, pool: true }),
  ...readers(
    'region',
    [
      'kubernetes.provision_timeout kubernetes.dws kubernetes.enable_docker ssh.provision_timeout azure.vpc_name gcp.vpc_name',
      'gcp.subnet_names gcp.managed_instance_group gcp.enable_gvnic gcp.enable_gpu_direct gcp.placement_policy',
      'vast.datacenter_only vast.create_instance_kwargs docker.run_options nvidia_gpus.disable_ecc',
    ].join(' '),
    { task: true },
  ),
  ...readers('region', 'kubernetes.kueue.admission_timeout kubernetes.high_availability.storage_class_name'),
  ...readers('region', 'ssh.max_inline_command_length', { pool: true }),
  ...readers('workspace', 'kubernetes.set_pod_resource_limits *.remote_identity', { task: true }),
  ...QUEUE.map(
    (key): Reader => ({
      key: ['kubernetes', ...key],
      rule: 'spellings',
      spellings: QUEUE,
      task: true,
    }),
  ),
  ...['kubernetes', 'ssh'].map(
    (cloud): Reader => ({
      key: [cloud, 'namespace'],
      rule: 'spellings',
      spellings: [['namespace']],
      task: true,
    }),
  ),
  ...readers('levels', 'kubernetes.pricing slurm.pricing'),
  ...readers('levels', 'slurm.sbatch_options', { task: true }),
  ...readers('task first', 'slurm.cpu_partition', { task: true }),
  ...readers('region', 'slurm.gpu_partition_map', { mappings: 'members' }),
  ...readers(
    'workspace section',
    [
      '*.disabled *.capabilities kubernetes.allowed_contexts ssh.allowed_node_pools slurm.allowed_clusters aws.profile',
      'gcp.project_id nebius.domain nebius.tenant_id nebius.credentials_file_path',
    ].join(' '),
  ),
  ...readers('by region', '*.ssh_proxy_command'),
  ...readers('default region', 'oci.compartment_ocid'),
  ...readers('region', 'oci.image_tag_gpu oci.image_tag_general oci.oci_config_profile oci.image_os_type', {
    fixedRegion: 'default',
  }),
  ...readers(
    'general',
    'nebius.use_static_ip_address nebius.use_personal_pricing *.prioritize_reservations aws.specific_reservations gcp.specific_reservations',
  ),
];

/** The member of a cloud that holds its configuration by context, region or cluster. */
const REGION_MEMBERS: Readonly<Record<string, string>> = {
  kubernetes: 'context_configs',
  ssh: 'context_configs',
  slurm: 'cluster_configs',
  nebius: 'region_configs',
  oci: 'region_configs',
};

export function regionMember(cloud: string): string | undefined {
  return Object.hasOwn(REGION_MEMBERS, cloud) ? REGION_MEMBERS[cloud] : undefined;
}

/** The reader of a key or of one above it. */
export function readerOf(path: readonly string[]): Reader | undefined {
  return READERS.find(
    ({ key }) => key.length <= path.length && key.every((name, index) => fits(name, path, index)),
  );
}

/** Readers of keys below a path. */
export function readersBelow(path: readonly string[]): Reader[] {
  return READERS.filter(
    ({ key }) => key.length > path.length && path.every((_, index) => fits(key[index] ?? '', path, index)),
  );
}

/** Sections of the configuration that are not clouds. */
const OTHER_SECTIONS = new Set(
  'active_workspace admin_policy allowed_clouds api_server daemons dashboard data db docker jobs logs metrics nvidia_gpus plugins provision rbac serve workspace workspace_config workspaces'.split(
    ' ',
  ),
);

export function isCloud(section: string): boolean {
  return !OTHER_SECTIONS.has(section);
}

function fits(name: string, path: readonly string[], index: number): boolean {
  const own = path[index] ?? '';
  return name === own || (name === '*' && isCloud(own));
}
