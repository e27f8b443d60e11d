/**
 * Compares rules with those before a reload. A file that was cut off while it was written, by a full disk or
 * during a copy, is often still YAML: with fewer rules, or with a rule that lacks its last condition.
 */
import type { Problem } from '../base/errors.ts';
import { readRules } from './read-rules.ts';
import type { PlacedRule } from './rule-file.ts';

/** The rules of all sections, as written. */
export interface WrittenRules {
  /** Path that an option names → its rules. */
  readonly rules: ReadonlyMap<string, readonly PlacedRule[]>;
  /** File → its text. */
  readonly texts: ReadonlyMap<string, string>;
}

/** The names of rules. */
interface RuleChanges {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly gone: readonly string[];
}

const SECTIONS = [
  { operations: ['create', 'update'], what: 'leases' },
  { operations: ['pod'], what: 'pods' },
  { operations: ['task'], what: 'tasks' },
] as const;

const MAX_NAMED = 5;

/** Ignores mistakes in rules: they are reported where the rules are used. */
export function writtenRules(paths: readonly string[]): WrittenRules {
  const read = [...new Set(paths)].map((path) => [path, readRules(path, {})] as const);
  return {
    rules: new Map(read.map(([path, { named }]) => [path, named])),
    texts: new Map(read.flatMap(([, { texts }]) => [...texts])),
  };
}

/** Changes that were most likely unintended: a restart accepts them. */
export function cutOffProblems(before: WrittenRules, next: WrittenRules): Problem[] {
  return [
    ...[...next.texts].flatMap(([file, text]) => cutOff(file, before, next, before.texts.get(file), text)),
    ...[...next.rules].flatMap(([path, rules]) => emptied(path, before.rules.get(path) ?? [], rules)),
  ];
}

function cutOff(
  file: string,
  before: WrittenRules,
  next: WrittenRules,
  was: string | undefined,
  text: string,
): Problem[] {
  if (was === undefined) {
    return [];
  }
  const lost = without(rulesIn(before, file), all(next));
  const isOther = lost.length > 0 || without(rulesIn(next, file), all(before)).length > 0;
  const why =
    lost.length > 0 && was.startsWith(text)
      ? `the end of the file is gone, and with it ${named(lost)}; restart to accept it`
      : isOther && was.endsWith('\n') && !text.endsWith('\n')
        ? 'the file no longer ends with a line break, so it was most likely cut off; add one, or restart to accept it'
        : undefined;
  const line = text.split('\n').length;
  return why === undefined ? [] : [{ severity: 'error', origin: { kind: 'file', file, line }, message: why }];
}

function emptied(path: string, before: readonly PlacedRule[], next: readonly PlacedRule[]): Problem[] {
  return SECTIONS.filter(
    ({ operations }) =>
      before.some(({ on }) => operations.some((one) => on.includes(one))) &&
      !next.some(({ on }) => operations.some((one) => on.includes(one))),
  ).map(({ what }) => ({
    severity: 'error',
    message: `${path}: the last rule for ${what} is gone; restart to accept it`,
  }));
}

/** The changes in all files together: a rule that moved to another file is unchanged. */
export function ruleChanges(before: WrittenRules, next: WrittenRules): RuleChanges {
  const old = all(before);
  const young = all(next);
  const lost = without(old, young);
  const won = without(young, old);
  const names = (rules: readonly PlacedRule[]) => [...new Set(rules.map(({ name }) => name))];
  const oldNames = new Set(names(old));
  const youngNames = new Set(names(young));
  return {
    added: names(won).filter((name) => !oldNames.has(name)),
    changed: names([...lost, ...won]).filter((name) => oldNames.has(name) && youngNames.has(name)),
    gone: names(lost).filter((name) => !youngNames.has(name)),
  };
}

function all({ rules }: WrittenRules): PlacedRule[] {
  return [...rules.values()].flat();
}

function rulesIn(written: WrittenRules, file: string): PlacedRule[] {
  return all(written).filter((one) => one.file === file);
}

/** The rules that equal none of `others`. */
function without(rules: readonly PlacedRule[], others: readonly PlacedRule[]): PlacedRule[] {
  const meanings = new Set(others.map(({ meaning }) => meaning));
  return rules.filter(({ meaning }) => !meanings.has(meaning));
}

function named(rules: readonly PlacedRule[]): string {
  const names = rules.slice(0, MAX_NAMED).map(({ name }) => name);
  const more = rules.length > MAX_NAMED ? ` and ${rules.length - MAX_NAMED} more` : '';
  return `${rules.length === 1 ? 'rule' : 'rules'} ${names.join(', ')}${more}, or a part of ${rules.length === 1 ? 'it' : 'them'}`;
}
