/** `blazar-enforcement/skypilot`: the library for admin policies. Start at `AdminPolicy`. */
export type { Mapping } from '../yaml/tree.ts';
export { AdminPolicy, PolicyRejected, type PolicyServices } from './admin-policy.ts';
export { Config } from './config.ts';
export {
  type Accelerator,
  acceleratorsOf,
  changeResources,
  type Resources,
  resourcesOf,
} from './resources.ts';
export {
  MutatedUserRequest,
  REQUEST_NAMES,
  type RequestOptions,
  type Task,
  type User,
  type UserRequest,
} from './user-request.ts';
