/** Expressions in CEL: parsed and checked by their environment's types, then run for each request. */
import { Compiler, type LedgerCall, type Probe } from './cel/compile.ts';
import { Estimator } from './cel/cost.ts';
import { type RuleEnvironment, shortType } from './cel/environment.ts';
import { type Activation, Failure, Frame, MAX_STEPS, type Meter, type Run } from './cel/frame.ts';
import { emptyLiteralMistake, mistakeOf } from './cel/mistakes.ts';
import { SharedParts } from './cel/sharing.ts';
import { loopOf, type Node, partsOf, sourceOf, stepsOf } from './cel/syntax.ts';

export { type Activation, Frame } from './cel/frame.ts';
export { SharedParts } from './cel/sharing.ts';

/** In UTF-16 code units. */
const MAX_LENGTH = 10_000;

export interface Expression {
  readonly text: string;
  readonly ast: Node;
  /** An upper bound of its cost, for requests of the usual sizes. */
  readonly steps: number;
  readonly ledgerCalls: readonly LedgerCall[];
  readonly namedTypes: readonly NamedType[];
  /** The first attribute that needs names of Keystone, such as `Project.name`; `undefined` = none. */
  readonly readName: string | undefined;
  /**
   * Its value. `meter`: counts the steps of all rules for one request. Default: its own.
   *
   * @throws EvaluationError if it has no value for this request
   * @throws TooManyStepsError if the request is so large that the rules would take too long
   */
  run(activation: Activation, meter?: Meter): unknown;
  /** The same, in a frame with other expressions about the request: common parts are evaluated once. */
  runIn(frame: Frame): unknown;
  /** For code that evaluates many expressions at once and accepts a `Failure` as a result. */
  link(): Linked;
  /** Its evaluated parts, each with a value or the reason why it has none; the whole expression last. */
  explain(activation: Activation): readonly ExplainedPart[];
}

/** A part of an expression, and its value for a request; in a loop, the last value. */
export interface ExplainedPart {
  readonly text: string;
  /** The first and the last character, from 0; the last is exclusive. */
  readonly start: number;
  readonly end: number;
  readonly value: unknown;
  /** Why it has no value. */
  readonly failure: string | undefined;
}

export interface Linked {
  readonly run: Run;
  /** Spend them before each run. */
  readonly steps: number;
  /** Call `Frame.shareBy` with it before each run. */
  readonly shared: SharedParts;
}

/** Why a text is not an expression of this environment. */
interface ExpressionMistakeAt {
  /** The mistake, without the text. */
  readonly message: string;
  /** The first character that it concerns, from 0. */
  readonly offset: number;
}

export type Compiled = { readonly expression: Expression } | { readonly mistake: ExpressionMistakeAt };

/**
 * Parses and checks an expression. `type`: the required type of its value, `bool` or `string`. `shared`: the
 * common parts of expressions of the same environment that are compiled together. Default: only its own
 * parts.
 */
export function compileExpression(
  environment: RuleEnvironment,
  text: string,
  type: string,
  shared = new SharedParts(),
): Compiled {
  if (text.length > MAX_LENGTH) {
    return {
      mistake: { message: `expected at most ${MAX_LENGTH} characters, got ${text.length}`, offset: 0 },
    };
  }
  let ast: Node | undefined;
  try {
    const parsed = environment.types.parse(text);
    ast = parsed.ast;
    const checked = parsed.check();
    if (!checked.valid) {
      throw checked.error;
    }
    if (checked.type !== type) {
      return { mistake: { message: expected(type, checked.type ?? 'dyn'), offset: 0 } };
    }
    return compiled(environment, text, ast, shared);
  } catch (thrown) {
    if (thrown instanceof RangeError) {
      // The parser does not limit its recursion into operators.
      return { mistake: { message: 'the expression is nested too deeply', offset: 0 } };
    }
    const mistake = emptyLiteralMistake(thrown, ast) ?? mistakeOf(thrown, environment, text);
    if (mistake === undefined) {
      throw thrown;
    }
    return { mistake: { message: mistake.message, offset: mistake.offset } };
  }
}

function compiled(environment: RuleEnvironment, text: string, ast: Node, shared: SharedParts): Compiled {
  const compiler = new Compiler(environment);
  compiler.compile(ast);
  const constant = (node: Node) => {
    const one = new Compiler(environment).compile(node);
    return () => one(new Frame({}));
  };
  const { steps, mostExpensive } = new Estimator(environment, constant).estimate(ast);
  if (steps > MAX_STEPS) {
    const loop = mostExpensive?.node ?? ast;
    const message = `may take ${shownSteps(steps)} steps for one request, most of them in ${excerpt(text.slice(loop.start, loop.end))}; expected at most ${shownSteps(MAX_STEPS)}`;
    return { mistake: { message, offset: loop.start } };
  }
  const ownSteps = stepsOf(ast);
  let linked: Linked | undefined;
  const link = () => {
    linked ??= { run: new Compiler(environment, { shared }).compile(ast), steps: ownSteps, shared };
    return linked;
  };
  shared.add(ast, link);
  const runIn = (frame: Frame) => {
    const { run } = link();
    frame.shareBy(shared);
    frame.meter.spend(ownSteps);
    const value = run(frame);
    if (value instanceof Failure) {
      throw value.error();
    }
    return value;
  };
  return {
    expression: {
      text,
      ast,
      steps,
      ledgerCalls: compiler.ledgerCalls,
      namedTypes: namedTypes(ast),
      readName: compiler.readName,
      run: (activation, meter) => runIn(new Frame(activation, meter)),
      runIn,
      link,
      explain: (activation) => explained(environment, ast, activation),
    },
  };
}

function explained(environment: RuleEnvironment, ast: Node, activation: Activation): ExplainedPart[] {
  const parts = new Map<Node, unknown>();
  const probe: Probe = (node, value) => {
    // Keeps the order of the last evaluation.
    parts.delete(node);
    parts.set(node, value);
  };
  new Compiler(environment, { probe }).compile(ast)(new Frame(activation));
  return [...parts].flatMap(([node, value]) =>
    node.op === 'value'
      ? []
      : [
          {
            text: sourceOf(node),
            start: node.start,
            end: node.end,
            value: value instanceof Failure ? undefined : value,
            failure: value instanceof Failure ? value.reason : undefined,
          },
        ],
  );
}

function expected(type: string, got: string): string {
  return type === 'bool'
    ? `expected an expression that is true or false, got ${shortType(got)}${got === 'dyn' ? '; compare it, as in x == true' : ''}`
    : `expected an expression of type ${type}, got ${shortType(got)}${got === 'dyn' ? `; write ${type}(…)` : ''}`;
}

function shownSteps(steps: number): string {
  return steps < Number.MAX_SAFE_INTEGER
    ? steps.toLocaleString('en-US', { maximumFractionDigits: 0 })
    : 'countless';
}

function excerpt(text: string): string {
  const line = text.replace(/\s+/g, ' ');
  return `"${line.length > 60 ? `${line.slice(0, 59)}…` : line}"`;
}

interface NamedType {
  readonly text: string;
  /** The offset of its first character, from 0. */
  readonly offset: number;
}

/** Constants in `size(lease, "…")`, and those compared with `resource_type`. */
function namedTypes(node: Node): NamedType[] {
  const loop = loopOf(node);
  const inner = [loop?.condition, loop?.result].flatMap((one) => one ?? []);
  return [...ownTypes(node), ...[...partsOf(node), ...inner].flatMap(namedTypes)];
}

function ownTypes(node: Node): NamedType[] {
  switch (node.op) {
    case 'call': {
      const [name, written] = node.args;
      return name === 'size' && written.length === 2 ? textsOf(written[1]) : [];
    }
    case '==':
    case '!=':
    case 'in': {
      const [one, other] = node.args;
      return [...(isType(one) ? textsOf(other) : []), ...(isType(other) ? textsOf(one) : [])];
    }
    default:
      return [];
  }
}

function isType(node: Node): boolean {
  return node.op === '.' && node.args[1] === 'resource_type';
}

function textsOf(node: Node | undefined): NamedType[] {
  if (node?.op === 'list') {
    return node.args.flatMap(textsOf);
  }
  return node?.op === 'value' && typeof node.args === 'string'
    ? [{ text: node.args, offset: node.start }]
    : [];
}
