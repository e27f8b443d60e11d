/**
 * The protocol between SkyPilot and a RESTful admin policy: a JSON string that contains JSON, with YAML in
 * its members. Source: SkyPilot 0.13, requests of its client and its server.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import { YamlDocument } from '../../base/yaml/document.ts';
import { isMapping, type Mapping, member, YamlError } from '../../base/yaml/tree.ts';
import type { RequestOptions, User } from './user-request.ts';

/** The body is invalid. The message is safe to return: it contains nothing of the body. */
export class InvalidBodyError extends Error {
  override readonly name = 'InvalidBodyError';
}

/** Absent means the same as `null`. */
const orNull = <Value>(value: Value | null | undefined): Value | null => value ?? null;
const wholeNumber = z.int().nullish().transform(orNull);
const text = z.string().nullish().transform(orNull);

/** The JSON inside the body. Unknown members are ignored: new versions add some. */
export const envelopeSchema = z
  .object({
    task: z.string().meta({
      description: 'The task, one YAML document. For a pipeline, SkyPilot sends one request per task.',
    }),
    skypilot_config: z.string().meta({ description: 'The whole configuration, as YAML.' }),
    request_name: z
      .string()
      .default('other')
      .meta({ description: 'The command of the user.', examples: ['launch', 'jobs.launch'] }),
    request_options: z
      .object({
        cluster_name: text,
        idle_minutes_to_autostop: wholeNumber,
        down: z.boolean().nullish(),
        dryrun: z.boolean().nullish(),
      })
      .nullish()
      .meta({ description: '`null` for jobs and services.' }),
    at_client_side: z.boolean().default(false).meta({ description: 'Whether the client sends the request.' }),
    user: z
      .string()
      .default('')
      .meta({ description: 'A YAML mapping with `id` and `name`; empty on the client side.' }),
    client_api_version: wholeNumber,
    client_version: text,
  })
  .meta({ description: 'A request of a SkyPilot user.' });

const userSchema = z.object({
  id: z.string().min(1),
  name: z.string().default(''),
  user_type: text.catch(null),
  preferred_workspace: text.catch(null),
});

/** Maximum length of each YAML member. Long scripts are a single token. */
const MAX_LENGTH = 1_048_576;
/**
 * Real tasks and configurations have some hundred lines, a large pod_config two thousand, with seven to ten
 * tokens each. Parsing this many does not block the process for long.
 */
const MAX_TOKENS = 25_000;
/** The user has four members. */
const MAX_USER_TOKENS = 1_000;

/** A decoded request. Task and configuration keep their formatting. */
export interface ReceivedRequest {
  readonly task: YamlDocument;
  readonly skypilotConfig: YamlDocument;
  readonly requestName: string;
  readonly requestOptions: RequestOptions | null;
  readonly atClientSide: boolean;
  readonly user: User | null;
  /** SkyPilot sent an empty `user_type`: the user is not authenticated, and any client may claim this id. */
  readonly isUserUnverified?: boolean;
  readonly clientApiVersion: number | null;
  readonly clientVersion: string | null;
}

/**
 * Decodes the parsed JSON body of a request: a string that contains JSON, or the object itself.
 *
 * @throws InvalidBodyError
 */
export function decodeRequest(body: unknown): ReceivedRequest {
  const steps = decoding(body);
  let step = steps.next();
  while (step.done !== true) {
    step = steps.next();
  }
  return step.value;
}

/** The same, yielding to other requests after each YAML text. @throws InvalidBodyError */
export async function decodeYielding(body: unknown): Promise<ReceivedRequest> {
  const steps = decoding(body);
  let step = steps.next();
  while (step.done !== true) {
    await nextTurn();
    step = steps.next();
  }
  return step.value;
}

function* decoding(body: unknown): Generator<undefined, ReceivedRequest> {
  const envelope = envelopeSchema.safeParse(typeof body === 'string' ? innerJson(body) : body);
  if (!envelope.success) {
    throw new InvalidBodyError(mistakeOf(envelope.error));
  }
  const { data } = envelope;
  const options = data.request_options;
  const task = mappingOf('task', data.task);
  yield;
  const skypilotConfig = mappingOf('skypilot_config', data.skypilot_config);
  yield;
  return {
    task,
    skypilotConfig,
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
    ...userOf(data.user),
    clientApiVersion: data.client_api_version,
    clientVersion: data.client_version,
  };
}

/** The body of a response: a JSON string that contains JSON. Unchanged parts keep their formatting. */
export function encodeTexts(task: YamlDocument, skypilotConfig: YamlDocument): string {
  const inner = { task: task.toString(), skypilot_config: skypilotConfig.toString() };
  return JSON.stringify(JSON.stringify(inner));
}

/** A request body as SkyPilot sends it, for trying policies. `task` and `skypilotConfig` are YAML. */
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
      user: user === null ? '' : yamlOf(user, request.isUserUnverified === true),
      client_api_version: request.clientApiVersion,
      client_version: request.clientVersion,
    }),
  );
}

function yamlOf({ id, name, userType, preferredWorkspace }: User, isUnverified: boolean): string {
  const type = userType === null && !isUnverified ? {} : { user_type: userType };
  const mapping = { id, name, ...type, preferred_workspace: preferredWorkspace };
  return YamlDocument.from(mapping).toString();
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  object: 'an object',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
};

/** The first problem, with the name of the member but not its value. */
function mistakeOf({ issues: [issue] }: z.ZodError): string {
  const where = issue === undefined || issue.path.length === 0 ? 'the body' : issue.path.join('.');
  const expected = issue?.code === 'invalid_type' ? KINDS[issue.expected] : undefined;
  return `${where}: expected ${expected ?? 'another value'}`;
}

function innerJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidBodyError('the body: expected JSON in the JSON string');
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
  throw new InvalidBodyError(`${name}: expected a YAML mapping`);
}

function parsed(name: string, text: string, maxTokens = MAX_TOKENS): YamlDocument {
  if (text.length > MAX_LENGTH) {
    throw new InvalidBodyError(`${name}: expected YAML of at most ${MAX_LENGTH} characters`);
  }
  try {
    return YamlDocument.parse(text, maxTokens);
  } catch (thrown) {
    if (thrown instanceof YamlError) {
      throw new InvalidBodyError(`${name}: expected YAML, and ${thrown.message}`);
    }
    throw thrown;
  }
}

/** Empty on the client side, which does not know its user. */
function userOf(text: string): Pick<ReceivedRequest, 'user' | 'isUserUnverified'> {
  const document = parsed('user', text, MAX_USER_TOKENS);
  if (document.value === null) {
    return { user: null };
  }
  const { texts } = document;
  const user = userSchema.safeParse(isMapping(texts) ? withoutEmpty(texts) : texts);
  if (!user.success) {
    throw new InvalidBodyError('user: expected a mapping with id and name');
  }
  const { id, name, user_type: userType, preferred_workspace: preferredWorkspace } = user.data;
  const isUserUnverified = isMapping(texts) && member(texts, 'user_type') === '';
  return { user: { id, name, userType, preferredWorkspace }, ...(isUserUnverified && { isUserUnverified }) };
}

/** Empty members count as absent. */
function withoutEmpty(mapping: Mapping): Mapping {
  return Object.fromEntries(Object.entries(mapping).filter(([, value]) => value !== ''));
}
