/** Building blocks for the schemas of scheduling policies. */
import { z } from 'zod';

export const EXPRESSION_OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'] as const;
export const TOLERATION_OPERATORS = ['Equal', 'Exists', 'Lt', 'Gt'] as const;
export const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const;

export const text = z.string('a string').min(1, 'a non-empty string');
/** Label values may be empty. */
export const labelValue = z.string('a string');

/** A mapping without unknown fields. The error for an unknown field lists the known ones: see `schemaProblems`. */
export function mapping<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: ({ code }) => (code === 'unrecognized_keys' ? Object.keys(shape).join(' ') : 'a mapping'),
  });
}

export function listOf<Item extends z.ZodType>(item: Item) {
  return z.array(item, 'a list');
}

export function filled<Item extends z.ZodType>(item: Item) {
  return listOf(item).min(1, 'at least one');
}

export function oneOf<const Names extends readonly [string, ...string[]]>(names: Names) {
  return z.enum(names, `one of ${names.join(', ')}`);
}

export function labels<Value extends z.ZodType>(value: Value) {
  return z.record(text, value, 'a mapping of labels');
}

/** Rejects mappings that have all of the given names, here and in the generated schema. */
export function notTogether<Schema extends z.ZodObject>(
  schema: Schema,
  ...pairs: readonly [string, string][]
) {
  const refused = pairs.map((pair) => ({ not: { required: pair } }));
  return schema
    .superRefine((value, check) => {
      for (const [kept, other] of pairs) {
        if (kept in value && other in value) {
          check.addIssue({ code: 'custom', path: [other], message: `nothing, because ${kept} is set too` });
        }
      }
    })
    .meta({ allOf: refused });
}
