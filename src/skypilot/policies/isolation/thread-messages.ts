/** Messages between the service and the thread of a policy: plain data, validated on receipt. */
import { z } from 'zod';
import { areRules, type RuleOutcomes } from '../../../filter/verdict.ts';
import type { HttpCallErrorCode } from '../../../http/call-error.ts';
import type { Question } from '../call-policy.ts';

/** The environment of a policy in a test. */
export interface Trial {
  /** Milliseconds since 1970; `null` = the machine's time. */
  readonly now: number | null;
  /** Whether the policy may open connections. */
  readonly network: boolean;
}

export interface ThreadData {
  /** As written in `admin_policies`. */
  readonly specifier: string;
  /** The options of the policy from the configuration; the thread validates them again. */
  readonly values: Readonly<Record<string, unknown>>;
  /** For `skypilot test`. */
  readonly trial?: Trial | undefined;
}

export type ToThread =
  | {
      readonly kind: 'ask';
      readonly id: number;
      readonly question: Question;
      /** Time left until the deadline. */
      readonly milliseconds: number;
    }
  | { readonly kind: 'close' };

const mapping = z.custom<Record<string, unknown>>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
);

const rules = z.custom<RuleOutcomes>(areRules).optional();
const rule = z.object({
  name: z.string(),
  audit: z.boolean(),
  place: z.object({ file: z.string(), line: z.number() }),
});

export const fromThreadSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ready') }),
  z.object({ kind: z.literal('not-ready'), cause: z.string() }),
  /** The policy is working on the question. */
  z.object({ kind: z.literal('taken'), id: z.int() }),
  /** Without parts that equal those of the question. */
  z.object({
    kind: z.literal('answered'),
    id: z.int(),
    task: mapping.optional(),
    skypilotConfig: mapping.optional(),
    rules,
  }),
  z.object({ kind: z.literal('rejected'), id: z.int(), rejected: z.string(), rules }),
  z.object({
    kind: z.literal('failed'),
    id: z.int(),
    cause: z.string(),
    stack: z.string().optional(),
    rules,
  }),
  /** Only for `skypilot test`. */
  z.object({ kind: z.literal('rules-read'), read: z.array(rule) }),
  z.object({
    kind: z.literal('rule-judged'),
    rule,
    said: z.enum(['allowed', 'refused', 'skipped', 'failed']),
  }),
  z.object({
    kind: z.literal('logged'),
    level: z.enum(['debug', 'info', 'warn', 'error']),
    fields: mapping,
    message: z.string().optional(),
  }),
  z.object({
    kind: z.literal('called'),
    origin: z.string(),
    outcome: z.custom<number | HttpCallErrorCode>((value) => ['number', 'string'].includes(typeof value)),
    seconds: z.number(),
  }),
  z.object({
    kind: z.literal('breaker'),
    origin: z.string(),
    state: z.enum(['closed', 'half-open', 'open']),
  }),
  z.object({ kind: z.literal('closed'), cause: z.string().optional() }),
]);

export type FromThread = z.infer<typeof fromThreadSchema>;
