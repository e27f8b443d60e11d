/** Parts of expressions that are the same for every request: they are evaluated when the rules are loaded. */
import { Failure } from './failure.ts';
import type { Run } from './frame.ts';
import { Frame } from './frame.ts';
import type { CelFunction } from './function.ts';
import { Meter } from './meter.ts';
import { ExpressionMistake, type Node } from './syntax.ts';

/** Whether the value is the same for every request. Calls are not looked into, except conversions of constants. */
export function isConstant(node: Node): boolean {
  switch (node.op) {
    case 'value':
      return true;
    case 'call':
      return (
        /^(?:timestamp|duration|int|double|string)$/.test(node.args[0]) && node.args[1].every(isConstant)
      );
    case 'list':
      return node.args.every(isConstant);
    case '-_':
      return isConstant(node.args);
    case '+':
    case '-':
    case '*':
    case '/':
      return node.args.every(isConstant);
    default:
      return false;
  }
}

/** The value of a constant. @throws ExpressionMistake if it has none */
export function constantValue(node: Node, run: Run): unknown {
  const value = run(constantFrame());
  if (value instanceof Failure) {
    throw new ExpressionMistake(value.reason, value.offset ?? node.start);
  }
  return value;
}

/** What `prepare` makes of a constant argument. */
export function prepare(called: CelFunction, name: string, node: Node, run: Run): unknown {
  if (!isConstant(node)) {
    throw new ExpressionMistake(
      `${name}() needs a constant here: it is checked when the rules are loaded`,
      node.start,
    );
  }
  const value = run(constantFrame());
  try {
    return called.prepare?.(value) ?? value;
  } catch (thrown) {
    throw new ExpressionMistake(thrown instanceof Error ? thrown.message : String(thrown), node.start);
  }
}

function constantFrame(): Frame {
  return new Frame({}, new Meter());
}
