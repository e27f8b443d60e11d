/** The request that SkyPilot would send about a task. Source: SkyPilot 0.13, its client, its server, and what they sent. */
import type { YamlDocument } from '../../yaml/document.ts';
import { isMapping } from '../../yaml/tree.ts';
import type { PipelineTask } from '../task/pipeline.ts';
import { taskAsSent, taskText } from './sent-task.ts';
import type { User } from './user-request.ts';
import { decodeRequest, encodeRequest, type ReceivedRequest } from './wire.ts';

/** What is known of a request besides its task. Everything is optional. */
export interface RequestFacts {
  /** Default: `launch`, or `jobs.launch` for a pipeline. */
  readonly requestName?: string | undefined;
  readonly clusterName?: string | undefined;
  readonly idleMinutes?: number | undefined;
  readonly down?: boolean | undefined;
  readonly dryrun?: boolean | undefined;
  /** The client asks: it knows neither its user nor versions. */
  readonly clientSide?: boolean | undefined;
  /** Default: `DEFAULT_USER`, since a server always knows its user. */
  readonly user?: Pick<User, 'id' | 'name'> | undefined;
  /** Default: that of the configuration, else `default`. */
  readonly workspace?: string | undefined;
  readonly clientApiVersion?: number | undefined;
  /** Default: `unknown`, which SkyPilot's server sends except to validate. */
  readonly clientVersion?: string | undefined;
}

/** Nobody in particular. */
export const DEFAULT_USER = { id: '00000000', name: 'user' } as const;

/** Jobs and services have no options. */
const WITHOUT_OPTIONS: ReadonlySet<string> = new Set([
  'jobs.launch',
  'jobs.pool_apply',
  'serve.up',
  'serve.update',
]);

/** The facts contradict each other; the message says which. */
export class FactsError extends Error {
  override readonly name = 'FactsError';
}

/** `config`: a whole configuration, in YAML. @throws InvalidBodyError @throws FactsError */
export function requestAsSent(part: PipelineTask, config: string, facts: RequestFacts): ReceivedRequest {
  const { clusterName, idleMinutes, down, dryrun, clientSide = false } = facts;
  // SkyPilot launches a single task; several tasks are a managed job.
  const requestName = facts.requestName ?? (part.of === 1 ? 'launch' : 'jobs.launch');
  const hasOptions = !WITHOUT_OPTIONS.has(requestName);
  const given = {
    'a cluster name': clusterName,
    'idle minutes': idleMinutes,
    down: down || undefined,
    'a dry run': dryrun || undefined,
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
          dryrun: dryrun ?? false,
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

/** SkyPilot sends the workspace that it has chosen, whether the configuration names one or not. */
function withWorkspace(config: YamlDocument, workspace: string | undefined): YamlDocument {
  const value = isMapping(config.value) ? config.value : {};
  return config.with({ ...value, active_workspace: workspace ?? value.active_workspace ?? 'default' });
}
