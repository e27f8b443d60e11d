/** Leases of a project as a table, in pages. */
import { formatUnitHours } from '../../../filter/amount.ts';
import type { LeaseRowView } from '../../../ledger/reports/leases.ts';
import { Account } from '../account.tsx';
import { Table } from '../table.tsx';
import { Text } from '../text.tsx';
import { shownDate } from '../time-scale.ts';

interface LeasesTableProps {
  readonly leases: readonly LeaseRowView[];
  readonly unit: string;
}

export function LeasesTable({ leases, unit }: LeasesTableProps) {
  return (
    <Table
      label="These leases"
      head={['Lease', 'User', 'Start (UTC)', 'End (UTC)', 'State', 'Resources', `Cost (${unit})`]}
      isLong
    >
      {leases.map((lease) => (
        <Row {...lease} />
      ))}
    </Table>
  );
}

function Row({ leaseId, region, name, userId, start, end, state, cost, resources }: LeaseRowView) {
  return (
    <tr>
      <th scope="row" class="what">
        {name === '' ? <span class="none">no name</span> : <Text>{name}</Text>}
        {leaseId !== null && (
          <small class="id">
            <Text>{leaseId}</Text>
          </small>
        )}
        {region !== '' && (
          <small>
            <Text>{region}</Text>
          </small>
        )}
      </th>
      <td class="who id">
        <Account kind="user" id={userId} />
      </td>
      <td class="time">{shownDate(start)}</td>
      <td class="time">{shownDate(end)}</td>
      <td>{state}</td>
      <td>
        {[...resources].map(([type, count]) => (
          <div>
            {count} × <Text>{type}</Text>
          </div>
        ))}
      </td>
      <td class="number">{formatUnitHours(cost)}</td>
    </tr>
  );
}
