/** CEL's own conformance cases. `CEL_SPEC`: a folder in which `npm install @bufbuild/cel-spec` was run; skipped without. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { isMap, itemsOf } from '../../src/rules/cel/values.ts';
import { compileExpression, Duration, RuleEnvironment, Timestamp } from '../../src/rules/index.ts';

const { CEL_SPEC } = process.env;

/** A value as protobuf writes it in JSON: one key says its type. */
const written = z.record(z.string(), z.unknown());
type Written = z.infer<typeof written>;

const aCase = z.object({
  name: z.string().default(''),
  expr: z.string(),
  value: written.optional(),
  typedResult: z.object({ result: written.optional() }).optional(),
  evalError: z.unknown().optional(),
  checkOnly: z.boolean().default(false),
  typeEnv: z.array(z.object({ name: z.string(), ident: z.object({ type: written }).optional() })).default([]),
  bindings: z.record(z.string(), z.object({ value: written.optional() })).default({}),
});
type Case = z.infer<typeof aCase>;

interface Section {
  readonly name: string;
  readonly tests?: readonly { readonly original: unknown }[];
  readonly suites?: readonly Section[];
}

/** The case needs a type that rules do not have: messages, bytes, unsigned numbers. */
class NotHere extends Error {}

describe.skipIf(CEL_SPEC === undefined)("CEL's conformance cases", () => {
  it('are answered as they say, or refused when they are loaded', () => {
    const counts = { passed: 0, refused: 0 };
    const wrong: string[] = [];
    for (const one of conformanceCases(join(CEL_SPEC ?? '', 'x.js'))) {
      const verdict = verdictOf(one);
      if (verdict === 'passed' || verdict === 'refused') {
        counts[verdict] += 1;
      } else {
        wrong.push(`${one.name}: ${one.expr}: ${verdict}`);
      }
    }
    expect(wrong).toEqual([]);
    // Of @bufbuild/cel-spec 0.6.1: what is refused are messages, bytes, unsigned numbers and extensions.
    expect(counts.passed).toBeGreaterThanOrEqual(PASSED);
  });
});

const PASSED = 717;

function conformanceCases(from: string): Case[] {
  const { tests } = createRequire(from)('@bufbuild/cel-spec/testdata/conformance.js') as { tests: Section };
  const casesOf = (section: Section): Case[] => [
    ...(section.tests ?? []).map(({ original }) => aCase.parse(original)),
    ...(section.suites ?? []).flatMap(casesOf),
  ];
  return casesOf(tests);
}

function verdictOf(one: Case): string {
  const environment = new RuleEnvironment();
  let activation: Record<string, unknown>;
  try {
    activation = declare(one, environment);
  } catch (thrown) {
    if (thrown instanceof NotHere) {
      return 'refused';
    }
    throw thrown;
  }
  const type = checkedType(environment, one.expr);
  const compiled = type === undefined ? undefined : compileExpression(environment, one.expr, type);
  if (compiled === undefined || 'mistake' in compiled) {
    return 'refused';
  }
  if (one.checkOnly) {
    return 'passed';
  }
  const expected = one.evalError !== undefined ? 'failure' : shownExpected(one);
  let got: string;
  try {
    got = shown(compiled.expression.run(activation));
  } catch {
    got = 'failure';
  }
  return got === expected ? 'passed' : `expected ${expected}, got ${got}`;
}

function checkedType(environment: RuleEnvironment, text: string): string | undefined {
  try {
    return environment.types.parse(text).check().type;
  } catch {
    return undefined;
  }
}

function declare({ typeEnv, bindings }: Case, environment: RuleEnvironment): Record<string, unknown> {
  const types = new Map<string, string>(Object.keys(bindings).map((name) => [name, 'dyn']));
  for (const { name, ident } of typeEnv) {
    if (ident === undefined) {
      throw new NotHere();
    }
    types.set(name, typeOf(ident.type));
  }
  for (const [name, type] of types) {
    if (name.includes('.')) {
      throw new NotHere();
    }
    environment.variable(name, type, 'A variable of the case.');
  }
  return Object.fromEntries(Object.entries(bindings).map(([name, { value }]) => [name, valueIn(value)]));
}

const TYPES: Readonly<Record<string, string>> = {
  INT64: 'int',
  DOUBLE: 'double',
  STRING: 'string',
  BOOL: 'bool',
  TIMESTAMP: 'timestamp',
  DURATION: 'duration',
};

function typeOf({ primitive, wellKnown, dyn, listType, mapType }: Written): string {
  if (dyn !== undefined) {
    return 'dyn';
  }
  if (listType !== undefined) {
    return `list<${typeOf(written.parse(written.parse(listType).elemType))}>`;
  }
  if (mapType !== undefined) {
    const { keyType, valueType } = written.parse(mapType);
    return `map<${typeOf(written.parse(keyType))}, ${typeOf(written.parse(valueType))}>`;
  }
  const type = TYPES[String(primitive ?? wellKnown)];
  if (type === undefined) {
    throw new NotHere();
  }
  return type;
}

function valueIn(value: Written | undefined): unknown {
  const [kind, content] = Object.entries(value ?? {})[0] ?? [];
  switch (kind) {
    case 'int64Value':
      return BigInt(String(content));
    case 'doubleValue':
      return Number(content);
    case 'stringValue':
    case 'boolValue':
      return content;
    case 'nullValue':
      return null;
    case 'listValue':
      return elementsOf(content).map(valueIn);
    case 'mapValue':
      return new Map(entriesOf(content).map(({ key, value: one }) => [valueIn(key), valueIn(one)]));
    case 'objectValue':
      return momentOf(written.parse(content));
    default:
      throw new NotHere();
  }
}

function elementsOf(list: unknown): Written[] {
  return z.object({ values: z.array(written).default([]) }).parse(list).values;
}

function entriesOf(mapping: unknown): { key: Written; value: Written }[] {
  return z.object({ entries: z.array(z.object({ key: written, value: written })).default([]) }).parse(mapping)
    .entries;
}

function momentOf({ '@type': type, value }: Written): Timestamp | Duration {
  const [, sign, whole = '', fraction = ''] = /^(-?)(.*?)(?:\.(\d+))?(?:Z|s)$/.exec(String(value)) ?? [];
  const nanos = BigInt(fraction.padEnd(9, '0'));
  switch (type) {
    case 'type.googleapis.com/google.protobuf.Timestamp':
      return new Timestamp(BigInt(Date.parse(`${whole}Z`)) * 1_000_000n + nanos);
    case 'type.googleapis.com/google.protobuf.Duration':
      return new Duration((sign === '-' ? -1n : 1n) * (BigInt(whole) * 1_000_000_000n + nanos));
    default:
      throw new NotHere();
  }
}

/** A case without a result expects true. */
function shownExpected({ value, typedResult }: Case): string {
  const expected = value ?? typedResult?.result;
  try {
    return expected === undefined ? shown(true) : shown(valueIn(expected));
  } catch (thrown) {
    return thrown instanceof NotHere ? `another type: ${JSON.stringify(expected)}` : String(thrown);
  }
}

/** A text that differs for values that differ, also by their type alone. */
function shown(value: unknown): string {
  if (value instanceof Timestamp || value instanceof Duration) {
    return `${value.constructor.name} ${value.nanos}`;
  }
  const items = itemsOf(value);
  if (items !== undefined) {
    return `[${items.map(shown).join(', ')}]`;
  }
  if (isMap(value)) {
    return `{${[...value.keys()]
      .map((key) => `${shown(key)}: ${shown(value.get(key))}`)
      .sort()
      .join(', ')}}`;
  }
  return typeof value === 'string' ? JSON.stringify(value) : `${typeof value} ${value}`;
}
