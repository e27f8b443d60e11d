/**
 * What goes over the wire between SkyPilot and a RESTful admin policy: JSON in a JSON text, and YAML in its members.
 * Source: SkyPilot 0.13, its client's and its server's requests.
 */
import { z } from 'zod';
import { YamlDocument } from '../yaml/document.ts';
import { YamlError } from '../yaml/error.ts';
import { isMapping, type Mapping } from '../yaml/tree.ts';
import type { Config } from './config.ts';
import type { RequestOptions, Task, User } from './user-request.ts';

/** The body is no request. The message may be shown to whoever sent it: it holds no piece of it. */
export class InvalidBodyError extends Error {
  override readonly name = 'InvalidBodyError';
}

/** Absent and `null` are one thing here. */
const orNull = <Value>(value: Value | null | undefined): Value | null => value ?? null;
const wholeNumber = z.int().nullish().transform(orNull);
const text = z.string().nullish().transform(orNull);

/** What the JSON text in a body holds. Unknown members are left out: there are new ones in every other version. */
export const envelopeSchema = z
  .object({
    task: z.string().meta({
      description:
        'The task, in YAML: one document. About a pipeline SkyPilot asks once for each of its tasks.',
    }),
    skypilot_config: z.string().meta({ description: 'The whole configuration, in YAML.' }),
    request_name: z
      .string()
      .default('other')
      .meta({ description: 'What the user does.', examples: ['launch', 'jobs.launch'] }),
    request_options: z
      .object({
        cluster_name: text,
        idle_minutes_to_autostop: wholeNumber,
        down: z.boolean().nullish(),
        dryrun: z.boolean().nullish(),
      })
      .nullish()
      .meta({ description: '`null` for jobs and services.' }),
    at_client_side: z.boolean().default(false).meta({ description: "Whether the user's own machine asks." }),
    user: z
      .string()
      .default('')
      .meta({ description: "A mapping in YAML with `id` and `name`; empty at the client's side." }),
    client_api_version: wholeNumber,
    client_version: text,
  })
  .meta({ description: 'The request of a user of SkyPilot.' });

const userSchema = z.object({
  id: z.string().min(1),
  name: z.string().default(''),
  user_type: text.catch(null),
  preferred_workspace: text.catch(null),
});

/** Of each member that is YAML: the longest scripts have some thousand lines, which are one token. */
const MAX_LENGTH = 1_048_576;
/** A configuration or a task has some hundred lines; two thousand are read in the time that others may be kept waiting. */
const MAX_TOKENS = 10_000;

/** A request as it came: task and configuration with the form that they were written in. */
export interface ReceivedRequest {
  readonly task: YamlDocument;
  readonly skypilotConfig: YamlDocument;
  readonly requestName: string;
  readonly requestOptions: RequestOptions | null;
  readonly atClientSide: boolean;
  readonly user: User | null;
  readonly clientApiVersion: number | null;
  readonly clientVersion: string | null;
}

/** What is answered: the two that a policy may change. */
export interface Reviewed {
  readonly task: Task;
  readonly skypilotConfig: Config;
}

/**
 * Reads the body of a request, as parsed from JSON: a text that is JSON once more, or the object itself.
 *
 * @throws InvalidBodyError
 */
export function decodeRequest(body: unknown): ReceivedRequest {
  const envelope = envelopeSchema.safeParse(typeof body === 'string' ? innerJson(body) : body);
  if (!envelope.success) {
    throw new InvalidBodyError(mistakeOf(envelope.error));
  }
  const { data } = envelope;
  const options = data.request_options;
  return {
    task: mappingOf('task', data.task),
    skypilotConfig: mappingOf('skypilot_config', data.skypilot_config),
    requestName: data.request_name,
    requestOptions: options
      ? {
          clusterName: options.cluster_name,
          idleMinutesToAutostop: options.idle_minutes_to_autostop,
          down: options.down ?? false,
          dryrun: options.dryrun ?? false,
        }
      : null,
    atClientSide: data.at_client_side,
    user: userOf(data.user),
    clientApiVersion: data.client_api_version,
    clientVersion: data.client_version,
  };
}

/** The body of an answer: a JSON text that holds JSON. What is equal to what came is written as it came. */
export function encodeAnswer(received: ReceivedRequest, { task, skypilotConfig }: Reviewed): string {
  const inner = {
    task: received.task.with(task).toString(),
    skypilot_config: received.skypilotConfig.with(skypilotConfig.toDict()).toString(),
  };
  return JSON.stringify(JSON.stringify(inner));
}

/** A body as SkyPilot sends it, for trying policies: `task` and `skypilotConfig` are YAML. */
export function encodeRequest(
  request: Omit<ReceivedRequest, 'task' | 'skypilotConfig'> & {
    readonly task: string;
    readonly skypilotConfig: string;
  },
): string {
  const { requestOptions: options, user } = request;
  return JSON.stringify(
    JSON.stringify({
      task: request.task,
      skypilot_config: request.skypilotConfig,
      request_name: request.requestName,
      request_options: options && {
        cluster_name: options.clusterName,
        idle_minutes_to_autostop: options.idleMinutesToAutostop,
        down: options.down,
        dryrun: options.dryrun,
      },
      at_client_side: request.atClientSide,
      user: user === null ? '' : yamlOf(user),
      client_api_version: request.clientApiVersion,
      client_version: request.clientVersion,
    }),
  );
}

function yamlOf({ id, name, userType, preferredWorkspace }: User): string {
  const mapping = { id, name, user_type: userType, preferred_workspace: preferredWorkspace };
  return YamlDocument.from(mapping).toString();
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  object: 'an object',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
};

/** The first mistake, by the name of the member; what it holds is not shown. */
function mistakeOf({ issues: [issue] }: z.ZodError): string {
  const where = issue === undefined || issue.path.length === 0 ? 'the body' : issue.path.join('.');
  const expected = issue?.code === 'invalid_type' ? KINDS[issue.expected] : undefined;
  return `${where}: expected ${expected ?? 'another value'}`;
}

function innerJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidBodyError('the body: expected JSON in the JSON text');
  }
}

function mappingOf(name: string, text: string): YamlDocument {
  const document = parsed(name, text);
  const { value } = document;
  if (isMapping(value)) {
    return document;
  }
  if (value === null) {
    return YamlDocument.from({});
  }
  throw new InvalidBodyError(`${name}: expected a mapping in YAML`);
}

function parsed(name: string, text: string): YamlDocument {
  if (text.length > MAX_LENGTH) {
    throw new InvalidBodyError(`${name}: expected YAML of at most ${MAX_LENGTH} characters`);
  }
  try {
    return YamlDocument.parse(text, MAX_TOKENS);
  } catch (thrown) {
    if (thrown instanceof YamlError) {
      throw new InvalidBodyError(`${name}: expected YAML, and ${thrown.message}`);
    }
    throw thrown;
  }
}

/** Empty at the client's side, which does not know who it is to the server. */
function userOf(text: string): User | null {
  const document = parsed('user', text);
  if (document.value === null) {
    return null;
  }
  const { texts } = document;
  const user = userSchema.safeParse(isMapping(texts) ? withoutEmpty(texts) : texts);
  if (!user.success) {
    throw new InvalidBodyError('user: expected a mapping with id and name');
  }
  const { id, name, user_type: userType, preferred_workspace: preferredWorkspace } = user.data;
  return { id, name, userType, preferredWorkspace };
}

/** An id of digits is a text, and `null` is nothing. */
function withoutEmpty(mapping: Mapping): Mapping {
  return Object.fromEntries(Object.entries(mapping).filter(([, value]) => value !== ''));
}
