/** What the schemas of scheduling policies are made of: texts, lists, names out of a few, labels. */
import { z } from 'zod';

export const EXPRESSION_OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'] as const;
export const TOLERATION_OPERATORS = ['Equal', 'Exists', 'Lt', 'Gt'] as const;
export const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const;

export const text = z.string('a text').min(1, 'a text that is not empty');
/** Of a label: an empty one is a value. */
export const labelValue = z.string('a text');

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

/** Refuses mappings that hold all of some names, here and in the schema that is made of it. */
export function notTogether<Schema extends z.ZodObject>(
  schema: Schema,
  ...pairs: readonly [string, string][]
) {
  const refused = pairs.map((pair) => ({ not: { required: pair } }));
  return schema
    .superRefine((value, check) => {
      for (const [kept, other] of pairs) {
        if (kept in value && other in value) {
          check.addIssue({ code: 'custom', path: [other], message: `nothing, since ${kept} is there too` });
        }
      }
    })
    .meta({ allOf: refused });
}
