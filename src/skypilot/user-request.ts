/** What a policy is asked about, and what it answers. */
import type { Mapping } from '../yaml/tree.ts';
import type { Config } from './config.ts';

/**
 * A task as plain data, under the names of its YAML: `resources`, `num_nodes`, `setup`, `run`, `envs` and so on. Members
 * that a policy does not know are to be left as they are; those that start with `_` are SkyPilot's own.
 */
export type Task = { [name: string]: unknown };

/** Who the request is from. SkyPilot's server says so, its client does not. */
export interface User {
  /** A hash. */
  readonly id: string;
  readonly name: string;
  /** Such as `system`; `null` when SkyPilot does not say. */
  readonly userType: string | null;
  readonly preferredWorkspace: string | null;
}

/** What was said on the command line. */
export interface RequestOptions {
  /** `null` when the user gave none. */
  readonly clusterName: string | null;
  /** Minutes; below 0 and `null` = no autostop was asked for. */
  readonly idleMinutesToAutostop: number | null;
  /** The cluster is to be torn down instead of stopped. */
  readonly down: boolean;
  readonly dryrun: boolean;
}

/** The names that SkyPilot gives to requests. There may be further ones. */
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

/** A request of a user. Each policy has a copy of its own, and may change task and configuration in place. */
export interface UserRequest {
  readonly task: Task;
  readonly skypilotConfig: Config;
  /** One of `REQUEST_NAMES`, or one that a later SkyPilot has. */
  readonly requestName: string;
  /** `null` for jobs and services. */
  readonly requestOptions: RequestOptions | null;
  /** Whether the user's own machine asks, before the server does with the result. */
  readonly atClientSide: boolean;
  /** `null` at the client's side. */
  readonly user: User | null;
  readonly clientApiVersion: number | null;
  /** May be `unknown`. */
  readonly clientVersion: string | null;
}

/** What becomes of a request. */
export class MutatedUserRequest {
  readonly task: Task;
  readonly skypilotConfig: Config | Mapping;

  constructor(task: Task, skypilotConfig: Config | Mapping) {
    this.task = task;
    this.skypilotConfig = skypilotConfig;
  }
}
