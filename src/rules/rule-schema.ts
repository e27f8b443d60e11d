/** The form of a rule in a file, and messages about its mistakes. */
import { z } from 'zod';
import { isMapping, type Path, shown } from '../base/yaml/tree.ts';
import { nearestName } from '../config/nearest.ts';
import { OPERATIONS } from './rule.ts';

/** Longer lists of names belong in a table of another program. */
const MAX_EXEMPT = 10_000;

const operation = z.enum(OPERATIONS);
const names = z.array(z.string().trim().min(1)).max(MAX_EXEMPT);
const expression = z.string().trim().min(1);

export const writtenRule = z.strictObject({
  name: z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/),
  on: z
    .union([operation.transform((one) => [one]), z.array(operation).min(1)])
    .default(['create', 'update'])
    .transform((all) => [...new Set(all)]),
  match: expression.optional(),
  allow: expression,
  message: z.union([z.string().trim().min(1).max(2000), z.strictObject({ expression })]),
  mode: z.enum(['enforce', 'audit']).default('enforce'),
  until: z.string().optional(),
  exempt: z.strictObject({ projects: names, users: names, tags: names }).partial().default({}),
});

export type WrittenRule = z.infer<typeof writtenRule>;

/** The expected value of each key. */
const EXPECTED: Readonly<Record<string, string>> = {
  name: 'expected a name such as no-gpus-at-weekends: at most 63 of a-z, 0-9 and -',
  on: 'expected create, update, pod or task, or a list of these; the end of a lease is never refused',
  match: 'expected an expression in quotes, such as "lease.name != \'\'"',
  allow: 'expected an expression in quotes, such as "hours(lease) <= 48.0"',
  message: 'expected a text, or a mapping with an expression that makes a text; quote words such as "no"',
  mode: 'expected enforce or audit',
  until: 'expected a time in quotes, such as "2027-01-31T00:00:00+01:00"',
  exempt: 'expected a mapping with lists: projects, users, tags',
};

const KEYS: readonly string[] = Object.keys(writtenRule.shape);
const EXEMPT: readonly string[] = ['projects', 'users', 'tags'];

/** Keys of other languages → their names here. */
const MEANT: Readonly<Record<string, string>> = {
  expression: 'allow',
  rule: 'allow',
  when: 'match',
  condition: 'match',
  deny: 'allow',
  operations: 'on',
  reason: 'message',
  description: 'message',
  expires: 'until',
  enabled: 'mode',
};

interface FormMistake {
  readonly path: Path;
  readonly message: string;
}

/** The mistakes of an issue: one for each unknown key. */
export function formMistakes(issue: z.core.$ZodIssue, rule: unknown): FormMistake[] {
  const path = issue.path.filter((step) => typeof step !== 'symbol');
  const [key] = path;
  if (issue.code === 'unrecognized_keys') {
    const known = key === 'exempt' ? EXEMPT : KEYS;
    return issue.keys.map((name) => ({ path: [...path, name], message: unknownKey(name, known) }));
  }
  if (key === undefined) {
    return [{ path, message: `expected a rule: a mapping with name, allow and message, got ${shown(rule)}` }];
  }
  if (key === 'exempt' && path.length > 1) {
    const message = `exempt.${String(path[1])}: expected a list of texts, such as ["3d9b1b9c"] or ["climate@Default"]`;
    return [{ path, message }];
  }
  const value = isMapping(rule) ? rule[String(key)] : undefined;
  return [{ path: path.slice(0, 1), message: `${key}: ${EXPECTED[String(key)]}, got ${shown(value)}` }];
}

/** The message about an unknown key, such as `…; the nearest right name is "allow"`. */
export function unknownKey(name: string, known: readonly string[]): string {
  const meant = Object.hasOwn(MEANT, name) ? MEANT[name] : undefined;
  const hint =
    meant !== undefined && known.includes(meant)
      ? `; here it is called "${meant}"`
      : nearestName(name, known) || `; expected ${known.join(', ')}`;
  return `unknown key ${shown(name)}${hint}`;
}
