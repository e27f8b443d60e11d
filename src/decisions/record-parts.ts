/** What the records of all protocols are made of, and how long their texts may be. */
import type { RuleOutcomes } from '../filter/verdict.ts';
import type { FilterRecord } from './record.ts';

/** The parts of a record other than the decision. */
export interface DecisionFacts<Request> {
  readonly requestId: string;
  readonly generation: number;
  readonly milliseconds: number;
  readonly request: Request;
}

export const MAX_NAME = 255;
export const MAX_MESSAGE = 2000;
/** Of one decision. */
const MAX_RULES = 100;

/** Names come unchecked from users and plug-ins; only texts are recorded. */
export function name(value: unknown): string | null {
  return typeof value === 'string' ? cut(value, MAX_NAME) : null;
}

/** Copies the part: a slice would keep the whole text in memory. */
export function cut(text: string, length: number): string {
  return text.length > length ? `${structuredClone(text.slice(0, length))}…` : text;
}

let lastMillisecond = 0;
let lastTime = '';

/** Under load, many decisions are made in the same millisecond, and formatting it is half the cost of a record. */
export function now(): string {
  const millisecond = Date.now();
  if (millisecond !== lastMillisecond) {
    lastMillisecond = millisecond;
    lastTime = new Date(millisecond).toISOString();
  }
  return lastTime;
}

export function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}

export function ruleRecords(rules: RuleOutcomes | undefined): Pick<FilterRecord, 'rules'> {
  return rules === undefined
    ? {}
    : {
        rules: rules
          .slice(0, MAX_RULES)
          .map(({ rule, outcome, audit }) => ({ rule: cut(rule, MAX_NAME), outcome, audit })),
      };
}
