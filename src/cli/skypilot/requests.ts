/** Reads requests from a file: a request body, or a task or pipeline that SkyPilot would send. */

import { type Command, InvalidArgumentError } from 'commander';
import type { Problem } from '../../base/errors.ts';
import type { YamlDocument } from '../../base/yaml/document.ts';
import { isMapping, jsonIn, type Mapping } from '../../base/yaml/tree.ts';
import type { Places } from '../../skypilot/config/config-validation.ts';
import type { RequestFacts } from '../../skypilot/request/sent-request.ts';
import type { ReceivedRequest } from '../../skypilot/request/wire.ts';
import type { OriginOf } from '../../skypilot/schema/validate.ts';
import type { PipelineTask } from '../../skypilot/task/pipeline.ts';
import { flagNamed, readText, refuseStandardInputTwice, shownName, UsageError } from '../common/output.ts';
import { wholeNumber } from '../common/sources.ts';

/** A request and its task; `null` if it is not part of a pipeline. */
export interface Requested {
  readonly request: ReceivedRequest;
  readonly task: PipelineTask | null;
  /** The lines of the files; `undefined` for a request body. */
  readonly places?: Places;
}

interface RequestFile {
  readonly requests: readonly Requested[];
  /** Errors in a pipeline's header, which belongs to no request. SkyPilot rejects a file with an error. */
  readonly problems: readonly Problem[];
}

/** @throws UsageError */
export async function readRequests(
  file: string,
  flags: RequestFlags,
  maxBytes: number,
): Promise<RequestFile> {
  const { skypilotConfig } = flags;
  refuseStandardInputTwice([file, skypilotConfig]);
  const text = await readText(file, maxBytes);
  if (text.trim() === '') {
    throw new UsageError(`${shownName(file)}: expected a request or a task, got nothing`);
  }
  const body = bodyOf(text);
  const given = REQUEST_FLAGS.filter((name) => flags[name] !== undefined);
  if (body !== undefined && given.length > 0) {
    const names = given.map(flagNamed).join(', ');
    throw new UsageError(`${shownName(file)}: ${names} apply to a task, but this is a request body`);
  }
  const config = skypilotConfig === undefined ? '{}' : await readText(skypilotConfig, maxBytes);
  return requestsOf({ text, body, config }, flags, file);
}

async function requestsOf(
  { text, body, config }: { text: string; body: unknown; config: string },
  flags: RequestFlags,
  file: string,
): Promise<RequestFile> {
  const { decodeRequest, InvalidBodyError } = await import('../../skypilot/request/wire.ts');
  const { FactsError, requestAsSent } = await import('../../skypilot/request/sent-request.ts');
  const { tasksOf } = await import('../../skypilot/task/pipeline.ts');
  const { YamlError } = await import('../../base/yaml/tree.ts');
  try {
    if (body !== undefined) {
      return { requests: [{ request: decodeRequest(body), task: null }], problems: [] };
    }
    const { YamlDocument: Document } = await import('../../base/yaml/document.ts');
    const originsIn =
      (name: string, document: YamlDocument): OriginOf =>
      (path) => ({ kind: 'file', file: shownName(name), line: document.lineOf(path) });
    const requests = tasksOf(text).map((task) => ({
      request: requestAsSent(task, config, flags),
      task: task.of === 1 ? null : task,
      places: {
        task: originsIn(file, task.document),
        writtenTask: task.document.typed as Mapping,
        skypilotConfig: originsIn(flags.skypilotConfig ?? file, Document.parse(config)),
      },
    }));
    return { requests, problems: await headerProblems(text, shownName(file)) };
  } catch (thrown) {
    if (thrown instanceof FactsError) {
      throw new UsageError(`${shownName(file)}: ${thrown.message}`);
    }
    if (thrown instanceof YamlError) {
      throw new UsageError(`${shownName(file)}: task: expected YAML, and ${thrown.message}`);
    }
    if (!(thrown instanceof InvalidBodyError)) {
      throw thrown;
    }
    const { message } = thrown;
    const { skypilotConfig } = flags;
    const isConfig = skypilotConfig !== undefined && message.startsWith('skypilot_config:');
    throw new UsageError(`${shownName(isConfig ? skypilotConfig : file)}: ${message}`);
  }
}

async function headerProblems(text: string, file: string): Promise<Problem[]> {
  const { pipelineProblems } = await import('../../skypilot/task/pipeline.ts');
  return pipelineProblems(text).map(({ severity, line, message }) => ({
    severity,
    message,
    origin: { kind: 'file', file, line },
  }));
}

/** A JSON task has no members of these names. */
function bodyOf(text: string): unknown {
  const body = jsonIn(text);
  return typeof body === 'string' || (isMapping(body) && ('task' in body || 'skypilot_config' in body))
    ? body
    : undefined;
}

export interface RequestFlags extends RequestFacts {
  readonly skypilotConfig?: string;
}

/** Flags that apply to a task only. */
const REQUEST_FLAGS = [
  ...(['skypilotConfig', 'requestName', 'clusterName', 'idleMinutes', 'down', 'dryRun'] as const),
  ...(['clientSide', 'user', 'workspace', 'clientVersion', 'clientApiVersion'] as const),
];

const MAX_NUMBER = 999_999_999;

export function addRequestFlags(command: Command): Command {
  return command
    .option('--skypilot-config <file>', 'For a task: the configuration, in YAML. Default: empty.')
    .option(
      '--request-name <name>',
      'For a task: the request name. Default: launch, or jobs.launch for a pipeline.',
    )
    .option('--cluster-name <name>', 'For a task: the cluster name.')
    .option(
      '--idle-minutes <minutes>',
      'For a task: minutes of idleness before autostop, as sky launch --idle-minutes-to-autostop sets them.',
      wholeNumber('--idle-minutes', -1, MAX_NUMBER),
    )
    .option('--down', 'For a task: tear the cluster down instead of stopping it.')
    .option('--dry-run', 'For a task: a dry run of the launch.')
    .option(
      '--user <id[:name]>',
      'For a task: the user. Default: 00000000:user. Without a name, the id is the name.',
      userOf,
    )
    .option(
      '--workspace <name>',
      'For a task: the active workspace. Default: that of the configuration, otherwise default.',
    )
    .option('--client-side', 'For a task: send it as a client does, without user and versions.')
    .option('--client-version <version>', 'For a task: the version of the client. Default: unknown.')
    .option(
      '--client-api-version <number>',
      'For a task: the API version of the client. Default: none, as when SkyPilot launches.',
      wholeNumber('--client-api-version', 0, MAX_NUMBER),
    );
}

/** `id:name`, or one text for both. */
function userOf(text: string): { id: string; name: string } {
  const colon = text.indexOf(':');
  const [id, name] = colon === -1 ? [text, text] : [text.slice(0, colon), text.slice(colon + 1)];
  if (id === '' || name === '') {
    throw new InvalidArgumentError('expected an id, or id:name');
  }
  return { id, name };
}
