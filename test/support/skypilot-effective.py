"""Computes effective values with SkyPilot's own functions.

Usage: skypilot-effective.py SKYPILOT_SOURCE < questions. Each line is a JSON object with `config`, `task`,
`key`, `region`, `zone` and `workspace`. Each answer is a line: `{"value": ...}`, or `{"error": "..."}` if
SkyPilot fails.
"""
import copy
import importlib.abc
import importlib.machinery
import json
import logging
import os
import sys
import tempfile
import types

SOURCE = sys.argv[1]


# Optional packages of installed packages, which also work without them.
OPTIONAL = ('simplejson', 'chardet', 'brotli', 'brotlicffi', 'socks', 'h2', 'zstandard', 'OpenSSL')


# Parts of SkyPilot that its configuration imports but does not use.
UNUSED = ('sky.backends', 'sky.usage', 'sky.clouds', 'sky.provision')


class StandInType(type):

    def __getattr__(cls, name):
        if name.startswith('__'):
            raise AttributeError(name)
        return cls

    def __getitem__(cls, item):
        return cls

    def __call__(cls, *args, **kwargs):
        # As a decorator it returns the function unchanged.
        return args[0] if len(args) == 1 and callable(args[0]) else super().__call__()

    def __or__(cls, other):
        return cls

    __ror__ = __or__


class StandIn(metaclass=StandInType):
    """Anything that a missing package may contain."""

    def __getattr__(self, name):
        return StandIn

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) else StandIn()


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Packages of SkyPilot that are not installed do nothing."""

    def find_spec(self, name, path, target=None):
        top = name.split('.')[0]
        if top in OPTIONAL or top == 'sky' or top in sys.stdlib_module_names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = lambda name: getattr(StandIn, name)
        return module

    def exec_module(self, module):
        pass


sys.meta_path.append(StandIns())
# Without its __init__, which imports all of SkyPilot.
package = types.ModuleType('sky')
package.__path__ = [os.path.join(SOURCE, 'sky')]
package.__version__ = '1.0.0'
package.__commit__ = ''
sys.modules['sky'] = package
for unused in UNUSED:
    sys.modules[unused] = StandIns().create_module(importlib.machinery.ModuleSpec(unused, None))
os.environ['HOME'] = tempfile.mkdtemp()
os.chdir(os.environ['HOME'])
for variable in ('SKYPILOT_CONFIG', 'SKYPILOT_GLOBAL_CONFIG', 'SKYPILOT_PROJECT_CONFIG'):
    os.environ.pop(variable, None)
logging.disable(logging.CRITICAL)

from sky import skypilot_config  # noqa: E402
from sky.utils import config_utils  # noqa: E402

UNSET = '\x00unset'


def region_of(key, region, bare=False):
    """For SSH node pools, some keys are looked up by the pool's name, others by its context's name."""
    if key[0] != 'ssh' or region is None:
        return region
    pool = region[4:] if region.startswith('ssh-') else region
    return pool if bare else 'ssh-' + pool


def ask(key, region, task, bare=False, **options):
    return skypilot_config.get_effective_region_config(cloud=key[0],
                                                       keys=key[1:],
                                                       region=region_of(key, region, bare),
                                                       default_value=UNSET,
                                                       override_configs=task,
                                                       **options)


def task_over_all(key, region, task, bare):
    """The same calls as in resolve_effective_pod_config and merge_custom_metadata."""
    value = ask(key, region, None, bare)
    override = config_utils.get_cloud_config_value_from_dict(dict_config=task or {},
                                                             cloud=key[0],
                                                             region=region_of(key, region, bare),
                                                             keys=key[1:],
                                                             default_value=UNSET)
    if override == UNSET:
        return value
    value = {} if value == UNSET else value
    config_utils.merge_k8s_configs(value, override)
    return value


def workspace_region(key, region, task):
    return skypilot_config.get_effective_workspace_region_config(cloud=key[0],
                                                                 keys=key[1:],
                                                                 region=region_of(key, region),
                                                                 default_value=UNSET,
                                                                 override_configs=task)


def levels(key, region, zone, task):
    keys = [key]
    if region is not None:
        holder = (key[0], 'cluster_configs' if key[0] == 'slurm' else 'context_configs', region)
        keys.append(holder + key[1:])
        if zone is not None:
            keys.append(holder + ('partition_configs', zone) + key[1:])
    found = [skypilot_config.get_nested(one, default_value=None) for one in keys]
    if task is not None:
        found.append(
            config_utils.get_cloud_config_value_from_dict(dict_config=task,
                                                          cloud=key[0],
                                                          region=region,
                                                          keys=key[1:]))
    value = UNSET
    for one in found:
        if one is not None:
            before = {} if value == UNSET else value
            value = {**before, **one}
            if key[-1] == 'pricing' and 'accelerators' in one:
                value['accelerators'] = {**before.get('accelerators', {}), **one['accelerators']}
    return value


def section(key, fallback):
    value = skypilot_config.get_workspace_cloud(key[0]).get(key[1], UNSET)
    if fallback and (value == UNSET or value is None):
        return ask(key, None, None)
    return value


def effective(key, region, zone, task):
    name = '.'.join(key)
    if name in ('kubernetes.pod_config', 'kubernetes.custom_metadata', 'ssh.pod_config', 'ssh.custom_metadata'):
        return task_over_all(key, region, task, bare=True)
    if name in ('kubernetes.quota.queue', 'kubernetes.kueue.local_queue_name'):
        value = skypilot_config.get_effective_queue_name(key[0], region, override_configs=task)
        return UNSET if value is None else value
    if name in ('kubernetes.namespace', 'ssh.namespace'):
        value = skypilot_config.get_effective_namespace(key[0], region_of(key, region), override_configs=task)
        return UNSET if value is None else value
    if key[-1] == 'remote_identity' or name == 'kubernetes.set_pod_resource_limits':
        return workspace_region(key, region, task)
    if name in ('kubernetes.allowed_contexts', 'ssh.allowed_node_pools', 'slurm.allowed_clusters', 'nebius.domain',
                'nebius.tenant_id'):
        return section(key, fallback=True)
    if key[-1] == 'disabled' or name in ('aws.profile', 'gcp.project_id', 'nebius.credentials_file_path'):
        return section(key, fallback=False)
    if name == 'slurm.sbatch_options':
        return levels(key, region, zone, task)
    if key[-1] == 'pricing':
        return levels(key, region, zone, None)
    if name == 'slurm.gpu_partition_map':
        return ask(key, region, None, merge_dicts=True)
    if name == 'slurm.cpu_partition':
        own = config_utils.get_cloud_config_value_from_dict(dict_config=task or {},
                                                            cloud='slurm',
                                                            region=region,
                                                            keys=key[1:])
        return ask(key, region, None) if own is None else own
    if name == 'oci.compartment_ocid':
        default = ask(key, 'default', None)
        value = ask(key, region, None)
        return default if value == UNSET else value
    if name in ('oci.image_tag_gpu', 'oci.image_tag_general'):
        return ask(key, 'default', None)
    if key[-1] == 'ssh_proxy_command':
        value = ask(key, None, None)
        if isinstance(value, dict) and region is not None:
            return value.get(region, UNSET)
        return value
    if name in ('docker.run_options', 'nvidia_gpus.disable_ecc'):
        return skypilot_config.get_nested(key, UNSET, override_configs=task)
    reads_task = name in ('kubernetes.provision_timeout', 'kubernetes.dws', 'kubernetes.enable_docker',
                          'ssh.provision_timeout', 'azure.vpc_name', 'gcp.vpc_name', 'gcp.subnet_names',
                          'gcp.managed_instance_group', 'gcp.enable_gvnic', 'gcp.enable_gpu_direct',
                          'gcp.placement_policy', 'vast.datacenter_only', 'vast.create_instance_kwargs')
    return ask(key, region, task if reads_task else None, bare=name == 'ssh.max_inline_command_length')


for line in sys.stdin:
    question = json.loads(line)
    skypilot_config._set_loaded_config(config_utils.Config(copy.deepcopy(question['config'])))
    # pylint: disable=broad-except
    try:
        with skypilot_config.local_active_workspace_ctx(question['workspace']):
            value = effective(tuple(question['key']), question['region'], question['zone'], question['task'])
        answer = {} if value == UNSET else {'value': value}
    except Exception as error:
        answer = {'error': f'{type(error).__name__}: {error}'}
    print(json.dumps(answer), flush=True)
