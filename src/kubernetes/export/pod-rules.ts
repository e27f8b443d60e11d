/** Rules for pods as one ValidatingAdmissionPolicy: only parts with certainly the same meaning there. */
import { ConfigurationError, type Problem } from '../../base/errors.ts';
import { checkedTypeOf, loopOf, type Node, presenceOf } from '../../rules/cel/syntax.ts';
import type { Expression } from '../../rules/expression.ts';
import type { Rule } from '../../rules/rule.ts';
import {
  type AdmissionPolicy,
  type AdmissionPolicyBinding,
  API_VERSION,
  bindingOf,
  type ExportOptions,
  needed,
  rule,
} from './admission-policies.ts';
import { listOf, literal } from './cel.ts';
import { ensureWithinLimits } from './limits.ts';
import { NOT_A_MIRROR, serviceAccountVariable, type Variable } from './subject.ts';
import type { Validation } from './validations.ts';

/** A part of a rule that means something else in Kubernetes, or nothing. */
class NotSameError extends Error {
  override readonly name = 'NotSameError';
  /** The first character of the part in its expression, from 0. */
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

/** Always in parentheses, unless it is a name, a call or a literal. */
interface Typed {
  readonly text: string;
  readonly type: 'bool' | 'string' | 'int' | 'texts' | 'map';
}

/** Loops over containers are written once for each of these lists: they have different types in Kubernetes. */
const LISTS = [
  { name: 'variables.initContainers', isInit: true },
  { name: 'variables.containers', isInit: false },
  { name: 'variables.ephemeralContainers', isInit: false },
] as const;

interface Container {
  readonly name: string;
  readonly isInit: boolean;
}
type Scope = ReadonlyMap<string, Container>;

const ATTRIBUTES: ReadonlyMap<string, Typed> = new Map<string, Typed>([
  ['request.operation', { text: 'variables.operation', type: 'string' }],
  ['request.kind', { text: "'Pod'", type: 'string' }],
  ['user.name', { text: 'request.userInfo.username', type: 'string' }],
  ['user.groups', { text: 'variables.groups', type: 'texts' }],
  ['pod.namespace', { text: 'request.namespace', type: 'string' }],
  ['pod.service_account', { text: 'variables.serviceAccount', type: 'string' }],
  ['pod.labels', { text: 'variables.labels', type: 'map' }],
  ['pod.annotations', { text: 'variables.annotations', type: 'map' }],
  ['pod.claims', { text: 'variables.claims', type: 'int' }],
]);
const TEXT_TESTS: readonly string[] = ['startsWith', 'endsWith', 'contains'];
const ORDER: readonly string[] = ['<', '<=', '>', '>='];
const EXPECTED = `expected ${[...ATTRIBUTES.keys()].join(', ')}, loops all() and exists() over pod.containers with their name, image and is_init, and comparisons of texts and ints; leave the rule to the webhook`;

/**
 * A policy and its binding.
 *
 * @throws ConfigurationError with the places of all parts that Kubernetes may interpret differently
 * @throws NotExportableError if the API server would refuse it, or could not evaluate it
 */
export function rulesPolicy(
  rules: readonly Rule[],
  options: Pick<ExportOptions, 'name' | 'exemptNamespaces' | 'isTrial'>,
): (AdmissionPolicy | AdmissionPolicyBinding)[] {
  const problems: Problem[] = [];
  const validations = rules.map((one) => validationOf(one, problems));
  if (problems.length > 0) {
    throw new ConfigurationError(problems);
  }
  const name = `${options.name}-rules`;
  const spec: AdmissionPolicy['spec'] = {
    failurePolicy: 'Fail',
    matchConstraints: {
      resourceRules: [rule('', ['CREATE', 'UPDATE'], ['pods', 'pods/ephemeralcontainers', 'pods/resize'])],
    },
    matchConditions: [CHANGES, NOT_A_MIRROR],
    variables: needed(VARIABLES, validations),
    validations,
  };
  ensureWithinLimits(name, spec);
  const metadata = { name };
  return [
    { apiVersion: API_VERSION, kind: 'ValidatingAdmissionPolicy', metadata, spec },
    bindingOf({ metadata }, options),
  ];
}

function validationOf(one: Rule, problems: Problem[]): Validation {
  const { name, match, allow, message, exempt, until } = one;
  const mistake = (part: 'match' | 'allow' | 'message' | 'until', offset: number, text: string) => {
    const origin = { kind: 'file', ...one.placeOf(part, offset) } as const;
    problems.push({ severity: 'error', origin, message: `rule ${name}: ${part}: ${text}` });
  };
  const condition = (part: 'match' | 'allow', { ast }: Expression): string => {
    try {
      return typed(ast, 'bool', new Map());
    } catch (thrown) {
      if (!(thrown instanceof NotSameError)) {
        throw thrown;
      }
      mistake(part, thrown.offset, thrown.message);
      return 'false';
    }
  };
  if (until !== undefined) {
    mistake(
      'until',
      0,
      'Kubernetes does not tell the time: remove it, and export again when the rule has ended',
    );
  }
  if (typeof message !== 'string' || /[\r\n]/.test(message)) {
    mistake('message', 0, 'expected a text on one line, no expression');
  }
  // Not `!match || allow`: if a match has no value, the rule must fail.
  const allowed = condition('allow', allow);
  const judged = match === undefined ? allowed : `(${condition('match', match)} ? ${allowed} : true)`;
  const names = [...exempt.userNames];
  return {
    expression:
      names.length === 0 ? judged : `(request.userInfo.username in ${listOf(names)} ? true : ${judged})`,
    message: String(message),
    reason: 'Forbidden',
  };
}

function field(path: string, none: string): string {
  return `(has(${path}) ? ${path} : ${none})`;
}

/** As the webhook, which does not check unchanged pods again. */
const CHANGES = {
  name: 'changes-the-pod',
  expression: [
    "request.operation != 'UPDATE' || object.spec != oldObject.spec",
    ...['labels', 'annotations'].map(
      (one) => `${field(`object.metadata.${one}`, '{}')} != ${field(`oldObject.metadata.${one}`, '{}')}`,
    ),
  ].join(' || '),
};

const VARIABLES: readonly Variable[] = [
  { name: 'operation', expression: "request.operation == 'CREATE' ? 'create' : 'update'" },
  { name: 'groups', expression: field('request.userInfo.groups', '[]') },
  serviceAccountVariable('pods'),
  ...['labels', 'annotations'].map((name) => ({ name, expression: field(`object.metadata.${name}`, '{}') })),
  ...['initContainers', 'containers', 'ephemeralContainers'].map((name) => ({
    name,
    expression: field(`object.spec.${name}`, '[]'),
  })),
  { name: 'claims', expression: 'has(object.spec.resourceClaims) ? size(object.spec.resourceClaims) : 0' },
];

function typed(node: Node, type: Typed['type'], scope: Scope): string {
  const got = written(node, scope);
  return got.type === type ? got.text : refuse(node);
}

function refuse(node: Node): never {
  const { input, start, end } = node;
  const part = JSON.stringify(input.slice(start, Math.min(end, start + 60)));
  throw new NotSameError(`${part} may mean something else in Kubernetes: ${EXPECTED}`, start);
}

function written(node: Node, scope: Scope): Typed {
  switch (node.op) {
    case 'value':
      return constantOf(node, node.args);
    case 'list':
      return { text: `[${node.args.map((one) => typed(one, 'string', scope)).join(', ')}]`, type: 'texts' };
    case '.':
      return attributeOf(node, node.args[0], node.args[1], scope);
    case '[]':
      return entryOf(typed(node.args[0], 'map', scope), typed(node.args[1], 'string', scope));
    case '!_':
      return { text: `!${typed(node.args, 'bool', scope)}`, type: 'bool' };
    case '&&':
    case '||':
      return bool(`${typed(node.args[0], 'bool', scope)} ${node.op} ${typed(node.args[1], 'bool', scope)}`);
    case 'call':
    case 'rcall':
      return callOf(node, scope);
    case '?:': {
      const [condition, first, second] = node.args;
      const then = written(first, scope);
      const text = `(${typed(condition, 'bool', scope)} ? ${then.text} : ${typed(second, then.type, scope)})`;
      return { text, type: then.type };
    }
    case 'in': {
      const among = written(node.args[1], scope);
      return among.type === 'map' || among.type === 'texts'
        ? bool(`${typed(node.args[0], 'string', scope)} in ${among.text}`)
        : refuse(node);
    }
    case '==':
    case '!=':
    case '<':
    case '<=':
    case '>':
    case '>=': {
      const left = written(node.args[0], scope);
      const isSame = left.type === 'int' || (!ORDER.includes(node.op) && /^(?:bool|string)$/.test(left.type));
      return isSame ? bool(`${left.text} ${node.op} ${typed(node.args[1], left.type, scope)}`) : refuse(node);
    }
    default:
      return refuse(node);
  }
}

function bool(text: string): Typed {
  return { text: `(${text})`, type: 'bool' };
}

function constantOf(node: Node, value: unknown): Typed {
  return typeof value === 'boolean'
    ? { text: String(value), type: 'bool' }
    : typeof value === 'bigint' && value >= 0n
      ? { text: String(value), type: 'int' }
      : typeof value === 'string' && !/\p{Cs}/u.test(value)
        ? { text: literal(value), type: 'string' }
        : refuse(node);
}

/** Labels and annotations are texts. A missing entry has no value, here and in Kubernetes. */
function entryOf(map: string, key: string): Typed {
  return { text: `${map}[${key}]`, type: 'string' };
}

function attributeOf(node: Node, base: Node, name: string, scope: Scope): Typed {
  if (base.op !== 'id') {
    return entryOf(typed(base, 'map', scope), literal(name));
  }
  const container = scope.get(base.args);
  if (container === undefined) {
    return ATTRIBUTES.get(`${base.args}.${name}`) ?? refuse(node);
  }
  if (name === 'is_init') {
    return { text: String(container.isInit), type: 'bool' };
  }
  // Kubernetes omits an empty one: it has no value in either.
  return name === 'name' || name === 'image'
    ? { text: `${container.name}.${name}`, type: 'string' }
    : refuse(node);
}

function callOf(node: Node & { readonly op: 'call' | 'rcall' }, scope: Scope): Typed {
  const has = presenceOf(node);
  if (has?.op === '.') {
    return bool(`${literal(has.args[1])} in ${typed(has.args[0], 'map', scope)}`);
  }
  if (node.op === 'call') {
    return refuse(node);
  }
  const loop = loopOf(node);
  if (loop !== undefined) {
    const { kind, over, variable, condition } = loop;
    if ((kind !== 'all' && kind !== 'exists') || condition === undefined || !isContainers(over, scope)) {
      return refuse(node);
    }
    const name = `c${scope.size}`;
    const loops = LISTS.map(({ name: list, isInit }) => {
      const inner = new Map(scope).set(variable, { name, isInit });
      return `${list}.${kind}(${name}, ${typed(condition, 'bool', inner)})`;
    });
    return bool(loops.join(kind === 'all' ? ' && ' : ' || '));
  }
  const [name, receiver, args] = node.args;
  const [argument] = args;
  if (argument === undefined || args.length !== 1) {
    return refuse(node);
  }
  if (name === 'orValue' && receiver.op === '.?') {
    const map = typed(receiver.args[0], 'map', scope);
    const key = literal(receiver.args[1]);
    const otherwise = typed(argument, 'string', scope);
    return { text: `(${key} in ${map} ? ${map}[${key}] : ${otherwise})`, type: 'string' };
  }
  return TEXT_TESTS.includes(name)
    ? {
        text: `${typed(receiver, 'string', scope)}.${name}(${typed(argument, 'string', scope)})`,
        type: 'bool',
      }
    : refuse(node);
}

/** A name of a loop may hide `pod`. */
function isContainers(node: Node, scope: Scope): boolean {
  return node.op === '.' && !scope.has('pod') && checkedTypeOf(node) === 'list<Container>';
}
