/** One request: what every filter said of it, who asked for what, and when. */

import { inTime } from '../../../base/deadline.ts';
import { LedgerUnavailableError } from '../../../base/errors.ts';
import type { ChangeRecord, DecisionRecord, FilterRecord } from '../../../decisions/record.ts';
import { formatUnitHours } from '../../../filter/claim.ts';
import { type EntryView, listEntries } from '../../../ledger/reports/entries.ts';
import { isBudgetAccount } from '../../../ledger/reports/reports.ts';
import { ApiError } from '../../api/route.ts';
import { may } from '../../users/caller.ts';
import { askPathOf } from '../budgets/request-pages.tsx';
import { type ConsolePage, leasePath, type PageRequest } from '../page.ts';
import {
  type Column,
  FilterName,
  LeaseName,
  Milliseconds,
  NamedId,
  Outcome,
  Small,
  Table,
  Text,
  Time,
  visible,
} from '../parts/parts.tsx';
import { tryPathOf } from '../try/refused-lease.ts';
import { named, operationText, Warnings } from './decision-table.tsx';
import { decisionsOf, type FoundDecision } from './found-decisions.ts';

/** A request may be decided more than once: checked, and committed. */
const LIMIT = 20;

export const decisionPage: ConsolePage = {
  method: 'GET',
  path: '/decisions/{request_id}',
  action: 'see-decisions',
  answer: async (request) => {
    const { request_id: id = '' } = request.params;
    const { decisions } = await decisionsOf(request, id, LIMIT);
    if (decisions.length === 0) {
      throw new ApiError(
        404,
        'there is no decision with this request id, or it concerns a project that you may not see, or it is not kept any more',
      );
    }
    const isForMember = request.caller.kind === 'member';
    const shown = await Promise.all(
      decisions.map(async (one) => ({
        ...one,
        isForMember,
        askPath: askPathOf(request, one),
        entries: may(request.caller, 'see-ledger') ? await recordedEntries(request, one.record) : undefined,
      })),
    );
    return {
      title: decisions.length === 1 ? 'Decision' : `${decisions.length} decisions of one request`,
      main: (
        <>
          <p>
            Request <code class="id">{<Text>{id}</Text>}</code> · <a href="/decisions">All decisions</a>
          </p>
          {shown.map((one, index) => (
            <OneDecision {...one} number={index + 1} />
          ))}
        </>
      ),
    };
  },
};

interface OneDecisionProps extends FoundDecision {
  readonly number: number;
  /** Members see nothing of how the service works: which process decided, and how long it took. */
  readonly isForMember: boolean;
  /** Where to ask for the budget that lacked; `undefined` = none lacked, or the caller may not. */
  readonly askPath: string | undefined;
  /** `undefined` = unknown, none, or not for this caller. */
  readonly entries: readonly EntryView[] | undefined;
}

function OneDecision({ record, asked, replica, number, entries, isForMember, askPath }: OneDecisionProps) {
  const { outcome, operation, filter, message, filters, warnings, time } = record;
  const { project_id, user_id, lease_id, lease_name, generation, duration_ms } = record;
  const id = `decision-${number}`;
  const [recorded] = entries ?? [];
  return (
    <section class="verdict" aria-labelledby={id}>
      <h2 id={id}>
        <Outcome outcome={outcome} />
        {filter !== null && (
          <>
            {' '}
            by <Text>{filter}</Text>
          </>
        )}
      </h2>
      {message !== null && (
        <p class="message">
          <Text>{message}</Text>
        </p>
      )}
      {(askPath !== undefined || asked !== undefined) && (
        <nav aria-label={`After this decision${number > 1 ? ` (${number})` : ''}`} class="pages">
          {asked !== undefined && <a href={tryPathOf(record, asked)}>Try this lease</a>}
          {askPath !== undefined && <a href={askPath}>Ask for more budget</a>}
        </nav>
      )}
      <Warnings warnings={warnings} />
      <dl class="facts">
        <dt>{outcome === 'bypassed' ? 'Found' : 'Decided'}</dt>
        <dd>
          <time dateTime={time}>{time.replace('T', ' ').replace('Z', '')}</time> UTC
          {!isForMember && outcome !== 'bypassed' && (
            <>
              , in <Milliseconds value={duration_ms} />
            </>
          )}
        </dd>
        <dt>Operation</dt>
        <dd>{operationText(record)}</dd>
        <dt>Project</dt>
        <dd>
          <Owner id={project_id} name={record.project_name} domain={record.project_domain} />
          {project_id !== null && !operation.includes('.') && (
            <>
              {' · '}
              <a href={`/decisions?${new URLSearchParams({ project: project_id })}`}>its decisions</a>
            </>
          )}
        </dd>
        <dt>User</dt>
        <dd>
          <Owner id={user_id} name={record.user_name} domain={record.user_domain} />
        </dd>
        <dt>Lease</dt>
        <dd>
          <LeaseName name={lease_name} />
          {lease_id === null && recorded !== undefined && (
            <>
              {' · '}
              <a href={leasePath(recorded.leaseId, recorded.lease)}>the lease that it created</a>
            </>
          )}
          {lease_id !== null && (
            <small class="id">
              <a href={leasePath(lease_id)}>
                <Text>{lease_id}</Text>
              </a>
            </small>
          )}
        </dd>
        {asked !== undefined && (
          <>
            <dt>Asked for</dt>
            <dd>
              <Time at={asked.start} /> to <Time at={asked.end} /> UTC
            </dd>
          </>
        )}
        {!isForMember && (
          <>
            <dt>Decided by</dt>
            <dd>
              {replica === undefined ? 'this process' : <Text>{replica}</Text>}, generation {generation} of
              its configuration
            </dd>
          </>
        )}
      </dl>
      {filters.length === 0 ? (
        <p>No filter was asked.</p>
      ) : (
        <Table
          label={`What every filter said${number > 1 ? ` (${number})` : ''}`}
          columns={isForMember ? FILTER_COLUMNS : [...FILTER_COLUMNS, TOOK]}
          rows={filters}
        />
      )}
      <Changes record={record} number={number} />
      {entries !== undefined && entries.length > 0 && (
        <RecordedEntries label={`What it took${number > 1 ? ` (${number})` : ''}`} entries={entries} />
      )}
    </section>
  );
}

interface OwnerProps {
  readonly id: string | null;
  readonly name: string | null | undefined;
  readonly domain: string | null | undefined;
}

function Owner({ id, name, domain }: OwnerProps) {
  return id === null ? <span class="none">not known</span> : <NamedId id={id} named={named(name, domain)} />;
}

const FILTER_COLUMNS: readonly Column<FilterRecord>[] = [
  ['Filter', undefined, (one) => <FilterName {...one} />],
  ['Said', undefined, ({ outcome }) => <Outcome outcome={outcome} />],
  ['Message', 'why', ({ message }) => message !== null && <Text>{message}</Text>],
];
const TOOK: Column<FilterRecord> = [
  'Took',
  undefined,
  ({ duration_ms }) => <Milliseconds value={duration_ms} />,
];

const MOST_ENTRIES = 50;

/** `undefined` = the ledger is not used, or does not answer; a decision that refused has taken nothing. */
async function recordedEntries(
  { generation, deadline }: PageRequest,
  { allowed, operation, request_id, project_id, lease_id }: DecisionRecord,
): Promise<readonly EntryView[] | undefined> {
  const { ledger } = generation;
  if (ledger === undefined || !allowed || project_id === null || operation.includes('.')) {
    return undefined;
  }
  try {
    const query = { projectId: project_id, requestId: request_id, leaseId: lease_id ?? undefined };
    const read = ledger.read((opened) =>
      listEntries(opened, { ...query, limit: MOST_ENTRIES, after: undefined }, deadline),
    );
    return (await inTime(read, deadline)).items;
  } catch (thrown) {
    if (thrown instanceof LedgerUnavailableError) {
      return undefined;
    }
    throw thrown;
  }
}

const ENTRY_COLUMNS: readonly Column<EntryView>[] = [
  ['Account', undefined, ({ account }) => <Text>{account}</Text>],
  ['Taken', 'number', (entry) => takenText(entry)],
  [
    'Why',
    undefined,
    ({ operation, reason }) => (
      <>
        {operation}
        <Small text={reason} />
      </>
    ),
  ],
];

function RecordedEntries(props: { readonly label: string; readonly entries: readonly EntryView[] }) {
  return <Table label={props.label} columns={ENTRY_COLUMNS} rows={props.entries} />;
}

/** Less than 0 = it was given back. */
export function takenText(
  { account, delta }: Pick<EntryView, 'account' | 'delta'>,
  unit = 'unit-hours',
): string {
  return isBudgetAccount(account)
    ? `${formatUnitHours(delta, delta < 0n ? 'down' : 'up')} ${unit}`
    : String(delta);
}

interface ChangesProps {
  readonly record: DecisionRecord;
  /** Where several decisions stand on one page: which of them. */
  readonly number: number;
}

/** Nothing if nothing was changed. */
function Changes({ record, number }: ChangesProps) {
  return (
    <>
      {record.filters.map(
        (one) =>
          one.changes !== undefined && one.changes.length > 0 && <OfPolicy one={one} number={number} />,
      )}
    </>
  );
}

function OfPolicy({ one, number }: { readonly one: FilterRecord; readonly number: number }) {
  const { filter, audit, changes = [], changes_left_out: leftOut = 0 } = one;
  const label = `What ${visible(filter)} ${audit ? 'would have changed' : 'changed'}${number > 1 ? ` (${number})` : ''}`;
  return (
    <>
      <Table label={label} columns={CHANGE_COLUMNS} rows={changes} isLong={changes.length > 10} />
      {leftOut > 0 && <p class="hint">And {leftOut} more.</p>}
    </>
  );
}

const CHANGE_COLUMNS: readonly Column<ChangeRecord>[] = [
  [
    'Where',
    undefined,
    ({ path }) => (
      <code>
        <Text>{path}</Text>
      </code>
    ),
  ],
  [
    'Before and after',
    'diff',
    ({ before, after }) => (
      <>
        {before !== null && (
          <del>
            - <Text>{before}</Text>
          </del>
        )}
        {after !== null && (
          <ins>
            + <Text>{after}</Text>
          </ins>
        )}
      </>
    ),
  ],
];
