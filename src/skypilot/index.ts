/** `blazar-enforcement/skypilot`: the library for admin policies. Start at `AdminPolicy`. */
export type { OptionsCheck } from '../config/option-groups.ts';
export { isMapping, type Mapping } from '../yaml/tree.ts';
export { isPlainAccelerator, readingsOfAccelerator } from './accelerator-names.ts';
export {
  type Accelerator,
  type AcceleratorMemory,
  acceleratorsOf,
  canonicalAccelerator,
} from './accelerators.ts';
export { AdminPolicy, type PolicyNeed, PolicyRejected, type PolicyServices } from './admin-policy.ts';
export { AllowedInfra } from './allowed-infra.ts';
export { SkypilotApiServer, type SkypilotApiServerOptions, type SkypilotCluster } from './api-server.ts';
export {
  AUTOSTOP_OFF,
  type Autostop,
  autostopMinutesOf,
  autostopMinutesOfOptions,
  autostopOf,
  autostopsOf,
  durationMinutes,
  durationSeconds,
} from './autostop.ts';
export { catalogProblems, openCatalogs } from './catalog/open-catalogs.ts';
export { type ChargedLaunch, chargedLaunch } from './charging/charged-launch.ts';
export type { Hardware, Launch, LaunchLedger, LaunchLimit, LaunchOwner, Payer } from './charging/contract.ts';
export { HardwareCosts } from './charging/hardware-costs.ts';
export { type CostMistake, HardwareRates } from './charging/hardware-rates.ts';
export { acceleratorsIn } from './charging/instance-types.ts';
export { type LaunchTerms, requireLaunches, reviewLaunch } from './charging/reviewed-launch.ts';
export { Config } from './config/config.ts';
export {
  type ContextRegistry,
  contextRegistryOf,
  kubeconfigContextsOf,
  MAX_CONTEXT_FILE_BYTES,
  textOfContextFile,
} from './config/kubernetes-contexts.ts';
export { OverrideKeyError, type OverrideKeys } from './config/override-keys.ts';
export { matchesPattern } from './config/patterns.ts';
export { ServerConfigFile } from './config/server-config-file.ts';
export { type TaskConfig, taskConfigsOf } from './config/task-configs.ts';
export { type EffectiveQuestion, effectiveValue, effectiveValues } from './effective/policy-values.ts';
export { containerImage, imagesOf } from './images.ts';
export { formatInfra, type Infra, infraOf, isCaseSensitive, parseInfra } from './infra.ts';
export { changeResources, expandResources, type Resources, resourcesOf } from './resources.ts';
export { waysOfTask } from './task-ways.ts';
export {
  MutatedUserRequest,
  namesOfUser,
  REQUEST_NAMES,
  type RequestOptions,
  type Task,
  type User,
  type UserRequest,
} from './user-request.ts';
