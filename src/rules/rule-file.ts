/** Reads rules from a YAML text: their form, and messages about their mistakes. */
import { DateTime } from 'luxon';
import { z } from 'zod';
import type { Problem } from '../base/errors.ts';
import type { YamlDocument } from '../base/yaml/document.ts';
import { formatPath, isMapping, member, type Path, shown, valueAt } from '../base/yaml/tree.ts';
import { nearestName } from '../config/nearest.ts';
import { AccountList } from '../filter/account-limits.ts';
import type { RuleEnvironment } from './cel/environment.ts';
import { compileExpression, type Expression, SharedParts } from './expression.ts';
import { type Need, OPERATIONS, type Operation, type Rule } from './rule.ts';

/** Longer lists of names belong in a table of another program. */
const MAX_EXEMPT = 10_000;

const operation = z.enum(OPERATIONS);
const names = z.array(z.string().trim().min(1)).max(MAX_EXEMPT);
const expression = z.string().trim().min(1);

const writtenRule = z.strictObject({
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

type WrittenRule = z.infer<typeof writtenRule>;

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
function formMistakes(issue: z.core.$ZodIssue, rule: unknown): FormMistake[] {
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
function unknownKey(name: string, known: readonly string[]): string {
  const meant = member(MEANT, name);
  const hint =
    meant !== undefined && known.includes(meant)
      ? `; here it is called "${meant}"`
      : nearestName(name, known) || `; expected ${known.join(', ')}`;
  return `unknown key ${shown(name)}${hint}`;
}

/** More rules than any site has. */
const MAX_RULES = 1000;
/** A time with a zone: without one, its meaning would depend on the place. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/;

/** The environment of each operation. Rules for other operations are checked only for their form. */
export type Environments = { readonly [operation in Operation]?: RuleEnvironment };

/** The result of all files: rules with mistakes are missing, and files with mistakes must not be used. */
export class Reading {
  readonly environments: Environments;
  /** For warnings about rules that have ended. */
  readonly now: Date;
  readonly rules: Record<Operation, Rule[]> = { create: [], update: [], pod: [], task: [] };
  /** All well-formed rules, in order, including those for operations without an environment. */
  readonly named: PlacedRule[] = [];
  /** Mistakes and warnings, each with its place. */
  readonly problems: Problem[] = [];
  /** Common parts of the rules for one operation, in all files. */
  readonly shared: Readonly<Record<Operation, SharedParts>> = {
    create: new SharedParts(),
    update: new SharedParts(),
    pod: new SharedParts(),
    task: new SharedParts(),
  };

  constructor(environments: Environments, now: Date) {
    this.environments = environments;
    this.now = now;
  }

  problem(
    place: Need['place'] | Rule['place'],
    message: string,
    severity: 'error' | 'warning' = 'error',
  ): void {
    this.problems.push({ severity, origin: { kind: 'file', ...place }, message });
  }
}

export interface PlacedRule {
  readonly name: string;
  readonly on: readonly Operation[];
  /** Equal for rules with the same content, however they are written. */
  readonly meaning: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** Adds the rules of one document, and its mistakes. */
export function readDocument(file: string, document: YamlDocument, reading: Reading): void {
  new Reader(file, document, reading).read();
}

class Reader {
  readonly #file: string;
  readonly #document: YamlDocument;
  readonly #reading: Reading;
  readonly #value: unknown;

  constructor(file: string, document: YamlDocument, reading: Reading) {
    this.#file = file;
    this.#document = document;
    this.#reading = reading;
    this.#value = document.value;
  }

  read(): void {
    for (const { name, line } of this.#document.repetitions()) {
      this.#reading.problem({ file: this.#file, line }, `the key ${shown(name)} is there twice`);
    }
    for (const [index, one] of this.#written().entries()) {
      const parsed = writtenRule.safeParse(one);
      const at: Path = ['rules', index];
      if (!parsed.success) {
        const name = isMapping(one) && typeof one.name === 'string' ? `rule ${shown(one.name)}: ` : '';
        for (const { path, message } of parsed.error.issues.flatMap((issue) => formMistakes(issue, one))) {
          this.#problem([...at, ...path], `${name}${message}`);
        }
        continue;
      }
      const { name, on } = parsed.data;
      const meaning = JSON.stringify(parsed.data);
      this.#reading.named.push({ name, on, meaning, ...this.#placeAt([...at, 'name']) });
      this.#add(parsed.data, at);
    }
  }

  #written(): readonly unknown[] {
    const value = this.#value;
    if (!isMapping(value)) {
      const got = value === null || value === undefined ? 'an empty file' : shown(value);
      this.#problem([], `expected a mapping with the key rules, got ${got}`);
      return [];
    }
    for (const key of Object.keys(value).filter((one) => one !== 'rules')) {
      this.#problem([key], unknownKey(key, ['rules']));
    }
    const { rules } = value;
    if (!Array.isArray(rules)) {
      this.#problem(['rules'], `rules: expected a list of rules, got ${shown(rules)}`);
      return [];
    }
    if (rules.length === 0) {
      // A cut-off file may have no other mistake. To have no rules, leave out the file.
      this.#problem(['rules'], 'rules: expected at least one rule, got an empty list');
      return [];
    }
    if (rules.length > MAX_RULES) {
      this.#problem(['rules', MAX_RULES], `expected at most ${MAX_RULES} rules, got ${rules.length}`);
      return [];
    }
    return rules;
  }

  #add(one: WrittenRule, at: Path): void {
    const until = this.#untilOf(one, at);
    const { projects, users = [], tags } = one.exempt;
    if ((projects ?? tags) !== undefined && !one.on.some((on) => on === 'create' || on === 'update')) {
      const message =
        'exempt: projects and tags are of Keystone, and this rule judges no leases; write it in match';
      this.#problem([...at, 'exempt'], `rule ${one.name}: ${message}`);
    }
    const exempt = {
      isEmpty: [projects, users, tags].every((list) => list === undefined || list.length === 0),
      projects: new AccountList(projects ?? []),
      users: new AccountList(users),
      userNames: new Set(users),
      tags: new Set(tags),
      needsNames: tags !== undefined,
    };
    const { file, line } = this.#placeAt([...at, 'name']);
    for (const operation of one.on) {
      const environment = this.#reading.environments[operation];
      if (environment === undefined) {
        continue;
      }
      const needs = this.#namesOf(one, at);
      const compiled = (text: string, type: string, path: Path) => {
        const where = { one, operation, path: [...at, ...path] };
        const expression = this.#compiled(environment, text, type, where);
        for (const { name, offset } of expression?.ledgerCalls ?? []) {
          needs.push({ of: 'ledger', text: `${name}()`, place: this.#placeIn(where.path, offset) });
        }
        for (const { text: type, offset } of expression?.namedTypes ?? []) {
          needs.push({ of: 'resource-type', text: type, place: this.#placeIn(where.path, offset) });
        }
        return expression;
      };
      const match = one.match === undefined ? undefined : compiled(one.match, 'bool', ['match']);
      const allow = compiled(one.allow, 'bool', ['allow']);
      const message =
        typeof one.message === 'string'
          ? one.message
          : compiled(one.message.expression, 'string', ['message', 'expression']);
      // A rule with a wrong `match` must not judge everything.
      if (
        allow !== undefined &&
        message !== undefined &&
        (match === undefined) === (one.match === undefined)
      ) {
        this.#reading.rules[operation].push({
          name: one.name,
          audit: one.mode === 'audit',
          until,
          exempt,
          match,
          allow,
          message,
          place: { file, line },
          needs,
          placeOf: (part, offset = 0) => this.#placeIn([...at, part], offset),
        });
      }
    }
  }

  /** Names of projects and users in `exempt`; an id may look like one. */
  #namesOf({ exempt: { projects = [], users = [] } }: WrittenRule, at: Path): Need[] {
    return Object.entries({ projects, users }).flatMap(([key, texts]) =>
      texts.flatMap((text, index): Need[] => {
        const place = this.#placeAt([...at, 'exempt', key, index]);
        return text.includes('@') ? [{ of: 'keystone', text, place }] : [];
      }),
    );
  }

  /** The place of a character of an expression. */
  #placeIn(path: Path, offset: number): Need['place'] {
    // The schema trims the text.
    const written = valueAt(this.#value, path);
    const blanks = typeof written === 'string' ? written.search(/\S|$/) : 0;
    return this.#placeAt(path, offset + blanks);
  }

  #placeAt(path: Path, offset = 0): Need['place'] {
    return { file: this.#file, ...this.#document.placeOf(path, offset) };
  }

  #compiled(
    environment: RuleEnvironment,
    text: string,
    type: string,
    { one, operation, path }: { one: WrittenRule; operation: Operation; path: Path },
  ): Expression | undefined {
    const result = compileExpression(environment, text, type, this.#reading.shared[operation]);
    if ('expression' in result) {
      return result.expression;
    }
    const { message, offset } = result.mistake;
    const where = `rule ${one.name}: ${formatPath(path.slice(2))}, at ${operation}: `;
    this.#reading.problem(this.#placeIn(path, offset), `${where}${message}`);
    return undefined;
  }

  #untilOf({ name, until }: WrittenRule, at: Path): number | undefined {
    if (until === undefined) {
      return undefined;
    }
    const path = [...at, 'until'];
    const time = TIME.test(until) ? DateTime.fromISO(until) : undefined;
    if (time?.isValid !== true) {
      const expected = 'expected a time with a zone, such as "2027-01-31T00:00:00+01:00"';
      this.#problem(path, `rule ${name}: until: ${expected}, got ${shown(until)}`);
      return undefined;
    }
    if (time.toMillis() <= this.#reading.now.getTime()) {
      const message = `rule ${name}: no longer applies: it ended at ${until}`;
      this.#problem(path, message, 'warning');
    }
    return time.toMillis();
  }

  #problem(path: Path, message: string, severity?: 'error' | 'warning'): void {
    this.#reading.problem(this.#placeAt(path), message, severity);
  }
}
