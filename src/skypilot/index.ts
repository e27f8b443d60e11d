/** `blazar-enforcement/skypilot`: the library for admin policies. Start at `AdminPolicy`. */

export { isMapping, type Mapping } from '../base/yaml/tree.ts';
export type { OptionsCheck } from '../config/option-groups.ts';
export {
  AdminPolicy,
  needsOneOf,
  type PolicyNeed,
  PolicyRejected,
  type PolicyServices,
} from './admin-policy.ts';
export { SkypilotApiServer, type SkypilotApiServerOptions, type SkypilotCluster } from './api-server.ts';
export { catalogProblems, openCatalogs, unknownClouds } from './charging/catalog/catalog-file.ts';
export {
  type ChargedLaunch,
  chargedLaunch,
  type LaunchTerms,
  requireLaunches,
  reviewLaunch,
} from './charging/charged-launch.ts';
export type { Hardware, Launch, LaunchLedger, LaunchLimit, LaunchOwner, Payer } from './charging/contract.ts';
export { type CostMistake, HardwareCosts, HardwareRates } from './charging/hardware-costs.ts';
export { Config } from './config/config.ts';
export { ServerConfigFile } from './config/config-file.ts';
export { type EffectiveQuestion, effectiveValue, effectiveValues } from './config/effective/policy-values.ts';
export {
  type ContextRegistry,
  contextRegistryOf,
  kubeconfigContextsOf,
  MAX_CONTEXT_FILE_BYTES,
  textOfContextFile,
} from './config/kubernetes-contexts.ts';
export { OverrideKeyError, type OverrideKeys } from './config/permitted-keys.ts';
export { type TaskConfig, taskConfigsOf, unreadable } from './config/task-configs.ts';
export { apiServerUrl, bearerToken } from './options.ts';
export {
  FORERUNNERS,
  isListed,
  isWorkspaceListed,
  MutatedUserRequest,
  namesOfUser,
  REQUEST_NAMES,
  type RequestOptions,
  type Task,
  type User,
  type UserRequest,
} from './request/user-request.ts';
export {
  type Accelerator,
  type AcceleratorMemory,
  acceleratorsIn,
  acceleratorsOf,
  canonicalAccelerator,
  isPlainAccelerator,
  readingsOfAccelerator,
} from './task/accelerators.ts';
export {
  AUTOSTOP_OFF,
  type Autostop,
  autostopMinutesOf,
  autostopMinutesOfOptions,
  autostopOf,
  autostopsOf,
  durationMinutes,
  durationSeconds,
} from './task/autostop.ts';
export { mayGiveAccelerators, mayHaveSpot, priceDependsOn, stoppingOf } from './task/cloud-features.ts';
export { containerImage, imagesOf } from './task/images.ts';
export {
  AllowedInfra,
  cloudsOf,
  formatInfra,
  type Infra,
  infraOf,
  isCaseSensitive,
  matchesPattern,
  OWN_CLUSTERS,
  parseInfra,
} from './task/infra.ts';
export { kubernetesLabels, labelKubernetes } from './task/kubernetes-labels.ts';
export { changeResources, expandResources, type Resources, resourcesOf } from './task/resources.ts';
export { type SbatchOption, sbatchOptionsOf } from './task/sbatch-options.ts';
export { waysOfTask } from './task/task-ways.ts';
