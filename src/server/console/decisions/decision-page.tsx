/** One request: the verdict of every filter, its user, what was requested, and when. */

import { inTime } from '../../../base/deadline.ts';
import { LedgerUnavailableError } from '../../../base/errors.ts';
import {
  type ChangeRecord,
  type DecisionRecord,
  type FilterRecord,
  operationText,
} from '../../../decisions/record.ts';
import { formatUnitHours } from '../../../filter/claim.ts';
import { type EntryView, listEntries } from '../../../ledger/reports/entries.ts';
import { isBudgetAccount } from '../../../ledger/reports/reports.ts';
import { ApiError } from '../../api/route.ts';
import type { FoundDecision } from '../../leases/lease-history.ts';
import { may } from '../../users/caller.ts';
import { askLinksOf } from '../budgets/request-pages.tsx';
import { type ConsolePage, leasePath, type PageRequest, pathWith, tryPathOf } from '../page.ts';
import {
  type Column,
  column,
  type Fact,
  Facts,
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
import { FILTER_COLUMNS, LeaseId, named, Warnings } from './decision-table.tsx';
import { decisionsOf } from './found-decisions.ts';

export const decisionPage: ConsolePage = {
  method: 'GET',
  path: '/decisions/{request_id}',
  action: 'see-decisions',
  answer: async (request) => {
    const { request_id: id = '' } = request.params;
    const decisions = await decisionsOf(request, id);
    if (decisions.length === 0) {
      throw new ApiError(
        404,
        'there is no decision with this request id, or it concerns a project that you may not see, or it is no longer stored',
      );
    }
    const seesLedger = may(request.caller, 'see-ledger');
    const shown = await Promise.all(
      decisions.map(async (one) => ({
        ...one,
        askLinks: askLinksOf(request, one),
        entries: seesLedger ? await recordedEntries(request, one.record) : [],
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
            <OneDecision {...one} number={index + 1} isForMember={request.caller.kind === 'member'} />
          ))}
        </>
      ),
    };
  },
};

interface OneDecisionProps extends FoundDecision {
  readonly number: number;
  /** Members do not see internals: the process that decided and how long it took. */
  readonly isForMember: boolean;
  readonly askLinks: ReturnType<typeof askLinksOf>;
  /** Empty also if they are unknown, or hidden from this caller. */
  readonly entries: readonly EntryView[];
}

function OneDecision(props: OneDecisionProps) {
  const { record, asked, number, entries, isForMember, askLinks } = props;
  const { outcome, filter, message, filters, warnings } = record;
  const id = `decision-${number}`;
  /** Distinguishes several decisions on one page. */
  const suffix = number > 1 ? ` (${number})` : '';
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
      {(askLinks.length > 0 || asked !== undefined) && (
        <nav aria-label={`After this decision${suffix}`} class="pages">
          {asked !== undefined && <a href={tryPathOf(record, asked)}>Try this lease</a>}
          {askLinks.map(({ path, text }) => (
            <a href={path}>{text}</a>
          ))}
        </nav>
      )}
      <Warnings warnings={warnings} />
      <Facts facts={factsOf(props)} />
      <Table
        label={`Verdicts of the filters${suffix}`}
        columns={isForMember ? FILTER_COLUMNS : [...FILTER_COLUMNS, TOOK]}
        rows={filters}
        empty="No filter was run."
      />
      {filters.map((one) => (
        <Changes {...one} suffix={suffix} />
      ))}
      {entries.length > 0 && (
        <Table label={`Charges and refunds${suffix}`} columns={ENTRY_COLUMNS} rows={entries} />
      )}
    </section>
  );
}

function factsOf({ record, asked, replica, entries, isForMember }: OneDecisionProps): Fact[] {
  const { outcome, operation, time, project_id, user_id, lease_id, lease_name, generation } = record;
  const [recorded] = entries;
  return [
    [
      outcome === 'bypassed' ? 'Found' : 'Decided',
      <>
        <time dateTime={time}>{time.replace('T', ' ').replace('Z', '')}</time> UTC
        {!isForMember && outcome !== 'bypassed' && (
          <>
            , in <Milliseconds value={record.duration_ms} />
          </>
        )}
      </>,
    ],
    ['Operation', operationText(record)],
    [
      'Project',
      <>
        <Owner id={project_id} name={record.project_name} domain={record.project_domain} />
        {project_id !== null && !operation.includes('.') && (
          <>
            {' · '}
            <a href={pathWith('/decisions', { project: project_id })}>its decisions</a>
          </>
        )}
      </>,
    ],
    ['User', <Owner id={user_id} name={record.user_name} domain={record.user_domain} />],
    [
      'Lease',
      <>
        <LeaseName name={lease_name} />
        {lease_id === null && recorded !== undefined && (
          <>
            {' · '}
            <a href={leasePath(recorded.leaseId, recorded.lease)}>the lease that it created</a>
          </>
        )}
        <LeaseId id={lease_id} />
      </>,
    ],
    asked !== undefined && [
      'Requested',
      <>
        <Time at={asked.start} /> to <Time at={asked.end} /> UTC
      </>,
    ],
    !isForMember && [
      'Decided by',
      <>
        {replica === undefined ? 'this process' : <Text>{replica}</Text>}, generation {generation} of its
        configuration
      </>,
    ],
  ];
}

interface OwnerProps {
  readonly id: string | null;
  readonly name: string | null | undefined;
  readonly domain: string | null | undefined;
}

function Owner({ id, name, domain }: OwnerProps) {
  return id === null ? <span class="none">not known</span> : <NamedId id={id} named={named(name, domain)} />;
}

const TOOK: Column<FilterRecord> = column('Duration', undefined, ({ duration_ms }) => (
  <Milliseconds value={duration_ms} />
));

const MOST_ENTRIES = 50;

/** Empty if the ledger is not used or does not answer, or the lease was refused. */
async function recordedEntries(
  { generation, deadline }: PageRequest,
  { allowed, operation, request_id, project_id, lease_id }: DecisionRecord,
): Promise<readonly EntryView[]> {
  const { ledger } = generation;
  if (ledger === undefined || !allowed || project_id === null || operation.includes('.')) {
    return [];
  }
  try {
    const query = { projectId: project_id, requestId: request_id, leaseId: lease_id ?? undefined };
    const read = ledger.read((opened) =>
      listEntries(opened, { ...query, limit: MOST_ENTRIES, after: undefined }, deadline),
    );
    return (await inTime(read, deadline)).items;
  } catch (thrown) {
    if (thrown instanceof LedgerUnavailableError) {
      return [];
    }
    throw thrown;
  }
}

const ENTRY_COLUMNS: readonly Column<EntryView>[] = [
  column('Account', undefined, ({ account }) => <Text>{account}</Text>),
  column('Taken', 'number', (entry) => takenText(entry)),
  column('Reason', undefined, ({ operation, reason }) => (
    <>
      {operation}
      <Small text={reason} />
    </>
  )),
];

/** Negative = a refund. */
export function takenText(
  { account, delta }: Pick<EntryView, 'account' | 'delta'>,
  unit = 'unit-hours',
): string {
  return isBudgetAccount(account)
    ? `${formatUnitHours(delta, delta < 0n ? 'down' : 'up')} ${unit}`
    : String(delta);
}

/** The changes of a policy; renders nothing if there are none. */
function Changes({ suffix, ...one }: FilterRecord & { readonly suffix: string }) {
  const { filter, audit, changes = [], changes_left_out: leftOut = 0 } = one;
  const label = `Changes ${audit ? 'proposed' : 'made'} by ${visible(filter)}${suffix}`;
  return changes.length === 0 ? null : (
    <>
      <Table label={label} columns={CHANGE_COLUMNS} rows={changes} isLong={changes.length > 10} />
      {leftOut > 0 && <p class="hint">And {leftOut} more.</p>}
    </>
  );
}

const CHANGE_COLUMNS: readonly Column<ChangeRecord>[] = [
  column('Attribute', undefined, ({ path }) => (
    <code>
      <Text>{path}</Text>
    </code>
  )),
  column('Before and after', 'diff', ({ before, after }) => (
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
  )),
];
