import { existsSync } from 'node:fs';
import { z } from 'zod';
import {
  AdminPolicy,
  Config,
  isMapping,
  MutatedUserRequest,
  PolicyRejected,
  type PolicyServices,
  ServerConfigFile,
  taskConfigsOf,
  type UserRequest,
} from '../src/skypilot/index.ts';

const KEYS = /^[^.\s,]+(?:\.[^.\s,]+)*$/;

const options = z
  .object({
    restrict_overrides: z.array(z.string().regex(KEYS)).default([]).meta({
      description:
        'The keys of the configuration that users may override, each with everything below it; * stands for any one key. Empty = none.',
      expected: 'a comma-separated list of keys such as kubernetes.pod_config or docker',
    }),
    restrict_overrides_server_config: z.string().min(1).optional().meta({
      description:
        "The configuration file of SkyPilot's API server (~/.sky/config.yaml there), or a copy. Must be set. Read again when it changes.",
      file: true,
      expected: 'the path of a file',
    }),
    restrict_overrides_action: z.enum(['reject', 'reset']).default('reject').meta({
      description:
        'What happens to a request that overrides another key. reject: it is refused, and the user reads the key. reset: the value of the server counts.',
    }),
  })
  .superRefine(({ restrict_overrides_server_config: file }, check) => {
    const message =
      file === undefined
        ? 'RestrictOverridesPolicy needs restrict_overrides_server_config, and it is not set'
        : mistakeIn(file);
    if (message !== undefined) {
      check.addIssue({ code: 'custom', path: ['restrict_overrides_server_config'], message });
    }
  });

type Options = z.infer<typeof options>;
type Keys = readonly string[];

/**
 * Keys that cannot be overrides: SkyPilot's server accepts them from no client, and sets the workspace of
 * each request itself. Source: SkyPilot, `SKIPPED_CLIENT_OVERRIDE_KEYS`, and the requests of 0.13.
 */
const NEVER_OVERRIDES: readonly Keys[] = [
  ['active_workspace'],
  ['api_server'],
  ['allowed_clouds'],
  ['workspaces'],
  ['db'],
  ['daemons'],
  ['metrics'],
  ['jobs', 'controller', 'consolidation_mode'],
  ['serve', 'controller', 'consolidation_mode'],
  ['jobs', 'controller', 'controller_logs_gc_retention_hours'],
  ['jobs', 'controller', 'task_logs_gc_retention_hours'],
  ['slurm', 'cluster_configs'],
  ['slurm', 'submit_as_user'],
];

/** Below these keys SkyPilot appends the client's lists to the server's. */
const JOINED = ['pod_config', 'custom_metadata'];

/** Maximum number of keys in a rejection. */
const MAX_NAMED = 5;
/** SkyPilot's own configurations have some ten levels. */
const MAX_DEPTH = 100;

/**
 * Lets users override only certain keys of the server's configuration: with their own configuration files,
 * with `--config`, and with the `config` of a task. Client-side calls are not checked: their settings reach
 * the server merged, and it calls the policy again.
 *
 * A policy before this one that changes other keys makes them overrides as well, and so does one that changed
 * them in an earlier step of the same request. Allow these keys, or use `reset` and name this policy first.
 */
export class RestrictOverridesPolicy extends AdminPolicy<Options> {
  static override readonly options = options;
  /** Changes by other policies are not the user's overrides. */
  static override readonly askedOnce = true;

  readonly #server: ServerConfigFile;
  readonly #allowed: readonly Keys[];

  constructor(values: Options, services: PolicyServices) {
    super(values, services);
    this.#server = new ServerConfigFile(values.restrict_overrides_server_config ?? '');
    this.#allowed = [...NEVER_OVERRIDES, ...values.restrict_overrides.map((key) => key.split('.'))];
  }

  override async validateAndMutate({
    task,
    skypilotConfig,
    atClientSide,
  }: UserRequest): Promise<MutatedUserRequest> {
    if (atClientSide) {
      return new MutatedUserRequest(task, skypilotConfig);
    }
    const server = await this.#server.current();
    const inConfig = this.#overrides(skypilotConfig.toDict(), server);
    const inTask = taskConfigsOf(task).map((held) => ({
      ...held,
      overrides: this.#overrides(held.config, server),
    }));
    const all = [...inConfig, ...inTask.flatMap(({ overrides }) => overrides)];
    if (all.length > 0 && this.options.restrict_overrides_action === 'reject') {
      throw new PolicyRejected(this.#reason(all));
    }
    const own = Config.fromDict(server);
    for (const keys of inConfig) {
      const value = own.getNested(keys);
      if (value === undefined) {
        skypilotConfig.unset(keys);
      } else {
        skypilotConfig.assign(keys, value);
      }
    }
    for (const { config, overrides, replace } of inTask) {
      if (overrides.length > 0) {
        const rest = Config.fromDict(config);
        for (const keys of overrides) {
          rest.unset(keys);
        }
        replace(rest.toDict());
      }
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }

  /**
   * The keys that differ from the server's and are not allowed. A client cannot remove a key: a missing one
   * is no override.
   */
  #overrides(found: unknown, server: unknown, keys: Keys = []): Keys[] {
    if (this.#allowed.some((allowed) => isWithin(keys, allowed))) {
      return [];
    }
    if (isMapping(found) && (isMapping(server) || server === undefined || server === null)) {
      if (keys.length > MAX_DEPTH) {
        throw new PolicyRejected('The configuration is too deep to be compared with that of the server.');
      }
      return Object.entries(found).flatMap(([key, value]) =>
        this.#overrides(value, isMapping(server) && Object.hasOwn(server, key) ? server[key] : undefined, [
          ...keys,
          key,
        ]),
      );
    }
    return isSame(found, server, isJoined(keys)) ? [] : [keys];
  }

  #reason(overrides: readonly Keys[]): string {
    const named = [...new Set(overrides.map(shown))];
    const more = named.length > MAX_NAMED ? ` and ${named.length - MAX_NAMED} more` : '';
    const { restrict_overrides: allowed } = this.options;
    const instead =
      allowed.length === 0 ? 'Nothing of it may be overridden.' : `You may override ${allowed.join(', ')}.`;
    return `The configuration of the server must not be overridden: ${named.slice(0, MAX_NAMED).join(', ')}${more}. ${instead}`;
  }
}

function mistakeIn(file: string): string | undefined {
  if (!existsSync(file)) {
    // Reported for every option that names a file.
    return undefined;
  }
  try {
    new ServerConfigFile(file);
    return undefined;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
}

/** Whether keys are an allowed path, or below it. A key may contain dots, and then matches several parts. */
function isWithin([key, ...below]: Keys, allowed: Keys): boolean {
  if (allowed.length === 0) {
    return true;
  }
  return (
    key !== undefined &&
    allowed.some(
      (part, index) =>
        ((index === 0 && part === '*') || allowed.slice(0, index + 1).join('.') === key) &&
        isWithin(below, allowed.slice(index + 1)),
    )
  );
}

function isJoined(keys: Keys): boolean {
  return keys.some((key, index) => key === 'kubernetes' && JOINED.includes(keys[index + 1] ?? ''));
}

/**
 * Whether a value equals the server's. Joined lists may repeat it several times: a configuration is merged
 * with itself by the controller of jobs, or by a client on the server's machine.
 */
function isSame(found: unknown, server: unknown, joined: boolean): boolean {
  if (Array.isArray(found) && Array.isArray(server)) {
    const { length } = server;
    const fits = found.length === length || (joined && length > 0 && found.length > 0);
    return (
      fits &&
      found.length % (length || 1) === 0 &&
      found.every((one, at) => isSame(one, server[at % length], joined))
    );
  }
  if (isMapping(found) && isMapping(server)) {
    const names = Object.keys(found);
    return (
      names.length === Object.keys(server).length &&
      names.every((name) => Object.hasOwn(server, name) && isSame(found[name], server[name], joined))
    );
  }
  return Object.is(found, server);
}

/** Keys as users write them; keys that are not plain names are quoted. */
function shown(keys: Keys): string {
  return keys
    .map((key) => (/^[\w@:/-]{1,100}$/.test(key) ? key : JSON.stringify(key.slice(0, 100))))
    .join('.')
    .slice(0, 500);
}
