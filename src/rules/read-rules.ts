/** Reads the rules of a file, or of all YAML files of a folder in the order of their names. */

import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { errorText, type Problem } from '../base/errors.ts';
import { YamlDocument } from '../base/yaml/document.ts';
import { YamlError } from '../base/yaml/tree.ts';
import { readRegularFile, systemErrorText } from '../config/read-file.ts';
import { MAX_STEPS } from './cel/frame.ts';
import { OPERATIONS, type Operation, type Rule, type RuleSet } from './rule.ts';
import { type Environments, type PlacedRule, Reading, readDocument } from './rule-file.ts';

export interface ReadRules {
  readonly rules: RuleSet;
  /** All well-formed rules, in order, including those for operations without an environment. */
  readonly named: readonly PlacedRule[];
  /** Mistakes and warnings, each with its place. */
  readonly problems: readonly Problem[];
  /** File → its text. */
  readonly texts: ReadonlyMap<string, string>;
}

/** Unreadable files are among the problems. `now`: to find rules that have ended. */
export function readRules(path: string, environments: Environments, now = new Date()): ReadRules {
  const reading = new Reading(environments, now);
  const { rules, named, problems } = reading;
  const files = readRuleFiles(path);
  if (files.length === 0) {
    const message = `${path}: expected files that end in .yaml or .yml, found none: no rule would be enforced`;
    problems.push({ severity: 'error', message });
  }
  const texts = new Map<string, string>();
  for (const one of files) {
    if ('text' in one) {
      texts.set(one.file, one.text);
      readText(one.file, one.text, reading);
    } else {
      reading.problem({ file: one.file, line: 1 }, one.mistake);
    }
  }
  reportRepeatedNames(reading);
  for (const operation of OPERATIONS) {
    problems.push(...tooExpensive(rules[operation], operation));
    reading.shared[operation].complete();
  }
  return { rules, named, problems, texts };
}

/** The cause of most mistakes of this kind. */
const QUOTING =
  '; in an expression, quotes, ": " and " #" mean something in YAML: write it below "allow: >-"';

/** Decisions and metrics identify rules by name. */
function reportRepeatedNames(reading: Reading): void {
  const first = new Map<string, PlacedRule>();
  for (const one of reading.named) {
    const { name, file, line, column } = one;
    const before = first.get(name);
    if (before === undefined) {
      first.set(name, one);
    } else {
      const message = `rule ${name}: the name is taken: ${before.file}:${before.line} has a rule of this name`;
      reading.problem({ file, line, column }, message);
    }
  }
}

/** All rules of an operation judge every request: together they must not take too long. */
function tooExpensive(rules: readonly Rule[], operation: Operation): Problem[] {
  const total = rules.reduce((sum, rule) => sum + stepsOf(rule), 0);
  const [mostExpensive] = [...rules].sort((a, b) => stepsOf(b) - stepsOf(a));
  if (mostExpensive === undefined || total <= MAX_STEPS) {
    return [];
  }
  const shown = (steps: number) => steps.toLocaleString('en-US');
  const { file, line } = mostExpensive.place;
  return [
    {
      severity: 'error',
      origin: { kind: 'file', file, line },
      message: `rule ${mostExpensive.name}: all rules together may take ${shown(total)} steps for one ${operation}, and this one the most of them, ${shown(stepsOf(mostExpensive))}; expected at most ${shown(MAX_STEPS)}`,
    },
  ];
}

function stepsOf({ match, allow, message }: Rule): number {
  return (match?.steps ?? 0) + allow.steps + (typeof message === 'string' ? 0 : message.steps);
}

function readText(file: string, text: string, reading: Reading): void {
  // Editors end files with a line break, and text that was cut off within a line may still be a rule, such as
  // `allow: hours(lease) <= 4`. JSON marks its own end.
  if (!/(?:^|[\n}\]])$/.test(text)) {
    const message = 'the file does not end with a line break: it may have been cut off';
    reading.problem({ file, line: text.split('\n').length }, message, 'warning');
  }
  try {
    readDocument(file, YamlDocument.parse(text), reading);
  } catch (thrown) {
    if (!(thrown instanceof YamlError)) {
      throw thrown;
    }
    reading.problem({ file, line: thrown.line ?? 1 }, `expected YAML: ${thrown.reason}${QUOTING}`);
  }
}

/** In bytes. A rule has hundreds. */
const MAX_FILE = 4 * 1024 * 1024;
const MAX_FILES = 1000;

/** The text of a file, or why it is missing. */
type RuleFile =
  | { readonly file: string; readonly text: string }
  | { readonly file: string; readonly mistake: string };

/** Never throws: an unreadable path is a file with a mistake. */
function readRuleFiles(path: string): RuleFile[] {
  try {
    if (!statSync(path).isDirectory()) {
      return [fileOf(path)];
    }
    const names = readdirSync(path).filter((name) => /^[^.].*\.ya?ml$/i.test(name));
    return names.length > MAX_FILES
      ? [{ file: path, mistake: `expected at most ${MAX_FILES} files, got ${names.length}` }]
      : names.sort().map((name) => fileOf(join(path, name)));
  } catch (thrown) {
    return [
      { file: path, mistake: `expected a file or a folder that can be read (${systemErrorText(thrown)})` },
    ];
  }
}

function fileOf(file: string): RuleFile {
  try {
    return { file, text: readRegularFile(file, MAX_FILE) };
  } catch (thrown) {
    return { file, mistake: `expected a file that can be read (${errorText(thrown)})` };
  }
}
