/** Compiles a checked expression to a function, which checks values on use, not by the checker's types. */
import {
  attributeRun,
  attributeType,
  elementRun,
  presenceRun,
  typeOfPart,
  variableRun,
} from './attributes.ts';
import { comparisonRun } from './comparisons.ts';
import { constantValue, isConstant, prepare } from './cost.ts';
import type { RuleEnvironment } from './environment.ts';
import { Failure, type Run } from './frame.ts';
import type { CelFunction } from './function.ts';
import {
  type Argument,
  alternativeRun,
  callRun,
  choiceRun,
  listRun,
  logicRun,
  loopRun,
  mapRun,
  membershipRun,
  negativeRun,
  notRun,
  operationRun,
} from './operations.ts';
import { OPERATORS } from './operators.ts';
import { type Scope, Scopes, type SharedParts, slotOf } from './sharing.ts';
import {
  type Binding,
  bindingOf,
  bodySteps,
  checkedTypeOf,
  ExpressionMistake,
  type Loop,
  loopOf,
  type Node,
  partsOf,
  presenceOf,
} from './syntax.ts';

/** Receives the value of each part, in the order of evaluation. */
export type Probe = (node: Node, value: unknown) => void;

interface CompilerOptions {
  /** Evaluates parts that expressions have in common once for each request. */
  readonly shared?: SharedParts;
  readonly probe?: Probe;
}

/** `offset`: the first character of the call, from 0. */
export interface LedgerCall {
  readonly name: string;
  readonly offset: number;
}

export class Compiler {
  readonly #environment: RuleEnvironment;
  readonly #shared: SharedParts | undefined;
  readonly #probe: Probe | undefined;
  readonly #scopes = new Scopes();
  readonly #ledgerCalls: LedgerCall[] = [];
  #readName: string | undefined;

  constructor(environment: RuleEnvironment, { shared, probe }: CompilerOptions = {}) {
    this.#environment = environment;
    this.#shared = shared;
    this.#probe = probe;
  }

  /** The first attribute that needs names of Keystone; `undefined` = none. Known after compilation. */
  get readName(): string | undefined {
    return this.#readName;
  }

  /** Calls of functions that depend on the ledger. Known after compilation. */
  get ledgerCalls(): readonly LedgerCall[] {
    return this.#ledgerCalls;
  }

  /** @throws ExpressionMistake for syntax that only the parser supports, and for invalid constants */
  compile(node: Node, scope?: Scope): Run {
    const run = this.#part(node, scope);
    const probe = this.#probe;
    if (probe !== undefined) {
      return (frame) => {
        const value = run(frame);
        probe(node, value);
        return value;
      };
    }
    if (isConstant(node)) {
      const value = constantValue(node, run);
      return () => value;
    }
    return this.#shared?.once(node, run, scope) ?? run;
  }

  #part(node: Node, scope: Scope | undefined): Run {
    const present = presenceOf(node);
    if (present !== undefined) {
      return this.#presence(present, scope);
    }
    const loop = loopOf(node);
    if (loop !== undefined) {
      return this.#loop(loop, node, scope);
    }
    const binding = bindingOf(node);
    if (binding !== undefined) {
      return this.#binding(binding, scope);
    }
    const compiled = (one: Node) => this.compile(one, scope);
    switch (node.op) {
      case 'value': {
        const { args: value } = node;
        if (typeof value === 'object' && value !== null) {
          throw new ExpressionMistake('bytes and unsigned numbers are not available here', node.start);
        }
        return () => value;
      }
      case 'id':
        return this.#variable(node.args, node.start, scope);
      case '.':
      case '.?':
        return this.#attribute(node, scope);
      case '[]':
      case '[?]': {
        const [base, place] = node.args;
        this.#notice(checkedTypeOf(base) ?? 'dyn', place.op === 'value' ? String(place.args) : '');
        return elementRun(this.#environment, node, compiled(base), compiled(place));
      }
      case 'call':
      case 'rcall':
        return this.#call(node, scope);
      case 'list':
        return listRun(node.args.map(compiled));
      case 'map': {
        const entries = node.args.map(([key, value]) => [compiled(key), compiled(value)] as const);
        return mapRun(entries, node.start);
      }
      case '?:': {
        const [condition, then, otherwise] = node.args;
        return choiceRun(compiled(condition), compiled(then), compiled(otherwise), node.start);
      }
      case '||':
      case '&&':
        return logicRun(node.op === '||', compiled(node.args[0]), compiled(node.args[1]), node.start);
      case '!_':
        return notRun(compiled(node.args), node.start);
      case '-_':
        return negativeRun(compiled(node.args), node.start);
      default:
        return this.#operation(node, scope);
    }
  }

  #operation(node: Node, scope: Scope | undefined): Run {
    const operator = OPERATORS.get(node.op);
    const [first, second] = partsOf(node);
    if (operator === undefined || first === undefined || second === undefined) {
      throw new ExpressionMistake(`${node.op} is not available here`, node.start);
    }
    const left = this.compile(first, scope);
    const right = this.compile(second, scope);
    const quick = node.op === 'in' ? membershipRun(left, second) : undefined;
    if (quick !== undefined || this.#probe !== undefined) {
      return quick ?? operationRun(left, right, node.start, operator);
    }
    const common = { name: node.op, operator, offset: node.start };
    const compared = isConstant(second)
      ? comparisonRun({ ...common, value: left, constant: constantValue(second, right), isTurned: false })
      : isConstant(first)
        ? comparisonRun({ ...common, value: right, constant: constantValue(first, left), isTurned: true })
        : undefined;
    return compared ?? operationRun(left, right, node.start, operator);
  }

  #variable(name: string, offset: number, scope: Scope | undefined): Run {
    const slot = slotOf(name, scope);
    if (slot !== undefined) {
      return ({ slots }) => slots[slot];
    }
    if (!this.#environment.hasVariable(name)) {
      throw new ExpressionMistake(`"${name}" is not available here`, offset);
    }
    return variableRun(name, offset);
  }

  #attribute(node: Node & { readonly op: '.' | '.?' }, scope: Scope | undefined): Run {
    const [base, name] = node.args;
    this.#notice(checkedTypeOf(base) ?? 'dyn', name);
    return attributeRun(this.#environment, node, this.compile(base, scope));
  }

  #presence(operand: Node, scope: Scope | undefined): Run {
    if (operand.op !== '.') {
      throw new ExpressionMistake('has() needs an attribute, such as has(lease.name)', operand.start);
    }
    const [base, name] = operand.args;
    const type = typeOfPart(this.#environment, base);
    this.#notice(type, name);
    attributeType(this.#environment, type, name, operand.pos);
    return presenceRun(this.#environment, operand, type, this.compile(base, scope));
  }

  #notice(type: string, name: string): void {
    const known = this.#environment.objectType(type.replace(/^optional<(.*)>$/, '$1'));
    if (known?.attributes.get(name)?.isName === true) {
      this.#readName ??= `${type}.${name}`;
    }
  }

  #loop(loop: Loop, node: Node, scope: Scope | undefined): Run {
    const over = this.compile(loop.over, scope);
    const inner = this.#scopes.within(loop.variable, scope);
    const body = (one: Node | undefined) => (one === undefined ? undefined : this.compile(one, inner));
    return loopRun({
      kind: loop.kind,
      over,
      slot: inner.slot,
      condition: body(loop.condition),
      result: body(loop.result),
      steps: bodySteps(loop),
      offset: node.start,
    });
  }

  #binding({ variable, value, body }: Binding, scope: Scope | undefined): Run {
    const bound = this.compile(value, scope);
    const inner = this.#scopes.within(variable, scope);
    const run = this.compile(body, inner);
    return (frame) => {
      const one = bound(frame);
      if (one instanceof Failure) {
        return one;
      }
      frame.slots[inner.slot] = one;
      return run(frame);
    };
  }

  #call(node: Node & { readonly op: 'call' | 'rcall' }, scope: Scope | undefined): Run {
    const [name] = node.args;
    const { called, nodes } = this.#environment.callOf(node);
    if (name === 'orValue' || name === 'or') {
      const [receiver, alternative] = nodes;
      if (node.op === 'call' || receiver === undefined || alternative === undefined) {
        throw new ExpressionMistake('orValue() needs an optional value, such as lease.?name', node.start);
      }
      const runs = [this.compile(receiver, scope), this.compile(alternative, scope)] as const;
      return alternativeRun(name === 'orValue', ...runs, node.start);
    }
    if (called === undefined) {
      throw new ExpressionMistake(`${name}() is not available here`, node.start);
    }
    if (called.readsLedger === true) {
      this.#ledgerCalls.push({ name, offset: node.start });
    }
    const args = nodes.map((one, index) => this.#argument(called, name, index, one, scope));
    const why = called.refuse?.(nodes.map((one) => (one.op === 'value' ? one.args : undefined)));
    if (why !== undefined) {
      throw new ExpressionMistake(why, node.start);
    }
    return callRun(called, args, node.start);
  }

  #argument(
    called: CelFunction,
    name: string,
    index: number,
    node: Node,
    scope: Scope | undefined,
  ): Argument {
    const run = this.compile(node, scope);
    if (called.constants?.includes(index) === true) {
      const value = prepare(called, name, node, run);
      return { run: () => value, constant: { value } };
    }
    const isKnown = this.#probe === undefined && isConstant(node);
    return { run, constant: isKnown ? { value: constantValue(node, run) } : undefined };
  }
}
