/** Calls a policy and validates its answer, in a thread or in process. */

import type { Call } from '../filter/call.ts';
import { isMapping, type Mapping, plainCopy } from '../yaml/tree.ts';
import { type AdminPolicy, isRejection } from './admin-policy.ts';
import { Config } from './config.ts';
import type { Task, UserRequest } from './user-request.ts';

/** A request as plain data, so that it can be sent to a thread. */
export interface Question extends Omit<UserRequest, 'skypilotConfig'> {
  readonly skypilotConfig: Mapping;
}

/** The answer of a policy: the changed request, or the reason for a rejection. */
export type Answer =
  | { readonly task: Task; readonly skypilotConfig: Mapping }
  | { readonly rejected: string };

/** In characters. More than any real request, because several copies of the answer are in memory. */
const MAX_TEXT = 32 * 1024 * 1024;
/** In characters. */
const MAX_REASON = 8000;

/**
 * Calls one policy and copies its answer at once, so that the policy cannot change it later. Rejections are returned.
 * Other errors are thrown, and so is a `TypeError` for an invalid answer.
 */
export function callPolicy(policy: AdminPolicy, question: Question, call: Call): Answer | Promise<Answer> {
  try {
    const answer: unknown = policy.validateAndMutate(requestFor(question), call);
    return isPromise(answer) ? Promise.resolve(answer).then(answerOf).catch(rejectionOf) : answerOf(answer);
  } catch (thrown) {
    return rejectionOf(thrown);
  }
}

/** A copy for each policy: what it keeps or changes later affects no other. */
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

/**
 * Validates and copies a policy's answer: from this copy of the package, from another, or a plain object. @throws
 * TypeError
 */
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
    throw new TypeError(`expected an answer of at most ${MAX_TEXT} characters`);
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
    throw new TypeError(`expected ${name} of the answer to be a mapping`);
  }
  return plainCopy(value);
}

/** Number of characters in a value, including names. */
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
