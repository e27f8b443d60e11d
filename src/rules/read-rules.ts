/** Reads the rules of a file, or of all YAML files of a folder in the order of their names. */
import type { Problem } from '../base/errors.ts';
import { YamlDocument } from '../yaml/document.ts';
import { YamlError } from '../yaml/error.ts';
import { MAX_STEPS } from './cel/meter.ts';
import { OPERATIONS, type Operation, type Rule, type RuleSet } from './rule.ts';
import {
  type Environments,
  type NamedRule,
  Reading,
  type RuleProblem,
  type RulesOfFile,
  rulesOf,
} from './rule-file.ts';
import { readRuleFiles } from './rule-files.ts';

export interface ReadRules {
  readonly rules: RuleSet;
  /** All rules whose form is right, in order; also those for operations without an environment. */
  readonly named: readonly PlacedRule[];
  /** Mistakes and warnings, each with its place. */
  readonly problems: readonly Problem[];
  /** File → what is written there. */
  readonly texts: ReadonlyMap<string, string>;
}

export interface PlacedRule extends NamedRule {
  readonly file: string;
}

/** What cannot be read is among the problems. `now`: of rules that have ended. */
export function readRules(path: string, environments: Environments, now = new Date()): ReadRules {
  const rules: Record<Operation, Rule[]> = { create: [], update: [], pod: [], task: [] };
  const problems: Problem[] = [];
  const named: PlacedRule[] = [];
  const reading = new Reading(environments, now);
  const files = readRuleFiles(path);
  if (files.length === 0) {
    const message = `${path}: expected files that end in .yaml or .yml, found none: no rule would be enforced`;
    problems.push({ severity: 'error', message });
  }
  const texts = new Map<string, string>();
  for (const one of files) {
    const { file } = one;
    const read = 'text' in one ? readText(file, one.text, reading) : unread(one.mistake);
    if ('text' in one) {
      texts.set(file, one.text);
      problems.push(...unendedFile(one));
    }
    for (const operation of OPERATIONS) {
      rules[operation].push(...read.rules[operation]);
    }
    named.push(...read.named.map((one) => ({ ...one, file })));
    problems.push(
      ...read.problems.map(
        ({ severity = 'error', line, column, message }): Problem => ({
          severity,
          origin: { kind: 'file', file, line, column },
          message,
        }),
      ),
    );
  }
  problems.push(...repeatedNames(named));
  for (const operation of OPERATIONS) {
    problems.push(...tooDear(rules[operation], operation));
  }
  for (const parts of Object.values(reading.shared)) {
    parts.complete();
  }
  return { rules, named, problems, texts };
}

/** A warning: editors end files with a line break, and what was cut off within a line may still be a rule, such as `allow: hours(lease) <= 4`. */
function unendedFile({ file, text }: { readonly file: string; readonly text: string }): Problem[] {
  const line = text.split('\n').length;
  const message = 'the file does not end with a line break: it may have been cut off';
  // JSON says itself where it ends.
  return /(?:^|[\n}\]])$/.test(text)
    ? []
    : [{ severity: 'warning', origin: { kind: 'file', file, line }, message }];
}

/** What most mistakes of this kind are about. */
const QUOTING =
  '; in an expression, quotes, ": " and " #" mean something in YAML: write it below "allow: >-"';

/** Decisions and metrics name rules. */
function repeatedNames(named: readonly PlacedRule[]): Problem[] {
  const first = new Map<string, PlacedRule>();
  return named.flatMap((one): Problem[] => {
    const before = first.get(one.name);
    if (before === undefined) {
      first.set(one.name, one);
      return [];
    }
    const { file, line, column } = one;
    const message = `rule ${one.name}: the name is taken: ${before.file}:${before.line} has a rule of this name`;
    return [{ severity: 'error', origin: { kind: 'file', file, line, column }, message }];
  });
}

/** Every request is judged by all rules of its operation: together they must not take too long. */
function tooDear(rules: readonly Rule[], operation: Operation): Problem[] {
  const total = rules.reduce((sum, rule) => sum + stepsOf(rule), 0);
  const [dearest] = [...rules].sort((a, b) => stepsOf(b) - stepsOf(a));
  if (dearest === undefined || total <= MAX_STEPS) {
    return [];
  }
  const shown = (steps: number) => steps.toLocaleString('en-US');
  const { file, line } = dearest.place;
  return [
    {
      severity: 'error',
      origin: { kind: 'file', file, line },
      message: `rule ${dearest.name}: all rules together may take ${shown(total)} steps for one ${operation}, and this one the most of them, ${shown(stepsOf(dearest))}; expected at most ${shown(MAX_STEPS)}`,
    },
  ];
}

function stepsOf({ match, allow, message }: Rule): number {
  return (match?.steps ?? 0) + allow.steps + (typeof message === 'string' ? 0 : message.steps);
}

function readText(file: string, text: string, reading: Reading): RulesOfFile {
  try {
    return rulesOf(file, YamlDocument.parse(text), reading);
  } catch (thrown) {
    if (thrown instanceof YamlError) {
      return unread(`expected YAML: ${thrown.reason}${QUOTING}`, thrown.line);
    }
    throw thrown;
  }
}

function unread(message: string, line = 1): RulesOfFile {
  const problems: RuleProblem[] = [{ line, message }];
  return { rules: { create: [], update: [], pod: [], task: [] }, named: [], problems };
}
