import { type DecisionRecord, type FilterRecord, operationText } from '../../../decisions/record.ts';
import type { Named } from '../../../filter/verdict.ts';
import type { FoundDecision } from '../../leases/lease-history.ts';
import { decisionPath, leasePath, tryPathOf } from '../page.ts';
import {
  type Column,
  column,
  FilterName,
  IdLink,
  LeaseName,
  Milliseconds,
  NamedId,
  Outcome,
  Table,
  Text,
  Time,
} from '../parts/parts.tsx';

interface DecisionTableProps {
  readonly label: string;
  readonly decisions: readonly FoundDecision[];
  /** Members do not see internals: the configuration that decided and how long it took. */
  readonly isForMember?: boolean;
  readonly empty?: string;
}

export function DecisionTable({ decisions, isForMember = false, ...table }: DecisionTableProps) {
  return (
    <Table
      {...table}
      columns={columns(isForMember)}
      rows={decisions}
      named={-1}
      rowProps={({ record: { request_id, operation, time } }) => ({
        'data-key': `${request_id} ${operation} ${time}`,
      })}
      isLong
    />
  );
}

function columns(isForMember: boolean): readonly Column<FoundDecision>[] {
  return [
    column('Time (UTC)', 'time', ({ record: { time, duration_ms } }) => (
      <>
        <time dateTime={time}>
          {time.slice(0, 10)} <b>{time.slice(11, 19)}</b>
        </time>
        {!isForMember && (
          <small>
            <Milliseconds value={duration_ms} />
          </small>
        )}
      </>
    )),
    column('Outcome', 'outcomes', ({ record }) => (
      <>
        <Outcome outcome={record.outcome} />
        <small>
          {operationText(record)}
          {record.filter !== null && (
            <>
              {' · '}
              <Text>{record.filter}</Text>
            </>
          )}
        </small>
      </>
    )),
    column('Lease', 'what', ({ record: { lease_name, lease_id } }) => (
      <>
        <LeaseName name={lease_name} />
        <LeaseId id={lease_id} />
      </>
    )),
    column('Project, user', 'who', ({ record }) => <Who {...record} />),
    column('Message', 'why', (decision) => <Decided {...decision} />),
    column('Request id', 'request', ({ record, asked }) => (
      <>
        <IdLink href={decisionPath(record.request_id)} id={record.request_id} />
        {!isForMember && <small>generation {record.generation}</small>}
        {asked !== undefined && (
          <a href={tryPathOf(record, asked)}>
            Try this lease
            <span class="unseen">
              {' of '}
              <Text>{`${record.lease_name || 'a lease without a name'} at ${record.time.slice(0, 16)}`}</Text>
            </span>
          </a>
        )}
      </>
    )),
  ];
}

export const FILTER_COLUMNS: readonly Column<FilterRecord>[] = [
  column('Filter', undefined, (one) => <FilterName {...one} />),
  column('Verdict', undefined, ({ outcome }) => <Outcome outcome={outcome} />),
  column('Message', 'why', ({ message }) => message !== null && <Text>{message}</Text>),
];

/** The message and warnings of a decision, and the time for which a refused lease was requested. */
export function Decided({ record: { message, warnings }, asked }: FoundDecision) {
  return (
    <>
      {message !== null && <Text>{message}</Text>}
      {asked !== undefined && (
        <small>
          requested <Time at={asked.start} /> to <Time at={asked.end} />
        </small>
      )}
      <Warnings warnings={warnings} />
    </>
  );
}

export function LeaseId({ id }: { readonly id: string | null }) {
  return id === null ? null : (
    <small>
      <IdLink href={leasePath(id)} id={id} />
    </small>
  );
}

function Who(decision: DecisionRecord) {
  const project = named(decision.project_name, decision.project_domain);
  const user = named(decision.user_name, decision.user_domain);
  return (
    <>
      <div class={project === undefined ? 'id' : undefined}>
        <NamedId id={decision.project_id ?? ''} named={project} />
      </div>
      <small class={user === undefined ? 'id' : undefined}>
        <NamedId id={decision.user_id ?? ''} named={user} />
      </small>
    </>
  );
}

export function named(name: string | null | undefined, domain: string | null | undefined): Named | undefined {
  return name ? { name, domain: domain ?? '' } : undefined;
}

export function Warnings({ warnings }: { readonly warnings: readonly string[] }) {
  return (
    <>
      {warnings.map((warning) => (
        <p class="warning">
          <b>Warning:</b> <Text>{warning}</Text>
        </p>
      ))}
    </>
  );
}
