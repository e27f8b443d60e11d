/** Random values for a schema, and what people make wrong in them. */
import fc, { type Arbitrary } from 'fast-check';
import { isMapping, type Mapping, setMember } from '../../../src/base/yaml/tree.ts';
import type { JsonSchema, TypeName } from '../../../src/skypilot/schema/json-schema.ts';
import { keyIndex } from '../../../src/skypilot/schema/nearest-key.ts';

/** Texts that some pattern or enumeration matches, or nearly. */
const TEXTS = [
  ...['', 'x', 'all', 'all\n', 'ALL', 'BUILD', 'a.b', 'a.B.c', 'https://a', 'http://', 'sky_a', 'sky_', '~'],
  ...['~x', '~/a', '/a'],
  ...['aws', 'AWS', 'aws/r', 'aws/r/z', 'aws/r/z/y', 'aws/', '*', '*/r', 'k8s', 'K8S/a/b', 'Kubernetes'],
  ...['\u212a8s', 'gpc'],
  ...['s3://b', 's3://', 'my-vpc', 'p/my-vpc', 'My', 'a_b', 'a\nb', '10', '10m', '10M', '-1', '1.5', '٣'],
  ...['256GB', '256gB', '1e3'],
  ...['512M', '90s', '1h30m', '+1', '1.', 'A100:8', 'ingress', 'Ingress', 'portforward', 'jobs', 'stop'],
  ...['MOUNT', 'mount', 'gke'],
  ...['user', 'READ_WRITE', 'read_write', 'personal', 'cluster', 'compute', 'SERVICE_ACCOUNT', 'S3', 's3'],
  ...['$A', 'volume'],
];
const text = fc.constantFrom(...TEXTS);
const number = fc.constantFrom(-1, 0, 0.5, 1, 1.5, 2, 60, 255, 256, 65_535, 65_536, 1e21);
const scalar = fc.oneof(text, number, fc.boolean(), fc.constant(null));
const junk = fc.oneof(
  { weight: 6, arbitrary: scalar },
  fc.array(scalar, { maxLength: 2 }),
  fc.dictionary(text, scalar, { maxKeys: 2 }),
);
const name = fc.constantFrom(
  ...['a', 'west', 'default', 'A100', 'A100:8', '1a', '__proto__', 'constructor', '/a', 'aws', 'ibm'],
);

/** A value that mostly matches. */
export function sampleOf(schema: JsonSchema): Arbitrary<unknown> {
  const names = schema.case_insensitive_enum ?? schema.case_sensitive_enum ?? schema.enum;
  if (names !== undefined) {
    return fc.constantFrom(...names);
  }
  const alternatives = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter(
    ({ required, not }) => required === undefined || not === undefined,
  );
  if (alternatives.length > 0 && schema.properties === undefined) {
    return fc.oneof(
      ...alternatives.map((one) =>
        sampleOf({
          ...one,
          ...((one.type ?? schema.type) ? { type: one.type ?? schema.type ?? 'string' } : {}),
        }),
      ),
    );
  }
  const { type = 'object' } = schema;
  const types: readonly TypeName[] = typeof type === 'string' ? [type] : type;
  return fc.oneof(...types.map((one) => sampleOfType(one, schema)));
}

function sampleOfType(type: TypeName, schema: JsonSchema): Arbitrary<unknown> {
  switch (type) {
    case 'string': {
      const { pattern } = schema;
      const matching = TEXTS.filter(
        (one) => pattern === undefined || new RegExp(pattern.replaceAll('(?i:', '(?:')).test(one),
      );
      return matching.length === 0 ? text : fc.constantFrom(...matching);
    }
    case 'integer':
      return fc.constantFrom(0, 1, 2, 60);
    case 'number':
      return fc.constantFrom(0, 0.5, 1, 2);
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(schema.items === undefined ? scalar : sampleOf(schema.items), {
        minLength: schema.minItems ?? 0,
        maxLength: 2,
      });
    case 'object':
      return mappingOf(schema);
  }
}

/** A few of its members: all of them would never be right. */
function mappingOf(schema: JsonSchema): Arbitrary<Mapping> {
  const { properties = {}, required = [], additionalProperties: further } = schema;
  const known = Object.entries(properties);
  const some =
    known.length === 0
      ? fc.constant<Mapping>({})
      : fc
          .uniqueArray(fc.constantFrom(...known), { maxLength: 3, selector: ([key]) => key })
          .chain((members) => {
            const all = [...members, ...known.filter(([key]) => required.includes(key))];
            return fc.record(Object.fromEntries(all.map(([key, one]) => [key, sampleOf(one)])));
          });
  const named =
    typeof further === 'object' || (further !== false && known.length === 0)
      ? fc.dictionary(name, typeof further === 'object' ? sampleOf(further) : junk, {
          minKeys: schema.minProperties ?? 0,
          maxKeys: Math.min(2, schema.maxProperties ?? 2),
        })
      : fc.constant<Mapping>({});
  return fc.tuple(some, named).map(([a, b]) => {
    const both: Record<string, unknown> = {};
    for (const [key, value] of [...Object.entries(a), ...Object.entries(b)]) {
      setMember(both, key, value);
    }
    return both;
  });
}

/** With one mistake, two or none. */
export function mutated(value: unknown, schema: JsonSchema): Arbitrary<unknown> {
  const keys = fc.constantFrom(...keyIndex(schema).keys());
  const mistake = fc.record({
    where: fc.array(fc.nat(), { maxLength: 6 }),
    kind: fc.constantFrom('replace', 'add', 'remove', 'null'),
    key: fc.oneof(keys, name),
    junk,
  });
  return fc
    .array(mistake, { maxLength: 2 })
    .map((mistakes) => mistakes.reduce<unknown>((tree, one) => changed(tree, one.where, one, 0), value));
}

interface Mistake {
  readonly kind: string;
  readonly key: string;
  readonly junk: unknown;
}

function changed(value: unknown, where: readonly number[], mistake: Mistake, depth: number): unknown {
  const members = isMapping(value) ? Object.entries(value) : [];
  const [step, ...further] = where;
  const [key, below] = members[(step ?? 0) % Math.max(1, members.length)] ?? [];
  if (Array.isArray(value) && value.length > 0 && step !== undefined) {
    return value.map((item, index) =>
      index === step % value.length ? changed(item, further, mistake, depth + 1) : item,
    );
  }
  if (key !== undefined && step !== undefined) {
    return withMember(value as Mapping, key, changed(below, further, mistake, depth + 1));
  }
  if (isMapping(value) && (mistake.kind === 'add' || depth === 0)) {
    return withMember(value, mistake.key, mistake.junk);
  }
  if (isMapping(value) && mistake.kind === 'remove' && key !== undefined) {
    const { [key]: _, ...rest } = value;
    return rest;
  }
  return mistake.kind === 'null' ? null : mistake.junk;
}

function withMember(mapping: Mapping, key: string, value: unknown): Mapping {
  const copy = { ...mapping };
  setMember(copy, key, value);
  return copy;
}

/** Scalars that PyYAML takes for something else than a text, or does not, though they look like it. */
const UNQUOTED = [
  ...['2026-01-01', '2026-1-1 10:00:00', '2026-01-01T10:00:00Z', '2026-1-1', '10:00:00', '1:30'],
  ...['190:20:30.15'],
  ...['on', 'Off', 'yes', 'NO', 'y', 'n', 'True', '~', 'null', 'Null', 'nil', '1_000', '0o17', '017', '08'],
  ...['0x1F'],
  ...['0b11', '.inf', '-.INF', '.nan', '1e3', '1.e+3', '1.0', '+1', '-0', '1.', '.5', '9007199254740993'],
];

/** A value as YAML in which one scalar in three is one of `UNQUOTED`. */
export function textOf(value: unknown): Arbitrary<string> {
  if (Array.isArray(value)) {
    return fc.tuple(...value.map(textOf)).map((items) => `[${items.join(', ')}]`);
  }
  if (isMapping(value)) {
    const members = Object.entries(value).map(([key, one]) =>
      textOf(one).map((written) => `${JSON.stringify(key)}: ${written}`),
    );
    return fc.tuple(...members).map((all) => `{${all.join(', ')}}`);
  }
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant(JSON.stringify(value)) },
    { weight: 1, arbitrary: fc.constantFrom(...UNQUOTED) },
  );
}
