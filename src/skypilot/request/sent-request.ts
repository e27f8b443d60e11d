/**
 * The request that SkyPilot would send about a task. Source: SkyPilot 0.13, its client, server and requests.
 */
import { YamlDocument } from '../../base/yaml/document.ts';
import { isMapping, type Mapping, mapMembers, member, setMember, valueAt } from '../../base/yaml/tree.ts';
import type { PipelineTask } from '../task/pipeline.ts';
import { pythonNumber } from './sent-forms.ts';
import { type AutostopFlags, resourcesAsSent } from './sent-resources.ts';
import type { User } from './user-request.ts';
import { decodeRequest, encodeRequest, type ReceivedRequest } from './wire.ts';

/** Facts about a request besides its task. All are optional. */
export interface RequestFacts {
  /** Default: `launch`, or `jobs.launch` for a pipeline. */
  readonly requestName?: string | undefined;
  readonly clusterName?: string | undefined;
  readonly idleMinutes?: number | undefined;
  readonly down?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
  /** Sent by the client, which knows neither its user nor versions. */
  readonly clientSide?: boolean | undefined;
  /** Default: `DEFAULT_USER`, since a server always knows its user. */
  readonly user?: Pick<User, 'id' | 'name'> | undefined;
  /** Default: the workspace of the configuration, else `default`. */
  readonly workspace?: string | undefined;
  readonly clientApiVersion?: number | undefined;
  /** Default: `unknown`, which SkyPilot's server sends except to validate. */
  readonly clientVersion?: string | undefined;
}

/** A placeholder. */
const DEFAULT_USER = { id: '00000000', name: 'user' } as const;

/** Jobs and services have no options. */
const WITHOUT_OPTIONS: ReadonlySet<string> = new Set([
  'jobs.launch',
  'jobs.pool_apply',
  'serve.up',
  'serve.update',
]);

/** The facts contradict each other; the message names them. */
export class FactsError extends Error {
  override readonly name = 'FactsError';
}

/** `config`: a whole configuration, in YAML. @throws InvalidBodyError @throws FactsError */
export function requestAsSent(part: PipelineTask, config: string, facts: RequestFacts): ReceivedRequest {
  const { clusterName, idleMinutes, down, dryRun, clientSide = false } = facts;
  // SkyPilot launches a single task; several tasks are a managed job.
  const requestName = facts.requestName ?? (part.of === 1 ? 'launch' : 'jobs.launch');
  const hasOptions = !WITHOUT_OPTIONS.has(requestName);
  const given = {
    'a cluster name': clusterName,
    'idle minutes': idleMinutes,
    down: down || undefined,
    'a dry run': dryRun || undefined,
  };
  const [unusable] = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (!hasOptions && unusable !== undefined) {
    throw new FactsError(`${requestName} has no options, such as ${unusable}; they belong to launch`);
  }
  const versions = [facts.clientApiVersion, facts.clientVersion, facts.user];
  if (clientSide && versions.some((one) => one !== undefined)) {
    throw new FactsError('a client sends neither its user nor its versions; the server does');
  }
  const flags = { idleMinutes: idleMinutes ?? null, down: down ?? false };
  const { task, autostop } = taskAsSent(part.document, flags);
  const body = encodeRequest({
    task: taskText(task),
    skypilotConfig: config,
    requestName,
    requestOptions: hasOptions
      ? {
          clusterName: clusterName ?? null,
          idleMinutesToAutostop: autostop.idleMinutes,
          down: autostop.down,
          dryrun: dryRun ?? false,
        }
      : null,
    atClientSide: clientSide,
    user: clientSide ? null : { ...(facts.user ?? DEFAULT_USER), userType: null, preferredWorkspace: null },
    clientApiVersion: facts.clientApiVersion ?? null,
    clientVersion: clientSide ? null : (facts.clientVersion ?? 'unknown'),
  });
  const request = decodeRequest(JSON.parse(body));
  return { ...request, skypilotConfig: withWorkspace(request.skypilotConfig, facts.workspace) };
}

/** SkyPilot sends the chosen workspace, even if the configuration names none. */
function withWorkspace(config: YamlDocument, workspace: string | undefined): YamlDocument {
  const value = isMapping(config.value) ? config.value : {};
  return config.with({ ...value, active_workspace: workspace ?? value.active_workspace ?? 'default' });
}

interface SentTask {
  readonly task: Mapping;
  /** As SkyPilot copies it into the options of the request. */
  readonly autostop: AutostopFlags;
}

const NO_FLAGS: AutostopFlags = { idleMinutes: null, down: false };
const DEFAULT_HOOK_SECONDS = 3600;
const HOOK_EVENTS = ['stop', 'preemption', 'down'];

/** In the order in which SkyPilot writes them. */
const TASK_ORDER = [
  'name',
  'resources',
  'config',
  'service',
  'num_nodes',
  'inputs',
  'outputs',
  'setup',
  'workdir',
  'event_callback',
  'run',
  'envs',
  'secrets',
  'managed_secrets',
  'file_mounts',
  'file_mounts_mapping',
  'volumes',
  'volume_mounts',
  'api_server_access',
  '_metadata',
  '_user_specified_yaml',
];

/** Members in which variables of the task are replaced by their values. */
const WITH_VARIABLES = ['file_mounts', 'service', 'workdir', 'volumes'];

/** The document of one task; its value must be a mapping. */
export function taskAsSent(document: YamlDocument, flags: AutostopFlags = NO_FLAGS): SentTask {
  const written = document.value as Mapping;
  const texts = document.texts;
  const envs = textsOf(written.envs, valueAt(texts, ['envs']));
  const secrets = secretsOf(written, texts);
  const { resources, autostop, hooks, config } = configured(written, flags);
  const values: Mapping = {
    ...written,
    ...secrets,
    pool: undefined,
    service: written.service ?? ((written.pool ?? undefined) && { pool: written.pool }),
    envs: isMapping(envs) && Object.keys(envs).length === 0 ? undefined : envs,
    resources,
    config: hooks.length > 0 ? { ...(isMapping(config) && config), hooks } : config,
    num_nodes: written.num_nodes ?? 1,
    setup: linesOf(written.setup),
    run: linesOf(written.run),
    file_mounts: written.file_mounts ?? {},
    volumes: written.volumes ?? {},
    api_server_access: written.api_server_access === true ? undefined : written.api_server_access,
    _user_specified_yaml: written._user_specified_yaml ?? YamlDocument.from(written).toString(),
  };
  const variables = { ...(isMapping(envs) && envs), ...(isMapping(secrets.secrets) && secrets.secrets) };
  const task: Record<string, unknown> = {};
  for (const name of [...TASK_ORDER, ...Object.keys(written).filter((one) => !TASK_ORDER.includes(one))]) {
    const value = member(values, name);
    if (value !== undefined && value !== null) {
      setMember(task, name, WITH_VARIABLES.includes(name) ? replaced(value, variables) : value);
    }
  }
  return { task, autostop };
}

/** SkyPilot sends no region as the name `null`, which a mapping of names cannot hold. */
export function taskText(task: Mapping): string {
  const placeholder = `null-${Math.random().toString(36).slice(2)}`;
  const named = (resources: unknown): unknown => {
    if (!isMapping(resources)) {
      return resources;
    }
    const { image_id } = resources;
    const copy = { ...resources };
    if (isMapping(image_id) && Object.hasOwn(image_id, 'null')) {
      const { null: image, ...others } = image_id;
      copy.image_id = { [placeholder]: image, ...others };
    }
    for (const group of ['any_of', 'ordered']) {
      const alternatives = copy[group];
      if (Array.isArray(alternatives)) {
        copy[group] = alternatives.map(named);
      }
    }
    return copy;
  };
  const shown = isMapping(task.resources) ? { ...task, resources: named(task.resources) } : task;
  return YamlDocument.from(shown).toString().replaceAll(placeholder, 'null');
}

/** `config` moves into the resources, except for its hooks; a hook of autostop joins them. */
function configured(
  written: Mapping,
  flags: AutostopFlags,
): { resources: unknown; autostop: AutostopFlags; hooks: Mapping[]; config: unknown } {
  const own = written.resources ?? {};
  const config = written.config ?? {};
  if (!isMapping(own) || !isMapping(config)) {
    return { resources: written.resources, autostop: flags, hooks: [], config: written.config };
  }
  const { hooks: writtenHooks, ...overrides } = config;
  const hasOverrides = Object.keys(overrides).length > 0;
  const isTwice = hasOverrides && (own._cluster_config_overrides ?? null) !== null;
  const moved = hasOverrides && !isTwice ? { ...own, _cluster_config_overrides: overrides } : own;
  const { resources, autostop } = resourcesAsSent(moved, flags);
  const hooks = [
    ...(Array.isArray(writtenHooks) ? writtenHooks.filter(isMapping).map(hookAsSent) : []),
    ...hookOfAutostop(own),
  ];
  return { resources, autostop, hooks, config: isTwice ? overrides : undefined };
}

function hookAsSent({ run, events, timeout }: Mapping): Mapping {
  const named = Array.isArray(events) && events.length > 0 ? events : HOOK_EVENTS;
  return { run, events: named, timeout: timeout ?? DEFAULT_HOOK_SECONDS };
}

function hookOfAutostop(resources: Mapping): Mapping[] {
  const { any_of, ordered } = resources;
  const [first] = [any_of, ordered].filter(Array.isArray).flat();
  const { autostop } = { ...resources, ...(isMapping(first) && first) };
  if (!isMapping(autostop) || (autostop.hook ?? null) === null) {
    return [];
  }
  const { hook, hook_timeout: timeout, down } = autostop;
  return [hookAsSent({ run: hook, events: [down === true ? 'down' : 'stop'], timeout })];
}

/** Names and values as texts, as Python writes them. */
function textsOf(written: unknown, texts: unknown): unknown {
  if (!isMapping(written)) {
    return written ?? undefined;
  }
  return mapMembers(written, (value, name) => textOf(value, valueAt(texts, [name])));
}

function textOf(value: unknown, text: unknown): unknown {
  switch (typeof value) {
    case 'boolean':
      return value ? 'True' : 'False';
    case 'number':
    case 'bigint':
      return pythonNumber(value, typeof text === 'string' && /[.e]/i.test(text) && !/^0x/i.test(text));
    default:
      return value;
  }
}

/** Secrets without a value are names of secrets on the server. */
function secretsOf(written: Mapping, texts: unknown): Mapping {
  const own = textsOf(written.secrets, valueAt(texts, ['secrets']));
  if (!isMapping(own)) {
    return { secrets: own };
  }
  const entries = Object.entries(own);
  const inline = Object.fromEntries(entries.filter(([, value]) => value !== null));
  const kept = entries
    .filter(([, value]) => value === null)
    .map(([name]) => (name.startsWith('secrets:') ? name : `secrets:${name}`));
  if (kept.length === 0) {
    return { secrets: entries.length === 0 ? undefined : inline };
  }
  const { managed_secrets } = written;
  return Object.keys(inline).length === 0
    ? { secrets: kept }
    : {
        secrets: inline,
        managed_secrets: [...(Array.isArray(managed_secrets) ? managed_secrets : []), ...kept],
      };
}

/** Joins a list of commands to one script. */
function linesOf(commands: unknown): unknown {
  return Array.isArray(commands) && commands.every((line) => typeof line === 'string')
    ? commands.join('\n')
    : commands;
}

const VARIABLE = /\$\{?\b([a-zA-Z_][a-zA-Z0-9_]*)\b\}?/g;

/**
 * SkyPilot replaces variables in the JSON of a value. If the result is not JSON, SkyPilot refuses the task.
 */
function replaced(value: unknown, variables: Mapping): unknown {
  try {
    const json = JSON.stringify(value);
    const text = json.replace(VARIABLE, (found, name: string) =>
      Object.hasOwn(variables, name) && typeof variables[name] === 'string' ? variables[name] : found,
    );
    return text === json ? value : (JSON.parse(text) as unknown);
  } catch {
    return value;
  }
}
