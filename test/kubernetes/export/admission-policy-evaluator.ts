/**
 * Evaluates ValidatingAdmissionPolicies as the API server does: match conditions, variables, validations; any error refuses.
 * The CEL is that of a library, not of Kubernetes.
 */
import { Environment } from '@marcbachmann/cel-js';
import { LRUCache } from 'lru-cache';
import type { AdmissionPolicy } from '../../../src/kubernetes/export/admission-policies.ts';

/** What the authorizer is asked. */
interface RightQuestion {
  readonly user: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly verb: string;
}

/** `undefined`: the authorizer fails. */
export type Answer = (question: RightQuestion) => boolean | undefined;

export interface Request {
  readonly operation: 'CREATE' | 'UPDATE';
  readonly namespace: string;
  readonly userInfo: { readonly username: string; readonly groups?: readonly string[] };
  readonly object: unknown;
  readonly oldObject: unknown;
  readonly authorizer: Answer;
}

export interface Judgement {
  readonly allowed: boolean;
  readonly messages: readonly string[];
}

class Authorizer {
  readonly question: Partial<RightQuestion>;
  readonly answer: Answer;

  constructor(question: Partial<RightQuestion>, answer: Answer) {
    this.question = question;
    this.answer = answer;
  }

  with(part: Partial<RightQuestion>): Authorizer {
    return new Authorizer({ ...this.question, ...part }, this.answer);
  }
}

class Decision {
  readonly answer: boolean | undefined;

  constructor(answer: boolean | undefined) {
    this.answer = answer;
  }
}

const asks = (part: keyof RightQuestion) => (authorizer: Authorizer, value: string) =>
  authorizer.with({ [part]: value });

const environment = new Environment({
  unlistedVariablesAreDyn: true,
  limits: { maxAstNodes: 1_000_000, maxListElements: 100_000 },
})
  .registerType('Authorizer', Authorizer)
  .registerType('Decision', Decision)
  .registerFunction(
    'Authorizer.serviceAccount(string, string): Authorizer',
    (authorizer: Authorizer, namespace: string, name: string) =>
      authorizer.with({ user: `system:serviceaccount:${namespace}:${name}` }),
  )
  .registerFunction('Authorizer.group(string): Authorizer', asks('group'))
  .registerFunction('Authorizer.resource(string): Authorizer', asks('resource'))
  .registerFunction('Authorizer.namespace(string): Authorizer', asks('namespace'))
  .registerFunction('Authorizer.name(string): Authorizer', asks('name'))
  .registerFunction(
    'Authorizer.check(string): Decision',
    ({ question, answer }: Authorizer, verb: string) =>
      new Decision(answer({ ...(question as RightQuestion), verb })),
  )
  .registerFunction('Decision.allowed(): bool', ({ answer }: Decision) => answer === true)
  .registerFunction('Decision.errored(): bool', ({ answer }: Decision) => answer === undefined);

/** Most of what an export says, all of them say. */
const programs = new LRUCache<string, ReturnType<typeof environment.parse>>({ max: 2000 });

/** A value of an expression; throws what is wrong with it. */
export function evaluateCel(expression: string, context: Readonly<Record<string, unknown>>): unknown {
  const program = programs.get(expression) ?? environment.parse(expression);
  programs.set(expression, program);
  return program(context) as unknown;
}

export function judge({ spec }: AdmissionPolicy, request: Request): Judgement {
  const { authorizer, object, oldObject, ...rest } = request;
  const context = {
    object: asCel(object),
    oldObject: asCel(oldObject),
    request: rest,
    authorizer: new Authorizer({ user: rest.userInfo.username }, authorizer),
  };
  const matches = spec.matchConditions.map(({ expression }) => attempt(expression, context));
  // One that is false wins over one that fails.
  if (matches.includes(false)) {
    return { allowed: true, messages: [] };
  }
  if (!matches.every((one) => one === true)) {
    return { allowed: false, messages: matches.map(String) };
  }
  const variables: Record<string, unknown> = {};
  for (const { name, expression } of spec.variables) {
    // As in Kubernetes, one that fails matters only where it is used.
    const value = attempt(expression, { ...context, variables });
    if (!(value instanceof Error)) {
      variables[name] = value;
    }
  }
  const { authorizer: _, ...unauthorized } = { ...context, variables: withoutRights(variables) };
  const failed = spec.validations.flatMap(({ expression, message, messageExpression }) => {
    const result = attempt(expression, { ...context, variables });
    if (result === true) {
      return [];
    }
    const said = messageExpression === undefined ? message : attempt(messageExpression, unauthorized);
    return [result instanceof Error ? `error: ${result.message}` : typeof said === 'string' ? said : message];
  });
  return { allowed: failed.length === 0, messages: failed };
}

function attempt(expression: string, context: Readonly<Record<string, unknown>>): unknown {
  try {
    return evaluateCel(expression, context);
  } catch (thrown) {
    return thrown instanceof Error ? thrown : new Error(String(thrown));
  }
}

function withoutRights(variables: Readonly<Record<string, unknown>>) {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => !/^(check|use)\d+$/.test(name)));
}

/** Whole numbers are integers, as in what Kubernetes reads. The library takes the type of an object from its `constructor`. */
function asCel(value: unknown): unknown {
  if (typeof value === 'number' && Number.isInteger(value)) {
    return BigInt(value);
  }
  if (Array.isArray(value)) {
    return value.map(asCel);
  }
  return typeof value === 'object' && value !== null
    ? new Map(Object.entries(value).map(([name, one]) => [name, asCel(one)]))
    : (value ?? null);
}
