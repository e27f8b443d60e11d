/** Asks for the same answers twice: from the package, and from the slow evaluation. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { objectType, RuleEnvironment } from '../../src/rules/cel/environment.ts';
import { EvaluationError, Meter } from '../../src/rules/cel/frame.ts';
import { JsonMap } from '../../src/rules/cel/values.ts';
import { compileExpression, type Expression, Frame, SharedParts } from '../../src/rules/expression.ts';
import { anyExpression, anyRequest, type Request, SIZES, slowly, type Tree, textOf } from './slow-rules.ts';

class Group {
  readonly size: bigint;
  readonly members: readonly bigint[];

  constructor({ size, members }: Request['groups'][number]) {
    this.size = size;
    this.members = members;
  }
}

export const environment = new RuleEnvironment()
  .object(
    objectType('Group', 'A group.', Group, {
      size: { type: 'int', description: 'Its size.', read: ({ size }) => size },
      members: {
        type: 'list<int>',
        description: 'Its members.',
        read: ({ members }) => members,
        total: SIZES.members,
      },
    }),
  )
  .variable('xs', 'list<int>', 'Numbers.', { items: SIZES.xs })
  .variable('name', 'string', 'A name.')
  .variable('rows', 'list<map<string, dyn>>', 'Mappings.', { items: SIZES.rows })
  .variable('groups', 'list<Group>', 'Groups.', { items: SIZES.groups, isDistinct: true });

/** Returns for how many requests the expression was asked: none if it is not accepted. */
export function expectSameAnswers(tree: Tree, requests: readonly Request[]): number {
  const text = textOf(tree);
  const compiled = compileExpression(environment, text, 'bool');
  if ('mistake' in compiled) {
    // Constants that cannot be computed, what would cost too much, and types that do not fit.
    expect(compiled.mistake.message).toMatch(
      /64 bits|division by zero|may take|too large|true or false|cannot be computed|type/,
    );
    return 0;
  }
  const { expression } = compiled;
  const beside = besideItsOpposite(text);
  for (const request of requests) {
    const meter = new Meter(1e12);
    const slow = slowly(tree, request);
    const expected = typeof slow.value === 'boolean' ? slow.value : undefined;
    const value = answered(expression, request, meter);
    if (beside !== undefined) {
      expect([text, ...beside(request)]).toEqual([
        text,
        expected,
        expected === undefined ? undefined : !expected,
      ]);
    }
    if (value !== expected || meter.spent > expression.steps || slow.visits > expression.steps) {
      const { steps } = expression;
      expect({ text, value, spent: meter.spent, visits: slow.visits }).toEqual({
        text,
        value: expected,
        steps,
      });
    }
  }
  return requests.length;
}

/** The answers of an expression and of its opposite to one request, in one frame: they have everything in common. */
function besideItsOpposite(text: string): ((request: Request) => unknown[]) | undefined {
  const shared = new SharedParts();
  const both = [text, `!(${text})`].map((one) => compileExpression(environment, one, 'bool', shared));
  const expressions = both.flatMap((one) => ('expression' in one ? [one.expression] : []));
  if (expressions.length < both.length) {
    return undefined;
  }
  shared.complete();
  return (request) => {
    const frame = new Frame(activationOf(request), new Meter(1e12));
    return expressions.map((expression) => valueOrNone(() => expression.runIn(frame)));
  };
}

/** `undefined` = it has none. */
function answered(expression: Expression, request: Request, meter: Meter): unknown {
  return valueOrNone(() => expression.run(activationOf(request), meter));
}

function activationOf({ xs, name, rows, groups }: Request): object {
  return {
    xs,
    name,
    rows: rows.map((row) => new JsonMap(row)),
    groups: groups.map((group) => new Group(group)),
  };
}

function valueOrNone(work: () => unknown): unknown {
  try {
    return work();
  } catch (thrown) {
    if (thrown instanceof EvaluationError) {
      return undefined;
    }
    throw thrown;
  }
}

/** Asks `runs` random expressions of this depth, each for so many requests. Returns for how many requests one was asked. */
export function askRandomly(depth: number, requests: number, runs: number): number {
  let asked = 0;
  const each = fc.array(anyRequest, { minLength: requests, maxLength: requests });
  fc.assert(
    fc.property(anyExpression(depth), each, (tree, some) => {
      asked += expectSameAnswers(tree, some);
    }),
    { numRuns: runs },
  );
  return asked;
}
