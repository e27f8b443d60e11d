import { expect, it } from 'vitest';
import { Failure } from '../../src/rules/cel/frame.ts';
import { OPERATORS } from '../../src/rules/cel/operators.ts';
import { compileExpression } from '../../src/rules/expression.ts';
import { Duration, fromJson, JsonMap, Meter, RuleEnvironment, Timestamp } from '../../src/rules/index.ts';

const environment = new RuleEnvironment()
  .variable('one', 'dyn', 'Any value.')
  .variable('row', 'map<string, dyn>', 'A mapping of JSON.');
const LIMIT = 2n ** 53n;

/** As an expression writes them, and as values. */
const CONSTANTS: readonly (readonly [text: string, value: unknown])[] = [
  ['0', 0n],
  ['48', 48n],
  [`${LIMIT - 1n}`, LIMIT - 1n],
  [`${LIMIT + 1n}`, LIMIT + 1n],
  ['(-7)', -7n],
  ['48.0', 48],
  ['0.5', 0.5],
  ['9007199254740992.0', Number(LIMIT)],
  ['"n"', 'n'],
  ['"a text of more than sixteen units"', 'a text of more than sixteen units'],
  ['duration("1h")', new Duration(3_600_000_000_000n)],
  ['timestamp("1970-01-01T00:00:01Z")', new Timestamp(1_000_000_000n)],
];
/** Of JSON, and others. */
const VALUES: readonly unknown[] = [
  ...[0, -0, -7, 47.5, 48, 0.5, 2 ** 53 - 1, 2 ** 53, 1e300, Number.NaN, 'n', '', true, null],
  ...[-7n, 48n, 49n, LIMIT - 1n, LIMIT, LIMIT + 1n, 2n ** 63n - 1n, 'a text of more than sixteen units'],
  ...[3_600_000_000_001n, 3_600_000_000_000n, 0n].map((nanos) => new Duration(nanos)),
  ...[1_000_000_001n, 1_000_000_000n, -1n].map((nanos) => new Timestamp(nanos)),
];

it.each(['<', '<=', '>', '>=', '==', '!='])(
  'compares with constants as %s does, whichever side they are on',
  (operator) => {
    const wrong: unknown[] = [];
    for (const [text, constant] of CONSTANTS) {
      for (const raw of VALUES) {
        const value = fromJson(raw) ?? raw;
        const isOfJson = raw === null || typeof raw !== 'object';
        for (const part of ['one', ...(isOfJson ? ['row.n'] : [])]) {
          for (const isLeft of [true, false]) {
            const [a, b] = isLeft ? [constant, value] : [value, constant];
            const said = OPERATORS.get(operator)?.(a, b, new Meter());
            const expected = said instanceof Failure ? said.reason : said;
            const expression = isLeft ? `${text} ${operator} ${part}` : `${part} ${operator} ${text}`;
            const got = answer(expression, value, raw);
            if (!Object.is(got, expected)) {
              wrong.push({ expression, value, got, expected });
            }
          }
        }
      }
    }
    expect(wrong).toEqual([]);
  },
);

function answer(text: string, one: unknown, n: unknown): unknown {
  const compiled = compileExpression(environment, text, 'bool');
  if ('mistake' in compiled) {
    return compiled.mistake.message;
  }
  try {
    return compiled.expression.run({ one, row: new JsonMap({ n }) });
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : thrown;
  }
}
