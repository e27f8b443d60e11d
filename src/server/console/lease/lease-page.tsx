/** A lease: its charges, their reasons, and its history. */
import { operationText } from '../../../decisions/record.ts';
import { budgetIdOf, formatUnitHours } from '../../../filter/claim.ts';
import { textMistake } from '../../../ledger/identity.ts';
import type { Share } from '../../../ledger/reports/charges.ts';
import type { LeaseRowView } from '../../../ledger/reports/leases.ts';
import type { PageOf } from '../../../ledger/reports/pages.ts';
import { isBudgetAccount, type ListedRow } from '../../../ledger/reports/reports.ts';
import { ApiError } from '../../api/route.ts';
import { learnNames } from '../../api/shown.ts';
import { ledgerFor } from '../../budgets/named-accounts.ts';
import { foundLease, leaseHistory, type Step } from '../../leases/lease-history.ts';
import { may, visibleProjects } from '../../users/caller.ts';
import { takenText } from '../decisions/decision-page.tsx';
import { Decided } from '../decisions/decision-table.tsx';
import { findDecisions } from '../decisions/found-decisions.ts';
import {
  type ConsolePage,
  changePath,
  decisionPath,
  leasePath,
  type PageAnswer,
  type PageRequest,
  pathWith,
} from '../page.ts';
import { List, listPage } from '../parts/pager.tsx';
import {
  Account,
  type Column,
  column,
  type Fact,
  Facts,
  IdLink,
  LeaseName,
  LivePart,
  Message,
  Outcome,
  ProjectLink,
  Resources,
  Section,
  Small,
  Span,
  Table,
  Text,
  Time,
} from '../parts/parts.tsx';

const STEPS = 50;

/** The same message if there is no such lease or the caller may not see it. */
const UNKNOWN =
  'there is no lease with this id, or it is in a project that you may not see, or it is no longer stored';

export const leasePage: ConsolePage = {
  method: 'GET',
  path: '/leases/{lease_id}',
  action: 'see-project',
  answer: async (request) => {
    const { lease_id: key = '' } = request.params;
    if (textMistake(key) !== undefined) {
      throw new ApiError(404, UNKNOWN);
    }
    return answered(request, key);
  },
};

async function answered(request: PageRequest, key: string): Promise<PageAnswer> {
  const { caller, query, generation, deadline } = request;
  const ledger = generation.ledger === undefined ? undefined : await ledgerFor(request);
  const { one: found, several } = await foundLease(ledger, key, visibleProjects(caller), deadline);
  if (several !== undefined) {
    await learnNames(request, several);
    return {
      title: `${several.length} leases with the same id`,
      main: <LeasesWithSameId leases={several} />,
    };
  }
  const lease = found?.lease;
  const leaseId = lease === undefined ? key : lease.leaseId;
  const projects = lease && [lease.projectId];
  const history = await leaseHistory(
    {
      limit: STEPS,
      after: listPage(query).after,
      caller,
      found,
      ledger,
      key,
      search: (wanted, page) => findDecisions(request, { ...wanted, ...page, projects }),
    },
    deadline,
  );
  const latest = history.items.find(({ decision }) => decision !== undefined)?.decision?.record;
  if (lease === undefined && latest === undefined && history.next === undefined) {
    throw new ApiError(404, UNKNOWN);
  }
  const projectId = lease?.projectId ?? latest?.project_id ?? null;
  const userId = lease?.userId ?? latest?.user_id ?? null;
  await learnNames(request, [{ projectId, userId }]);
  const name = lease?.name ?? latest?.lease_name;
  return {
    title: name ? `Lease ${name}` : 'A lease without a name',
    main: (
      <LeaseView
        lease={lease}
        leaseId={leaseId}
        projectId={projectId}
        userId={userId}
        history={history}
        query={query}
        path={leasePath(leaseId, lease?.row)}
        unit={request.unit}
        seesLedger={may(caller, 'see-ledger')}
      />
    ),
  };
}

interface LeaseViewProps {
  /** `undefined` = not in the ledger. */
  readonly lease: LeaseRowView | undefined;
  readonly leaseId: string | null;
  /** From the lease, or from its latest decision. */
  readonly projectId: string | null;
  readonly userId: string | null;
  readonly history: PageOf<Step>;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly unit: string;
  /** Whether the caller sees the author and the reason of entries. */
  readonly seesLedger: boolean;
}

export function LeaseView(props: LeaseViewProps) {
  const { lease, leaseId, projectId, userId, history, path, query, unit, seesLedger } = props;
  return (
    <>
      <nav aria-label="This lease" class="pages">
        {lease !== undefined && lease.state !== 'ended' && leaseId !== null && (
          <a href={changePath(leaseId)}>Change</a>
        )}
        {leaseId !== null && <a href={pathWith('/decisions', { lease: leaseId })}>Search its decisions</a>}
      </nav>
      <LivePart name="lease">
        <Section id="facts" title="Details">
          {lease === undefined && (
            <Message kind="notice">
              The ledger does not have this lease: only decisions about it are shown.
            </Message>
          )}
          <Facts
            facts={[
              [
                'Id',
                leaseId === null ? (
                  'not known yet'
                ) : (
                  <span class="id">
                    <Text>{leaseId}</Text>
                  </span>
                ),
              ],
              projectId !== null && ['Project', <ProjectLink id={projectId} />],
              userId !== null && ['User', <Account kind="user" id={userId} />],
              ...(lease === undefined ? [] : ledgerFacts(lease)),
            ]}
          />
        </Section>
        {lease !== undefined && <Charges lease={lease} unit={unit} />}
        <Section id="history" title="History">
          <List
            label="History, newest first"
            columns={historyColumns(unit, seesLedger)}
            page={history}
            path={path}
            query={query}
            empty={
              history.next === undefined
                ? 'No history.'
                : 'Nothing on this page; the history continues on the next one.'
            }
            isLong
          />
        </Section>
      </LivePart>
    </>
  );
}

function ledgerFacts(lease: LeaseRowView): Fact[] {
  const { region, start, end, state, resources, recordedAt, changedAt } = lease;
  return [
    region !== '' && ['Region', <Text>{region}</Text>],
    [
      'State',
      <>
        {state}: <Time at={start} /> to <Time at={end} /> UTC
      </>,
    ],
    ['Resources', resources.size === 0 ? 'not known' : <Resources resources={resources} />],
    [
      'Recorded',
      <>
        <Time at={recordedAt} /> UTC
        {changedAt !== recordedAt && (
          <>
            , last request <Time at={changedAt} /> UTC
          </>
        )}
      </>,
    ],
  ];
}

function Charges({ lease, unit }: { readonly lease: LeaseRowView; readonly unit: string }) {
  const { isConfirmed, charges, cost } = lease;
  const columns: readonly Column<Share>[] = [
    column('Budget', undefined, ({ account }) => <BudgetAccount account={account} />),
    column('Used (UTC)', 'time', (share) => <Span from={share.from} until={share.until} />),
    column(`Per hour (${unit})`, 'number', ({ amount, from, until }) =>
      formatUnitHours((amount * 3600n) / (until - from)),
    ),
    column(`Total (${unit})`, 'number', ({ amount }) => formatUnitHours(amount)),
  ];
  return (
    <Section id="charges" title="Charges">
      {!isConfirmed && (
        <Message kind="notice">
          Blazar has not shown yet whether the last change was made. Until it does, the more expensive state
          is charged.
        </Message>
      )}
      <Table
        label="Charges to budgets"
        columns={columns}
        rows={charges}
        empty="Nothing is charged to budgets."
      />
      {charges.length > 0 && (
        <p>
          Cost: {formatUnitHours(cost)} {unit}
        </p>
      )}
    </Section>
  );
}

function BudgetAccount({ account }: { readonly account: string }) {
  const id = budgetIdOf(account);
  return id === undefined ? (
    <Text>{isBudgetAccount(account) ? 'no budget was valid' : account}</Text>
  ) : (
    <a href={pathWith('/budgets/history', { budget: String(id) })}>Budget {String(id)}</a>
  );
}

const OPERATIONS: ReadonlyMap<string, string> = new Map([
  ['create', 'recorded'],
  ['update', 'changed'],
  ['end', 'ended'],
  ['end-date', 'ended at its end date'],
  ['undo', 'undone: the change was not made'],
  ['reconcile', 'corrected after a reconciliation with Blazar'],
  ['reopen', 'reopened: the clock had been ahead'],
]);

function historyColumns(unit: string, seesLedger: boolean): readonly Column<Step>[] {
  return [
    column('Time (UTC)', 'time', ({ at }) => <Time at={at} />),
    column('Event', 'outcomes', ({ decision, entry }) => (
      <>
        {decision !== undefined && (
          <>
            <Outcome outcome={decision.record.outcome} />
            <small>{operationText(decision.record)}</small>
            <Small text={decision.record.filter} />
          </>
        )}
        {entry !== undefined && (OPERATIONS.get(entry.operation) ?? <Text>{entry.operation}</Text>)}
      </>
    )),
    column('Details', 'why', ({ decision, entry }) => (
      <>
        {decision !== undefined && <Decided {...decision} />}
        {entry !== undefined && (
          <>
            <BudgetAccount account={entry.account} />: {takenText(entry, unit)}
            {seesLedger && <Small text={entry.who} />}
            <Small text={entry.reason} />
          </>
        )}
      </>
    )),
    column('Request id', 'request', ({ decision, entry }) => {
      const id = decision?.record.request_id ?? entry?.request_id;
      return id != null && <IdLink href={decisionPath(id)} id={id} />;
    }),
  ];
}

/** Leases with the same id, in several regions or projects. */
export function LeasesWithSameId({ leases }: { readonly leases: readonly ListedRow[] }) {
  return <Table label="These leases" columns={NAMESAKE_COLUMNS} rows={leases} />;
}

const NAMESAKE_COLUMNS: readonly Column<ListedRow>[] = [
  column('Lease', 'what', ({ name, row }) => (
    <a href={leasePath(null, row)}>
      <LeaseName name={name} /> <Text>{`#${row}`}</Text>
    </a>
  )),
  column('Region', undefined, ({ region }) => <Text>{region}</Text>),
  column('Project', undefined, ({ projectId }) => <ProjectLink id={projectId} />),
  column('User', 'who', ({ userId }) => <Account kind="user" id={userId} />),
  column('Start (UTC)', 'time', ({ start }) => <Time at={start} />),
];
