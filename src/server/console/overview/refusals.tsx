import { LedgerUnavailableError } from '../../../base/errors.ts';
import type { DecisionRecord } from '../../../decisions/record.ts';
import { DecisionTable } from '../decisions/decision-table.tsx';
import { AWAY, type FoundDecisions } from '../decisions/found-decisions.ts';
import type { PageRequest } from '../page.ts';
import { type Column, Message, Table, Text } from '../parts/parts.tsx';

export function RefusalsSection({ filters, latest, isPartial, of }: Refusals) {
  return (
    <section aria-labelledby="refused">
      <h2 id="refused">Refused now</h2>
      {of === 'away' && <Message kind="error">{AWAY}</Message>}
      <p class="hint">
        {of === 'all' ? 'In the last day, by all replicas.' : 'Of the last 50 decisions of this process.'}
        {isPartial && ' There were more; the newest 500 are counted.'}
      </p>
      {filters.length === 0 ? (
        <p>Nothing.</p>
      ) : (
        <>
          <Table
            label="Refused, by filter"
            columns={COLUMNS}
            rows={filters}
            rowProps={({ filter }) => ({ 'data-key': filter ?? '' })}
          />
          <h3>The latest</h3>
          <DecisionTable label="Recent refusals" decisions={latest} />
        </>
      )}
      <p>
        <a href="/decisions?outcome=refused">All refusals</a>
      </p>
    </section>
  );
}

const COLUMNS: readonly Column<FilterRefusals>[] = [
  ['Filter', undefined, ({ filter }) => <FilterLink filter={filter} />],
  ['Last hour', 'number', ({ hour }) => hour],
  ['Last day', 'number', ({ day }) => day],
  ['Last (UTC)', 'time', ({ last }) => <time dateTime={last}>{shownTime(last)}</time>],
];

function FilterLink({ filter }: Pick<FilterRefusals, 'filter'>) {
  return filter === null ? (
    <span class="none">none of them</span>
  ) : (
    <a href={`/decisions?${new URLSearchParams({ filter })}`}>
      <Text>{filter}</Text>
    </a>
  );
}

function shownTime(time: string): string {
  return time.slice(0, 19).replace('T', ' ');
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Refusals that are counted at most. */
const MOST = 500;

interface FilterRefusals {
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
  /** As of `FoundDecisions`. */
  readonly of: FoundDecisions['of'];
}

const SHOWN = 8;

export async function refusalsNow(
  { generation, recorder, deadline }: PageRequest,
  now = Date.now(),
): Promise<Refusals> {
  const source = generation.decisions?.source;
  const since = now - DAY;
  const own = (of: 'process' | 'away'): Refusals => {
    const refused = recorder.recent.list().filter(({ allowed }) => !allowed);
    return { ...counted(refused, now), of, isPartial: false };
  };
  if (source === undefined) {
    return own('process');
  }
  try {
    const wanted = { outcomes: ['rejected', 'failed'] as const, since, limit: MOST, after: undefined };
    const refused = await source.search(wanted, deadline);
    const records = refused.items.map(({ record }) => record);
    return { ...counted(records, now), of: 'all', isPartial: refused.next !== undefined };
  } catch (thrown) {
    if (thrown instanceof LedgerUnavailableError) {
      return own('away');
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
