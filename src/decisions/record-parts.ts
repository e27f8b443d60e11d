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

let lastMillisecond = Number.NaN;
let lastTime = '';
let lastSecond = Number.NaN;
/** `2026-11-23T09:47:05.` */
let upToMilliseconds = '';

/** Under load, many decisions are made in the same second, and formatting a whole date is half the cost of a record. */
export function now(): string {
  const millisecond = Date.now();
  if (millisecond !== lastMillisecond) {
    const second = Math.floor(millisecond / 1000);
    if (second !== lastSecond) {
      upToMilliseconds = new Date(millisecond).toISOString().slice(0, -4);
      lastSecond = second;
    }
    lastTime = `${upToMilliseconds}${String(millisecond - second * 1000).padStart(3, '0')}Z`;
    lastMillisecond = millisecond;
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
