import { expect, it } from 'vitest';
import { projectFile } from '../support/files.ts';
import { problemsOf } from './helpers.ts';

/** What policies that charge launches need. */
const API_SERVER = { api_server: 'http://host' };

it.each([
  ['AddVolumesPolicy', 'add_volumes'],
  ['AllowedCloudsPolicy', 'allowed_clouds'],
  ['AllowedImagesPolicy', 'allowed_images'],
  ['DynamicKubernetesContextsUpdatePolicy', 'dynamic_kubernetes_contexts_update_registry'],
  ['EnforceAutostopPolicy', 'enforce_autostop_api_server'],
  [
    'GpuQuotaPolicy',
    'gpu_quota_per_user or gpu_quota_per_workspace or gpu_quota_users or gpu_quota_workspaces',
  ],
  ['MaxPricePolicy', 'max_price or max_price_task'],
  ['RejectOldClientsPolicy', 'reject_old_clients or reject_old_clients_version'],
  ['RestrictOverridesPolicy', 'restrict_overrides_server_config'],
  ['SlurmPartitionPolicy', 'slurm_partition or slurm_partition_workspaces'],
])('%s needs %s', async (policy, options) => {
  expect(await problemsOf(policy, API_SERVER)).toEqual([
    expect.stringContaining(`${policy} needs ${options}, and`),
  ]);
});

/** What else the policy needs to be valid. */
const FURTHER: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  AddVolumesPolicy: { add_volumes: { '/a': 'b' } },
  EnforceAutostopPolicy: { enforce_autostop_api_server: 'http://host' },
  GpuQuotaPolicy: API_SERVER,
  UsageBudgetPolicy: API_SERVER,
  RestrictOverridesPolicy: { restrict_overrides_server_config: projectFile('package.json') },
  SlurmPartitionPolicy: { slurm_partition: ['lab/gpu'] },
};
const LABELS = 'expected comma-separated label:value pairs';
const URL = 'expected an http or https URL with a host';
const HOURS = 'expected a comma-separated list of hours';

it.each<[policy: string, option: string, values: readonly unknown[], message: string]>([
  ['AddLabelsPolicy', 'add_labels', [{ 'a b': 'x' }, { a: 'b c' }, { a: 'x'.repeat(64) }], LABELS],
  ['AddLabelsConditionalPolicy', 'add_labels_conditional', [{ '-app': 'x' }, { a: '-' }], LABELS],
  ['AddLabelsConditionalPolicy', 'add_labels_conditional_to', [[], ['aws']], 'kubernetes, resources'],
  ['AddLabelsConditionalPolicy', 'add_labels_conditional_side', ['left'], 'expected one of'],
  [
    'AddLabelsConditionalPolicy',
    'add_labels_conditional_skipped_requests',
    [['Launch!']],
    'expected a comma',
  ],
  ['AddVolumesPolicy', 'add_volumes', [{ 'mnt/a': 'a' }, { '/a/': 'a' }, { '/a/../b': 'a' }], 'path:volume'],
  ['AddVolumesPolicy', 'add_volumes', [{ '/': 'a' }, { '/$HOME': 'a' }, { '/a': 'b/../c' }], 'path:volume'],
  ['AddVolumesPolicy', 'add_volumes_clouds', [['kubernetes/context'], ['*'], ['a/b/c/d']], 'list of clouds'],
  ['AddVolumesPolicy', 'add_volumes_clouds', [['kuberntes']], 'kuberntes most likely never applies'],
  [
    'AllowedCloudsPolicy',
    'allowed_clouds',
    [['k8s', 'awss/us-east-1']],
    'awss/us-east-1 would make SkyPilot',
  ],
  ['AllowedCloudsPolicy', 'allowed_clouds', [['*'], ['/aws'], ['aws us'], ['*/us-east-1']], 'list of clouds'],
  ['AllowedCloudsPolicy', 'allowed_clouds', [['aws/a/b/c']], 'expected a cloud such as'],
  ['BusinessHoursPolicy', 'business_hours', [[], ['8-18'], ['mon-fri 8:00-18:00'], ['08:60-18:00']], HOURS],
  ['BusinessHoursPolicy', 'business_hours', [['foo 08:00-18:00'], ['mon-tue-wed 08:00-18:00']], HOURS],
  ['BusinessHoursPolicy', 'business_hours', [['08:00-08:00'], ['24:00-06:00'], ['08:00-24:01']], HOURS],
  ['BusinessHoursPolicy', 'business_hours_holidays', [['2026-02-29'], ['13-01'], ['1-1']], 'list of dates'],
  ['BusinessHoursPolicy', 'business_hours_time_zone', ['Mars/Olympus', '', 'CEST+2'], 'expected a time zone'],
  [
    'DynamicKubernetesContextsUpdatePolicy',
    'dynamic_kubernetes_contexts_update_registry',
    ['http://', 'https://user:hunter2@host/', ''],
    'expected the path of a file or a URL without credentials',
  ],
  ['EnforceAutostopPolicy', 'enforce_autostop_api_server', ['no url', 'ftp://host', 'http://'], URL],
  [
    'EnforceAutostopPolicy',
    'enforce_autostop_api_server',
    ['http://u:hunter2@h', 'http://h/?t=hunter2'],
    URL,
  ],
  ['EnforceAutostopPolicy', 'enforce_autostop_api_token', ['two hunter2'], 'ASCII text without spaces'],
  [
    'GpuQuotaPolicy',
    'gpu_quota_per_user',
    [{ 'lee/A100': 8 }, { '': 8 }, { A100: -1 }],
    'accelerator:count pairs',
  ],
  [
    'GpuQuotaPolicy',
    'gpu_quota_per_workspace',
    [{ A100: 8, a100: 4 }],
    'a name is given twice, in upper and',
  ],
  [
    'GpuQuotaPolicy',
    'gpu_quota_users',
    [{ lee: 16 }, { 'lee/': 8 }, { '/A100': 8 }],
    'user/accelerator:count pairs',
  ],
  ['GpuQuotaPolicy', 'gpu_quota_workspaces', [{ ml: 64 }], 'workspace/accelerator:count pairs'],
  ['MaxPricePolicy', 'max_price', [0, -1, 'five', 1e9], 'per hour, more than 0, 1000000 or less'],
  ['RateLimitLaunchPolicy', 'rate_limit_launch', [0, 1001], 'expected'],
  ['RateLimitLaunchPolicy', 'rate_limit_launch_seconds', [0], 'expected'],
  ['RejectOldClientsPolicy', 'reject_old_clients_version', ['new', '0', '0.12.0 ', ''], 'such as 0.12.0'],
  ['RejectOldClientsPolicy', 'reject_old_clients', [0, -1, 1.5], 'expected'],
  ['RestrictOverridesPolicy', 'restrict_overrides', [['.a'], ['a..b'], ['a b'], ['']], 'list of keys'],
  ['RestrictOverridesPolicy', 'restrict_overrides_server_config', ['/none'], 'there is no such file'],
  ['SetMaxAutostopIdleMinutesPolicy', 'set_max_autostop_idle_minutes', [-1], 'expected'],
  ['SlurmPartitionPolicy', 'slurm_partition', [['gpu'], ['a/b/c']], 'such as lab/gpu,lab/cpu'],
  ['SlurmPartitionPolicy', 'slurm_partition_workspaces', [{ a: 'gpu' }], 'pairs of a workspace'],
  [
    'UsageBudgetPolicy',
    'usage_budget_rates',
    [
      { A100: 1, a100: 2 },
      { 'k8s/A100': 1, 'kubernetes/A100': 2 },
    ],
    'a name is given twice, in two spellings',
  ],
  [
    'UsageBudgetPolicy',
    'usage_budget_rates',
    [{ 'aws/us-east-1/A100': 2 }, { 'A100:8': 2 }, { '*/A100': 2 }, { 'aws/': 2 }],
    'expected accelerator:rate pairs',
  ],
  ['UsageBudgetPolicy', 'usage_budget_rates', [{ 'awss/A100': 2 }], 'awss/A100 most likely never applies'],
])('%s refuses values of %s', async (policy, option, values, message) => {
  for (const value of values) {
    const problems = await problemsOf(policy, { ...FURTHER[policy], [option]: value });
    expect(problems, JSON.stringify(value)).toEqual([expect.stringContaining(message)]);
    expect(problems.join()).not.toContain('hunter2');
  }
});
