import { LedgerUnavailableError } from '../../../base/errors.ts';
import type { DecisionRecord } from '../../../decisions/record.ts';
import { DecisionTable } from '../decisions/decision-table.tsx';
import type { PageRequest } from '../page.ts';
import { type Column, Message, Table, Text } from '../parts/parts.tsx';

/** `undefined` = the store does not answer. */
export function RefusalsSection({ refusals }: { readonly refusals: Refusals | undefined }) {
  return (
    <section aria-labelledby="refused">
      <h2 id="refused">Refused now</h2>
      {refusals === undefined ? (
        <Message kind="error">The stored decisions cannot be read at the moment.</Message>
      ) : (
        <Content {...refusals} />
      )}
    </section>
  );
}

function Content({ filters, latest, isPartial, isShared, replicas }: Refusals) {
  return (
    <>
      <p class="hint">
        {isShared ? 'In the last day, by all replicas.' : 'Of the last 50 decisions of this process.'}
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
      {replicas.size > 0 && (
        <>
          <h3>Replicas</h3>
          <ul>
            {[...replicas].map(([replica, time]) => (
              <li data-key={replica}>
                <Text>{replica}</Text> <small>last at {shownTime(time)} UTC</small>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

const COLUMNS: readonly Column<FilterRefusals>[] = [
  ['Filter', undefined, ({ filter }) => <FilterLink filter={filter} />],
  ['Last hour', 'number', ({ hour }) => hour],
  ['Last day', 'number', ({ day }) => day],
  ['Last (UTC)', 'time', ({ last }) => shownTime(last)],
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
/** Decisions that are looked at for replicas. */
const LOOKED_AT = 100;

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
  const source = generation.decisions?.source;
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
