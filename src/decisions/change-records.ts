/** The changes of all policies of one decision, bounded together: a line of the log must stay short. */
import { z } from 'zod';
import type { Changes } from '../skypilot/policies/changes.ts';

/** In all policies of a decision. */
const MOST = 50;

/** A value that a policy added, removed or replaced: cut, and without secrets. */
export interface ChangeRecord {
  /** Begins with `task` or `skypilot_config`. */
  readonly path: string;
  /** `null` = there was none. */
  readonly before: string | null;
  /** `null` = there is none. */
  readonly after: string | null;
}

/** Only for policies of SkyPilot that changed something, or would have. */
export interface RecordedChanges {
  readonly changes?: readonly ChangeRecord[] | undefined;
  /** How many more changes there were; missing = none. */
  readonly changes_left_out?: number | undefined;
}

export const changeRecordSchema = z.object({
  path: z.string(),
  before: z.string().nullable(),
  after: z.string().nullable(),
}) satisfies z.ZodType<ChangeRecord>;

/** In the order of `all`. Who changed little is shown whole; the others share the rest. */
export function changeRecords(all: readonly (Changes | undefined)[]): RecordedChanges[] {
  const changing = all.filter((one) => one !== undefined);
  const shares = new Map<Changes, number>();
  let left = MOST;
  for (const [index, one] of [...changing].sort((a, b) => a.list.length - b.list.length).entries()) {
    const share = Math.min(one.list.length, Math.floor(left / (changing.length - index)));
    shares.set(one, share);
    left -= share;
  }
  return all.map((one) => {
    if (one === undefined) {
      return {};
    }
    const changes = one.list.slice(0, shares.get(one));
    const leftOut = one.leftOut + one.list.length - changes.length;
    return { changes, ...(leftOut > 0 && { changes_left_out: leftOut }) };
  });
}
