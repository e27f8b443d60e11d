/**
 * A task as SkyPilot sends it to its admin policy: what decides something is in one form and has its defaults, the
 * rest stays as written. Not done here, because it needs the machine or a catalog: accelerators by their memory,
 * storages, `service`, logins to registries, the commit of the `workdir`. Source: SkyPilot 0.13, `Task`.
 */
import { YamlDocument } from '../../yaml/document.ts';
import { isMapping, type Mapping, setMember, valueAt } from '../../yaml/tree.ts';
import { pythonNumber } from './sent-forms.ts';
import { type AutostopFlags, resourcesAsSent } from './sent-resources.ts';

export interface SentTask {
  readonly task: Mapping;
  /** As SkyPilot copies it into the options of the request. */
  readonly autostop: AutostopFlags;
}

const NO_FLAGS: AutostopFlags = { idleMinutes: null, down: false };
const DEFAULT_HOOK_SECONDS = 3600;
const HOOK_EVENTS = ['stop', 'preemption', 'down'];

/** In the order in which SkyPilot writes them. */
const ORDER = [
  ...['name', 'resources', 'config', 'service', 'num_nodes', 'inputs', 'outputs', 'setup', 'workdir'],
  ...['event_callback', 'run', 'envs', 'secrets', 'managed_secrets', 'file_mounts', 'file_mounts_mapping'],
  ...['volumes', 'volume_mounts', 'api_server_access', '_metadata', '_user_specified_yaml'],
];

/** In these, variables of the task are replaced by their values. */
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
  for (const name of [...ORDER, ...Object.keys(written).filter((one) => !ORDER.includes(one))]) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value !== undefined && value !== null) {
      setMember(task, name, WITH_VARIABLES.includes(name) ? replaced(value, variables) : value);
    }
  }
  return { task, autostop };
}

/** SkyPilot sends the name of no region as `null`, which a mapping of names cannot hold. */
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

/** `config` moves into the resources, except for its hooks; a hook of autostop becomes one of them. */
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
  const copy: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(written)) {
    setMember(copy, name, textOf(value, valueAt(texts, [name])));
  }
  return copy;
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

/** Secrets without a value are names of secrets that the server keeps. */
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

/** A list of commands is one script. */
function linesOf(commands: unknown): unknown {
  return Array.isArray(commands) && commands.every((line) => typeof line === 'string')
    ? commands.join('\n')
    : commands;
}

const VARIABLE = /\$\{?\b([a-zA-Z_][a-zA-Z0-9_]*)\b\}?/g;

/** SkyPilot replaces variables in the JSON of a value. If that is no JSON any more, SkyPilot refuses the task. */
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
