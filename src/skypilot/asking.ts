/** What a policy is asked, and what becomes of its answer: the same in a thread of its own and without one. */

import type { Call } from '../filter/services.ts';
import { isMapping, type Mapping, plainCopy } from '../yaml/tree.ts';
import { type AdminPolicy, isRejection } from './admin-policy.ts';
import { Config } from './config.ts';
import type { Task, UserRequest } from './user-request.ts';

/** A request as plain data, which can be sent to a thread. */
export interface Question extends Omit<UserRequest, 'skypilotConfig'> {
  readonly skypilotConfig: Mapping;
}

/** What a policy has said: the request as it leaves it, or why it must not be carried out. */
export type Answer =
  | { readonly task: Task; readonly skypilotConfig: Mapping }
  | { readonly rejected: string };

/** More is no request of SkyPilot's; the answer is held in memory several times over. In characters. */
const MAX_TEXT = 32 * 1024 * 1024;
/** A reason is read by a person. In characters. */
const MAX_REASON = 8000;

/**
 * Asks one policy. An answer that is there at once is copied at once: what the policy does to it afterwards is no part of it.
 * Whatever it throws but a rejection is thrown on, and so is a `TypeError` for what is no answer.
 */
export function askPolicy(policy: AdminPolicy, question: Question, call: Call): Answer | Promise<Answer> {
  try {
    const answer: unknown = policy.validateAndMutate(requestFor(question), call);
    return isPromise(answer) ? Promise.resolve(answer).then(answerOf).catch(rejectionOf) : answerOf(answer);
  } catch (thrown) {
    return rejectionOf(thrown);
  }
}

/** Its own copy for each policy: what it keeps and changes later reaches nobody. */
function requestFor(question: Question): UserRequest {
  const { task, skypilotConfig, requestOptions, user } = question;
  return {
    ...question,
    task: plainCopy(task),
    skypilotConfig: Config.fromDict(skypilotConfig),
    requestOptions: requestOptions && { ...requestOptions },
    user: user && { ...user },
  };
}

/** What a policy has returned, copied: of this copy of the package, of another, or made by hand. Throws for anything else. */
export function answerOf(answer: unknown): Exclude<Answer, { rejected: string }> {
  if (!isMapping(answer)) {
    throw new TypeError('expected a MutatedUserRequest as the answer');
  }
  const { task, skypilotConfig } = answer;
  const answered = {
    task: mappingCopy('task', task),
    skypilotConfig: mappingCopy('skypilotConfig', dictOf(skypilotConfig)),
  };
  if (textIn(answered) > MAX_TEXT) {
    throw new TypeError(`expected at most ${MAX_TEXT} characters in the answer`);
  }
  return answered;
}

function rejectionOf(thrown: unknown): Answer {
  if (isRejection(thrown) && typeof thrown.message === 'string' && thrown.message !== '') {
    return { rejected: thrown.message.slice(0, MAX_REASON) };
  }
  throw thrown;
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return isMapping(value) && typeof value.then === 'function';
}

function dictOf(config: unknown): unknown {
  return isMapping(config) && typeof config.toDict === 'function' ? config.toDict() : config;
}

function mappingCopy(name: string, value: unknown): Mapping {
  if (!isMapping(value)) {
    throw new TypeError(`expected a mapping as ${name} of the answer`);
  }
  return plainCopy(value);
}

/** How many characters a value holds, names included. */
function textIn(value: unknown): number {
  if (typeof value === 'string') {
    return value.length;
  }
  if (Array.isArray(value)) {
    return value.reduce<number>((sum, item) => sum + textIn(item), 0);
  }
  return isMapping(value)
    ? Object.entries(value).reduce((sum, [name, item]) => sum + name.length + textIn(item), 0)
    : 0;
}
