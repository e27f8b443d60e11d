import { type DecisionRecord, type FilterRecord, operationText } from '../../../decisions/record.ts';
import type { Named } from '../../../filter/verdict.ts';
import { decisionPath, leasePath } from '../page.ts';
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
} from '../parts/parts.tsx';

interface DecisionTableProps {
  readonly label: string;
  readonly decisions: readonly DecisionRecord[];
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
      rowProps={({ request_id, operation, time }) => ({ 'data-key': `${request_id} ${operation} ${time}` })}
      isLong
    />
  );
}

function columns(isForMember: boolean): readonly Column<DecisionRecord>[] {
  return [
    column('Time (UTC)', 'time', ({ time, duration_ms }) => (
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
    column('Outcome', 'outcomes', (decision) => (
      <>
        <Outcome outcome={decision.outcome} />
        <small>
          {operationText(decision)}
          {decision.filter !== null && (
            <>
              {' · '}
              <Text>{decision.filter}</Text>
            </>
          )}
        </small>
      </>
    )),
    column('Lease', 'what', ({ lease_name, lease_id }) => (
      <>
        <LeaseName name={lease_name} />
        <LeaseId id={lease_id} />
      </>
    )),
    column('Project, user', 'who', (decision) => <Who {...decision} />),
    column('Message', 'why', ({ message, warnings }) => (
      <>
        {message !== null && <Text>{message}</Text>}
        <Warnings warnings={warnings} />
      </>
    )),
    column('Request id', 'request', ({ request_id, generation }) => (
      <>
        <IdLink href={decisionPath(request_id)} id={request_id} />
        {!isForMember && <small>generation {generation}</small>}
      </>
    )),
  ];
}

export const FILTER_COLUMNS: readonly Column<FilterRecord>[] = [
  column('Filter', undefined, (one) => <FilterName {...one} />),
  column('Verdict', undefined, ({ outcome }) => <Outcome outcome={outcome} />),
  column('Message', 'why', ({ message }) => message !== null && <Text>{message}</Text>),
];

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
