/** The input and output of a policy. */

import type { Mapping } from '../../base/yaml/tree.ts';
import type { RuleOutcomes } from '../../filter/verdict.ts';
import type { Config } from '../config/config.ts';

/**
 * A task as plain data, with the names of its YAML: `resources`, `num_nodes`, `setup`, `run`, `envs` and so
 * on. Do not change unknown members; those that start with `_` belong to SkyPilot.
 */
export type Task = { [name: string]: unknown };

/** The user, as identified by SkyPilot's server. The client does not send one. */
export interface User {
  /** A hash. */
  readonly id: string;
  readonly name: string;
  /** Such as `system`; `null` = SkyPilot does not send it. */
  readonly userType: string | null;
  readonly preferredWorkspace: string | null;
}

export interface RequestOptions {
  /** `null` = not given. */
  readonly clusterName: string | null;
  /** In minutes; negative or `null` = no autostop. */
  readonly idleMinutesToAutostop: number | null;
  /** Whether to tear down the cluster instead of stopping it. */
  readonly down: boolean;
  readonly dryrun: boolean;
}

/** The known names of requests. There may be others. */
export const REQUEST_NAMES = [
  'validate',
  'optimize',
  'launch',
  'exec',
  'jobs.launch',
  'jobs.launch_controller',
  'jobs.pool_apply',
  'jobs.launch_cluster',
  'serve.up',
  'serve.launch_controller',
  'serve.update',
  'serve.launch_replica',
] as const;

/** A request of a user. Each policy gets its own copy, which it may change in place. */
export interface UserRequest {
  readonly task: Task;
  readonly skypilotConfig: Config;
  /** One of `REQUEST_NAMES`, or one of a later SkyPilot. */
  readonly requestName: string;
  /** `null` for jobs and services. */
  readonly requestOptions: RequestOptions | null;
  /** Whether the client calls. The server calls again with the result. */
  readonly atClientSide: boolean;
  /** `null` on the client side. */
  readonly user: User | null;
  readonly clientApiVersion: number | null;
  /** May be `unknown`. */
  readonly clientVersion: string | null;
}

/** The request as a policy returns it. */
export class MutatedUserRequest {
  readonly task: Task;
  readonly skypilotConfig: Config | Mapping;
  /** For policies with named rules: audited rules that rejected the request, for the decision. */
  readonly rules?: RuleOutcomes | undefined;

  constructor(task: Task, skypilotConfig: Config | Mapping, rules?: RuleOutcomes) {
    this.task = task;
    this.skypilotConfig = skypilotConfig;
    this.rules = rules;
  }
}

/** Requests that launch nothing, but may precede one that does, and may lack its workspace. A refusal ends the launch there. */
export const FORERUNNERS: ReadonlySet<string> = new Set(['validate', 'optimize']);

// Names of users in lists that an operator writes. Source: SkyPilot 0.13, its service accounts.

/** Ids of service accounts, in any case. */
const SERVICE_ACCOUNT = /^sa-/i;

/**
 * The id, and the name after it. Only the id of a service account: its creator chooses the name, and could
 * choose that of a more privileged user.
 */
export function namesOfUser({ id, name }: Pick<User, 'id' | 'name'>): readonly string[] {
  return SERVICE_ACCOUNT.test(id) || name === '' ? [id] : [id, name];
}

/** Whether a list of an operator has the user. Nobody = no. */
export function isListed(user: User | null, names: readonly string[]): boolean {
  return user !== null && namesOfUser(user).some((name) => names.includes(name));
}

/** Whether a list of an operator has the workspace of a configuration. */
export function isWorkspaceListed(config: Config, names: readonly string[]): boolean {
  const workspace = config.getNested(['active_workspace']) ?? 'default';
  return names.some((name) => name === workspace);
}
