import { DecisionTable } from '../decisions/decision-table.tsx';
import { AWAY, findDecisions } from '../decisions/found-decisions.ts';
import { type PageRequest, pathWith } from '../page.ts';
import { type Column, column, Message, Section, Table, Text } from '../parts/parts.tsx';

export function RefusalsSection(refusals: Awaited<ReturnType<typeof refusalsNow>>) {
  const { filters, latest, isPartial, of } = refusals;
  return (
    <Section id="refused" title="Refused now" isLive>
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
    </Section>
  );
}

const COLUMNS: readonly Column<FilterRefusals>[] = [
  column('Filter', undefined, ({ filter }) =>
    filter === null ? (
      <span class="none">none of them</span>
    ) : (
      <a href={pathWith('/decisions', { filter })}>
        <Text>{filter}</Text>
      </a>
    ),
  ),
  column('Last hour', 'number', ({ hour }) => hour),
  column('Last day', 'number', ({ day }) => day),
  column('Last (UTC)', 'time', ({ last }) => (
    <time dateTime={last}>{last.slice(0, 19).replace('T', ' ')}</time>
  )),
];

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const MOST = 500;
const SHOWN = 8;

interface FilterRefusals {
  /** `null` = not refused by a filter, such as an invalid request. */
  readonly filter: string | null;
  readonly hour: number;
  readonly day: number;
  /** The time of its last refusal, ISO 8601. */
  readonly last: string;
}

/** By filter, the most refusals first; `latest`: newest first; `isPartial`: there were more than `MOST`. */
export async function refusalsNow(request: PageRequest) {
  const now = Date.now();
  const { items, next, of } = await findDecisions(request, {
    outcomes: ['rejected', 'failed'],
    since: now - DAY,
    limit: MOST,
  });
  const refused = items.map(({ record }) => record);
  const filters = new Map<string | null, FilterRefusals>();
  for (const { filter, time } of refused) {
    const { hour = 0, day = 0, last = time } = filters.get(filter) ?? {};
    const isOfHour = now - Date.parse(time) < HOUR;
    filters.set(filter, { filter, hour: hour + (isOfHour ? 1 : 0), day: day + 1, last });
  }
  return {
    filters: [...filters.values()].sort((a, b) => b.hour - a.hour || b.day - a.day),
    latest: refused.slice(0, SHOWN),
    isPartial: next !== undefined,
    of,
  };
}
