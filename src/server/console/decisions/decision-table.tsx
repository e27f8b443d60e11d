import type { DecisionRecord } from '../../../decisions/record.ts';
import type { Named } from '../../../filter/call.ts';
import { LeaseName, Milliseconds, NamedId, Outcome, Table, Text } from '../parts/parts.tsx';

interface DecisionTableProps {
  readonly label: string;
  readonly decisions: readonly DecisionRecord[];
  /** Members see nothing of how the service works: which configuration decided, and how long it took. */
  readonly isForMember?: boolean;
}

export function DecisionTable({ label, decisions, isForMember = false }: DecisionTableProps) {
  return (
    <Table
      label={label}
      head={['Time (UTC)', 'Outcome', 'Lease', 'Project, user', 'Message', 'Request id']}
      isLong
    >
      {decisions.map((decision) => (
        <DecisionRow decision={decision} isForMember={isForMember} />
      ))}
    </Table>
  );
}

interface DecisionRowProps {
  readonly decision: DecisionRecord;
  readonly isForMember: boolean;
}

function DecisionRow({ decision, isForMember }: DecisionRowProps) {
  const { time, outcome, operation, filter, lease_name, lease_id, project_id, user_id } = decision;
  const { message, warnings, duration_ms, request_id, generation } = decision;
  const project = named(decision.project_name, decision.project_domain);
  const user = named(decision.user_name, decision.user_domain);
  return (
    <tr data-key={`${request_id} ${operation} ${time}`}>
      <td class="time">
        <time dateTime={time}>
          {time.slice(0, 10)} <b>{time.slice(11, 19)}</b>
        </time>
        {!isForMember && (
          <small>
            <Milliseconds value={duration_ms} />
          </small>
        )}
      </td>
      <td class="outcomes">
        <Outcome outcome={outcome} />
        <small>
          {operationText(decision)}
          {filter !== null && (
            <>
              {' · '}
              <Text>{filter}</Text>
            </>
          )}
        </small>
      </td>
      <td class="what">
        <LeaseName name={lease_name} />
        {lease_id !== null && (
          <small class="id">
            <Text>{lease_id}</Text>
          </small>
        )}
      </td>
      <td class="who">
        <div class={project === undefined ? 'id' : undefined}>
          <NamedId id={project_id ?? ''} named={project} />
        </div>
        <small class={user === undefined ? 'id' : undefined}>
          <NamedId id={user_id ?? ''} named={user} />
        </small>
      </td>
      <td class="why">
        {message !== null && <Text>{message}</Text>}
        <Warnings warnings={warnings} />
      </td>
      <td class="request">
        <a class="id" href={`/decisions/${encodeURIComponent(request_id)}`}>
          {request_id}
        </a>
        {!isForMember && <small>generation {generation}</small>}
      </td>
    </tr>
  );
}

/** Of SkyPilot, with the side that asked. */
export function operationText({ operation, side }: DecisionRecord): string {
  return side === undefined ? operation : `${operation} (${side})`;
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
