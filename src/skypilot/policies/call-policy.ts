/** Calls a policy and validates its answer, in a thread or in process. */

import { isDeepStrictEqual } from 'node:util';
import type { Call } from '../../filter/call.ts';
import { areRules, type RuleOutcomes } from '../../filter/verdict.ts';
import { isMapping, type Mapping, plainCopy } from '../../yaml/tree.ts';
import type { AdminPolicy } from '../admin-policy.ts';
import { configOver, treeOf } from '../config/config.ts';
import type { Task, UserRequest } from '../request/user-request.ts';
import { isMeantForUsers, MAX_TEXT } from './thrown.ts';

/** A request as plain data, so that it can be sent to a thread. */
export interface Question extends Omit<UserRequest, 'skypilotConfig'> {
  readonly skypilotConfig: Mapping;
}

/** The answer of a policy: the changed request, or the reason for a rejection. What is unchanged is that of the question itself. */
export type Answer = (
  | { readonly task: Task; readonly skypilotConfig: Mapping }
  /** Perhaps empty. */
  | { readonly rejected: string }
) & {
  /** What single rules of the policy said, if they said no. */
  readonly rules?: RuleOutcomes | undefined;
};

/** Of one policy. More than a decision names. */
const MAX_RULES = 1000;

/** In characters. More than any real request, because several copies of the answer are in memory. */
const MAX_ANSWER = 32 * 1024 * 1024;

/**
 * Calls one policy and copies its answer at once, so that the policy cannot change it later. Rejections are returned.
 * Other errors are thrown, and so is a `TypeError` for an invalid answer.
 */
export function callPolicy(policy: AdminPolicy, question: Question, call: Call): Answer | Promise<Answer> {
  try {
    const answer: unknown = policy.validateAndMutate(requestFor(question), call);
    return isPromise(answer)
      ? Promise.resolve(answer)
          .then((resolved) => answerOf(resolved, question))
          .catch(rejectionOf)
      : answerOf(answer, question);
  } catch (thrown) {
    return rejectionOf(thrown);
  }
}

/** A copy for each policy: what it keeps or changes later affects no other. A configuration copies what is read or changed. */
function requestFor(question: Question): UserRequest {
  const { task, skypilotConfig, requestOptions, user } = question;
  return {
    ...question,
    task: plainCopy(task),
    skypilotConfig: configOver(skypilotConfig),
    requestOptions: requestOptions && { ...requestOptions },
    user: user && { ...user },
  };
}

/**
 * Validates and copies a policy's answer: from this copy of the package, from another, or a plain object. @throws
 * TypeError
 */
function answerOf(answer: unknown, question: Question): Exclude<Answer, { rejected: string }> {
  if (!isMapping(answer)) {
    throw new TypeError('expected a MutatedUserRequest as the answer');
  }
  const { task, skypilotConfig, rules } = answer;
  const answered = {
    task: changedCopy('task', task, question.task),
    skypilotConfig: changedCopy('skypilotConfig', dictOf(skypilotConfig), question.skypilotConfig),
  };
  const changed = [
    answered.task === question.task ? null : answered.task,
    answered.skypilotConfig === question.skypilotConfig ? null : answered.skypilotConfig,
  ];
  if (textIn(changed) > MAX_ANSWER) {
    throw new TypeError(`expected an answer of at most ${MAX_ANSWER} characters`);
  }
  return { ...answered, ...rulesIn(rules) };
}

/** Only for the decision: what is no list of rules is left out. */
function rulesIn(rules: unknown): Pick<Answer, 'rules'> {
  return areRules(rules) && rules.length > 0
    ? {
        rules: rules.slice(0, MAX_RULES).map(({ rule, outcome, audit, message }) => ({
          ...{ rule, outcome, audit },
          message: typeof message === 'string' ? message.slice(0, MAX_TEXT) : null,
        })),
      }
    : {};
}

function rejectionOf(thrown: unknown): Answer {
  if (!isMeantForUsers(thrown)) {
    throw thrown;
  }
  const message: unknown = thrown.message;
  return {
    rejected: typeof message === 'string' ? message.slice(0, MAX_TEXT) : '',
    ...rulesIn('rules' in thrown ? thrown.rules : undefined),
  };
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return isMapping(value) && typeof value.then === 'function';
}

function dictOf(config: unknown): unknown {
  const own = treeOf(config);
  if (own !== undefined) {
    return own;
  }
  return isMapping(config) && typeof config.toDict === 'function' ? config.toDict() : config;
}

/** A copy, or the original if they are equal. */
function changedCopy(name: string, value: unknown, original: Mapping): Mapping {
  if (value === original) {
    return original;
  }
  if (!isMapping(value)) {
    throw new TypeError(`expected ${name} of the answer to be a mapping`);
  }
  const copy = plainCopy(value);
  return isDeepStrictEqual(copy, original) ? original : copy;
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
