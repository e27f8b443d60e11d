/** A line of the decision log, as far as needed to judge its request again. */
import { z } from 'zod';
import { parsedRecord } from '../../decisions/record.ts';

const text = z.string().nullable();
const name = text.optional();
const account = z.object({ name: z.string(), domain: z.string() });

/**
 * With the member names of the log; words of later versions are kept. The request is validated by the enforcement.
 * Not loose: zod compiles only objects of known members, and others would take longer than all rules.
 */
const decision = z.object({
  /** `2026-11-21T09:14:03.512Z`, with an offset, or microseconds. Dates from other sources may have comments of any length. */
  time: z.string().max(32),
  request_id: z.string(),
  operation: z.string(),
  side: z.string().optional(),
  project_id: text,
  project_name: name,
  project_domain: name,
  user_id: text,
  user_name: name,
  user_domain: name,
  lease_name: text,
  allowed: z.boolean(),
  failed: z.boolean(),
  outcome: z.string(),
  filter: text,
  message: text,
  filters: z.array(z.object({ filter: z.string(), outcome: z.string(), audit: z.boolean(), message: text })),
  /** `undefined` = not in the log, for the reason in `request_left_out`, if any. */
  request: z
    .object({
      context: z.unknown().optional(),
      lease: z.unknown().optional(),
      current_lease: z.unknown().optional(),
      names: z
        .object({
          project: account.extend({ tags: z.array(z.string()) }).optional(),
          user: account.optional(),
        })
        .optional(),
    })
    .optional(),
  request_left_out: z.string().optional(),
});

export interface PastDecision extends z.infer<typeof decision> {
  /** Its time, in milliseconds since 1970. */
  readonly now: number;
}

/** `undefined` = not a decision. */
export function pastDecision(line: string): PastDecision | undefined {
  const read = parsedRecord(line, decision);
  const now = Date.parse(read?.time ?? '');
  return read === undefined || Number.isNaN(now) ? undefined : Object.assign(read, { now });
}
