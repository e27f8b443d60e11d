/** How much was refused lately, by filter, and which replicas decide. */

import { LedgerUnavailableError } from '../../../base/errors.ts';
import type { DecisionRecord } from '../../../decisions/record.ts';
import { decisionSource } from '../decisions/decision-source.ts';
import type { PageRequest } from '../page.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Refusals that are counted at most. */
const MOST = 500;
/** Decisions that are looked at for replicas. */
const LOOKED_AT = 100;

export interface FilterRefusals {
  /** `null` = none of the filters, such as a request that was not valid. */
  readonly filter: string | null;
  readonly hour: number;
  readonly day: number;
  /** When it last refused, ISO 8601. */
  readonly last: string;
}

export interface Refusals {
  /** The one that refused most comes first. */
  readonly filters: readonly FilterRefusals[];
  /** The newest first. */
  readonly latest: readonly DecisionRecord[];
  /** Whether there were more than are counted. */
  readonly isPartial: boolean;
  /** Whether those of other replicas are counted. */
  readonly isShared: boolean;
  /** Replica → when it last decided, ISO 8601; the latest first. */
  readonly replicas: ReadonlyMap<string, string>;
}

const SHOWN = 8;

/** `undefined` = the store does not answer. */
export async function refusalsNow(
  { generation, recorder, deadline }: PageRequest,
  now = Date.now(),
): Promise<Refusals | undefined> {
  const source = decisionSource(generation);
  const since = now - DAY;
  if (source === undefined) {
    const refused = recorder.recent.list().filter(({ allowed }) => !allowed);
    return { ...counted(refused, now), isPartial: false, isShared: false, replicas: new Map() };
  }
  try {
    const first = { since, after: undefined };
    const refused = await source.search(
      { ...first, outcomes: ['rejected', 'failed'], limit: MOST },
      deadline,
    );
    const decided = await source.search({ ...first, limit: LOOKED_AT }, deadline);
    const replicas = new Map<string, string>();
    for (const { replica, record } of decided.items) {
      replicas.set(replica, replicas.get(replica) ?? record.time);
    }
    return {
      ...counted(
        refused.items.map(({ record }) => record),
        now,
      ),
      ...{ isPartial: refused.next !== undefined, isShared: true, replicas },
    };
  } catch (thrown) {
    if (thrown instanceof LedgerUnavailableError) {
      return undefined;
    }
    throw thrown;
  }
}

function counted(refused: readonly DecisionRecord[], now: number): Pick<Refusals, 'filters' | 'latest'> {
  const filters = new Map<string | null, FilterRefusals>();
  for (const { filter, time } of refused) {
    const age = now - Date.parse(time);
    if (age < DAY) {
      const { hour = 0, day = 0, last = time } = filters.get(filter) ?? {};
      filters.set(filter, { filter, hour: hour + (age < HOUR ? 1 : 0), day: day + 1, last });
    }
  }
  return {
    filters: [...filters.values()].sort((a, b) => b.hour - a.hour || b.day - a.day),
    latest: refused.slice(0, SHOWN),
  };
}
