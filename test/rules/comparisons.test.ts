import fc from 'fast-check';
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
const OPERATOR = fc.constantFrom('<', '<=', '>', '>=', '==', '!=');
const OF_JSON = fc.constantFrom<unknown>(
  ...[0, -0, -7, 47.5, 48, 0.5, 2 ** 53 - 1, 2 ** 53, 1e300, Number.NaN, 'n', '', true, null],
);
const OTHER = fc.constantFrom<unknown>(
  ...[-7n, 48n, 49n, LIMIT - 1n, LIMIT, LIMIT + 1n, 2n ** 63n - 1n, 'a text of more than sixteen units'],
  ...[new Duration(3_600_000_000_000n), new Duration(0n), new Timestamp(1_000_000_000n), new Timestamp(-1n)],
);

it('compares with constants as the operators do, whichever side they are on', () => {
  fc.assert(
    fc.property(
      OPERATOR,
      fc.constantFrom(...CONSTANTS),
      fc.oneof(OF_JSON, OTHER),
      fc.boolean(),
      (...drawn) => {
        const [operator, [text, constant], raw, isLeft] = drawn;
        const value = fromJson(raw) ?? raw;
        const [a, b] = isLeft ? [constant, value] : [value, constant];
        const said = OPERATORS.get(operator)?.(a, b, new Meter());
        const expected = said instanceof Failure ? said.reason : said;
        const isOfJson = raw === null || typeof raw !== 'object';
        for (const part of ['one', ...(isOfJson ? ['row.n'] : [])]) {
          const expression = isLeft ? `${text} ${operator} ${part}` : `${part} ${operator} ${text}`;
          expect([expression, value, answer(expression, value, raw)]).toEqual([expression, value, expected]);
        }
      },
    ),
    { numRuns: 300 },
  );
});

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
