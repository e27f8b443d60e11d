/** Judges a request by rules: every rule is evaluated, so that the result names all violations. */

import { errorText } from '../base/errors.ts';
import { cut, onOneLine } from '../base/visible-text.ts';
import { BrokenRulesError, type RuleOutcome, type RuleOutcomes } from '../filter/verdict.ts';
import { EvaluationError, Failure, InvalidPartError, type Meter } from './cel/frame.ts';
import { type Activation, Frame, type Linked } from './expression.ts';
import type { Exemption, Rule } from './rule.ts';

/** Whether an exemption applies to the request. */
export type IsExempt = (exemption: Exemption) => boolean;

export interface Violation {
  readonly rule: Rule;
  /** Short and printable. If the message of the rule fails, a sentence with the rule's name. */
  readonly message: string;
  /** Why the message of the rule failed, for the log. */
  readonly unsaid?: RuleFailure;
  /** The rule could not be evaluated, because of an invalid part of the request, which the message names. */
  readonly isInvalidPart?: true;
}

/** A rule that could not be evaluated: the request is refused, and the cause is logged. */
export interface RuleFailure {
  readonly rule: Rule;
  readonly part: 'match' | 'allow' | 'message';
  readonly cause: unknown;
}

/** In the order of the rules, including those in audit mode: their `rule.audit` is true. */
export interface Judgement {
  /** A failed message changes nothing: the rule refuses. */
  readonly violations: readonly Violation[];
  readonly failures: readonly RuleFailure[];
}

/**
 * The parts of a rule that most requests need, together in memory: reading all the parts of fifty rules takes
 * longer than evaluating them. A class, because V8 gives each object that is created by spreading its own
 * shape: with a thousand rules, it would look up every property anew.
 */
class Entry implements Linked {
  readonly run: Linked['run'];
  readonly steps: number;
  readonly shared: Linked['shared'];
  readonly rule: Rule;
  /** It has an end, a condition or exemptions. */
  readonly isLimited: boolean;

  constructor(rule: Rule) {
    const { until, exempt, match, allow } = rule;
    const { run, steps, shared } = allow.link();
    this.run = run;
    this.steps = steps;
    this.shared = shared;
    this.rule = rule;
    this.isLimited = until !== undefined || match !== undefined || !exempt.isEmpty;
  }
}

export class RuleJudge {
  readonly rules: readonly Rule[];
  readonly #entries: readonly Entry[];

  constructor(rules: readonly Rule[]) {
    this.rules = rules;
    this.#entries = rules.map((rule) => new Entry(rule));
  }

  /** `judged`: gets results of rules, for tests. `meter`: counts the steps of all rules for one request. */
  judge(
    activation: Activation,
    isExempt: IsExempt,
    now: number,
    judged?: (rule: Rule, said: 'allowed' | 'refused' | 'skipped' | 'failed') => void,
    meter?: Meter,
  ): Judgement {
    const violations: Violation[] = [];
    const failures: RuleFailure[] = [];
    const frame = new Frame(activation, meter);
    for (const entry of this.#entries) {
      const concerns = entry.isLimited ? judges(entry.rule, isExempt, now, frame) : true;
      const allows = concerns === true ? evaluated(entry, frame) : concerns;
      if (allows === true) {
        judged?.(entry.rule, 'allowed');
        continue;
      }
      const { rule } = entry;
      if (concerns === false) {
        judged?.(rule, 'skipped');
        continue;
      }
      if (allows === false) {
        violations.push(violation(rule, frame));
        judged?.(rule, 'refused');
        continue;
      }
      const part = concerns === true ? 'allow' : 'match';
      const cause = causeOf(allows, 'true or false');
      const invalid = invalidPartOf(cause);
      if (invalid !== undefined) {
        violations.push({ rule, message: invalid, isInvalidPart: true });
        judged?.(rule, 'refused');
        continue;
      }
      failures.push({ rule, part, cause });
      judged?.(rule, 'failed');
    }
    return { violations, failures };
  }
}

/** Whether a rule judges a request; any value except true and false is the reason why this is unknown. */
function judges({ until, exempt, match }: Rule, isExempt: IsExempt, now: number, frame: Frame): unknown {
  return (until !== undefined && now >= until) || (!exempt.isEmpty && isExempt(exempt))
    ? false
    : match === undefined || evaluated(match.link(), frame);
}

class Thrown {
  readonly cause: unknown;

  constructor(cause: unknown) {
    this.cause = cause;
  }
}

/** A value, a `Failure`, or a `Thrown`: a `try` around a whole rule costs more than most rules. */
function evaluated({ run, steps, shared }: Linked, frame: Frame): unknown {
  try {
    frame.shareBy(shared);
    frame.meter.spend(steps);
    return run(frame);
  } catch (cause) {
    return new Thrown(cause);
  }
}

function violation(rule: Rule, frame: Frame): Violation {
  if (typeof rule.message === 'string') {
    return { rule, message: rule.message };
  }
  const said = evaluated(rule.message.link(), frame);
  const message = typeof said === 'string' ? shownMessage(said) : '';
  if (message !== '') {
    return { rule, message };
  }
  const cause = causeOf(said, 'a text that is not empty');
  const invalid = invalidPartOf(cause);
  return invalid === undefined
    ? {
        rule,
        message: `The rule ${rule.name} refuses this request. Its message is broken; please tell the operator.`,
        unsaid: { rule, part: 'message', cause },
      }
    : { rule, message: invalid };
}

/** What to tell the user, if the request is the cause. */
function invalidPartOf(cause: unknown): string | undefined {
  const thrown = cause instanceof Error && cause.cause !== undefined ? cause.cause : cause;
  return thrown instanceof InvalidPartError ? thrown.message : undefined;
}

function causeOf(value: unknown, expected: string): unknown {
  return value instanceof Thrown
    ? value.cause
    : value instanceof Failure
      ? value.error()
      : new Error(`expected ${expected}`);
}

/** In characters, like other reasons. */
const MAX_MESSAGE = 2000;

/** The message of an expression, which may quote the request. */
function shownMessage(text: string): string {
  return cut(onOneLine(cut(text, MAX_MESSAGE)), MAX_MESSAGE).trim();
}

/** Of all messages together, in characters. */
const MAX_REASON = 10_000;

/** All rules that rejected or failed; rejections first. */
export function ruleOutcomes({ violations, failures }: Judgement): RuleOutcomes {
  // Loops here and below: with `flatMap` and spreads, a refusal took longer than its rules.
  const said: RuleOutcome[] = [];
  for (const { rule, message } of violations) {
    said.push({ rule: rule.name, outcome: 'rejected', audit: rule.audit, message });
  }
  for (const { rule } of failures) {
    said.push({ rule: rule.name, outcome: 'failed', audit: rule.audit, message: null });
  }
  return said;
}

/** As `ruleOutcomes`. @throws BrokenRulesError if a rule that is not in audit mode cannot be evaluated: its outcome is unknown */
export function soundOutcomes(judgement: Judgement): RuleOutcomes {
  const said = ruleOutcomes(judgement);
  const broken = judgement.failures.filter(({ rule }) => !rule.audit);
  if (broken.length > 0) {
    throw new BrokenRulesError(broken.map(ruleFailureText).join('; '), said);
  }
  return said;
}

/** For the log: rules that failed, and messages that failed. */
export function brokenIn({ violations, failures }: Judgement): readonly RuleFailure[] {
  const broken = [...failures];
  for (const { unsaid } of violations) {
    if (unsaid !== undefined) {
      broken.push(unsaid);
    }
  }
  return broken;
}

/** The reason for a refusal: the messages of enforced rules in order; `undefined` = none refuses. */
export function reasonOf(violations: readonly Violation[]): string | undefined {
  let reason: string | undefined;
  for (const { rule, message, isInvalidPart } of violations) {
    const isRepeated = isInvalidPart === true && reason?.includes(message) === true;
    if (!rule.audit && !isRepeated) {
      reason = reason === undefined ? message : `${reason} ${message}`;
    }
  }
  return reason === undefined ? undefined : cut(reason, MAX_REASON);
}

const MAX_PART = 60;

/**
 * The failed rule, its position and the cause, for the log. Without values of the request: expressions report
 * only what is missing.
 */
export function ruleFailureText({ rule, part, cause }: RuleFailure): string {
  const { file, line } = rule.place;
  const expression = rule[part];
  const at =
    cause instanceof EvaluationError && typeof expression === 'object'
      ? `: ${JSON.stringify(expression.text.slice(cause.offset, cause.offset + MAX_PART))}`
      : '';
  const why = errorText(cause);
  return `${file}:${line}: rule ${rule.name}: ${part} failed: ${why}${at}`;
}
