/** Calls a policy and validates its answer, in a thread or in process. */

import { isDeepStrictEqual } from 'node:util';
import { NoAnswerError } from '../../base/deadline.ts';
import { causeOf, errorText, isInstance, lookInto, stackOf } from '../../base/errors.ts';
import { isMapping, type Mapping, plainCopy } from '../../base/yaml/tree.ts';
import { areRules, type Call, type RuleOutcomes } from '../../filter/verdict.ts';
import { type AdminPolicy, isRejection } from '../admin-policy.ts';
import { configOver, treeOf } from '../config/config.ts';
import type { Task, UserRequest } from '../request/user-request.ts';

/** A request as plain data, so that it can be sent to a thread. */
export interface Question extends Omit<UserRequest, 'skypilotConfig'> {
  readonly skypilotConfig: Mapping;
}

/** A policy's answer: the changed request, or a rejection's reason. Unchanged parts are the question's. */
export type Answer = (
  | { readonly task: Task; readonly skypilotConfig: Mapping }
  /** May be empty. */
  | { readonly rejected: string }
) & {
  /** Rules of the policy that rejected the request. */
  readonly rules?: RuleOutcomes | undefined;
};

/** Maximum number of rules of one policy. More than a decision names. */
const MAX_RULES = 1000;

/** In characters. More than any real request; limited because several copies of the answer are in memory. */
const MAX_ANSWER = 32 * 1024 * 1024;

/**
 * Calls one policy and copies its answer at once, so that the policy cannot change it later. Returns
 * rejections. Throws other errors, and a `TypeError` for an invalid answer.
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

/** A copy for each policy, so that later changes affect no other. A configuration copies values on access. */
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

/** Validates and copies an answer: a plain object or from any copy of the package. @throws TypeError */
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

/** Only for the decision: anything but a list of rules is dropped. */
function rulesIn(rules: unknown): Pick<Answer, 'rules'> {
  return areRules(rules) && rules.length > 0
    ? {
        rules: rules.slice(0, MAX_RULES).map(({ rule, outcome, audit, message }) => ({
          rule,
          outcome,
          audit,
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

/** Maximum length of a text, in characters. More than is displayed. */
const MAX_TEXT = 17_000;
/** Maximum number of errors in a chain of causes, and of errors of one `AggregateError`. */
const MAX_CAUSES = 8;

/**
 * Whether users may read the message: a `PolicyRejected`, or an error with `expose = true`, such as those of
 * `http-errors` for status codes below 500.
 */
export function isMeantForUsers(thrown: unknown): thrown is Error {
  return (
    lookInto(
      () => isRejection(thrown) || (thrown instanceof Error && 'expose' in thrown && thrown.expose === true),
    ) === true
  );
}

/** The message of an error, with those of its causes: `no registry: fetch failed: connect ECONNREFUSED`. */
export function causeText(thrown: unknown): string {
  const [first = '', ...causes] = causesOf(thrown).map(messageOf);
  let text = first;
  for (const cause of causes) {
    // A wrapper often repeats the message of its cause.
    text = text.includes(cause) ? text : `${text}: ${cause}`;
  }
  return text.slice(0, MAX_TEXT);
}

/** The stack of an error, followed by those of its causes; `undefined` = no stack. */
export function stackText(thrown: unknown): string | undefined {
  const stacks = causesOf(thrown).map(ownStack);
  const text = stacks.filter((stack) => stack !== '').join('\ncaused by ');
  return text === '' ? undefined : text.slice(0, MAX_TEXT);
}

/** An error of the service about a policy, not of the policy itself: it has no stack. */
export function failure(cause: string, stack = ''): Error {
  return Object.assign(new Error(cause), { stack });
}

function causesOf(thrown: unknown): unknown[] {
  const causes: unknown[] = [];
  let next = thrown;
  while (
    causes.length === 0 ||
    (next !== undefined && !causes.includes(next) && causes.length < MAX_CAUSES)
  ) {
    causes.push(next);
    next = causeOf(next);
  }
  return causes;
}

function messageOf(thrown: unknown): string {
  const text = errorText(thrown);
  const parts = lookInto(
    () => thrown instanceof AggregateError && thrown.errors.slice(0, MAX_CAUSES).map(errorText).join('; '),
  );
  return !parts || text === parts ? text : `${text} (${parts})`;
}

/** The stack of a deadline names only the timer of the service. */
function ownStack(thrown: unknown): string {
  return isInstance(thrown, NoAnswerError) ? '' : (stackOf(thrown) ?? '');
}
