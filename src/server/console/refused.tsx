import type { RefusedLease } from '../../decisions/recent.ts';
import { Account } from './account.tsx';
import { Outcome } from './outcome.tsx';
import { Table } from './table.tsx';
import { Text } from './text.tsx';
import { shownDate } from './time-scale.ts';

/** The latest refusals of this process, with reasons. */
export function Refused({ refused }: { readonly refused: readonly RefusedLease[] }) {
  return (
    <>
      <h3>Refused</h3>
      <p class="hint">From the latest decisions of this process: the ledger does not record refusals.</p>
      <Table label="Refused leases" head={['Lease', 'User', 'Asked for', 'Outcome', 'Reason']} isLong>
        {refused.map(({ record, start, end }) => (
          <tr>
            <th scope="row" class="what">
              {record.lease_name === null ? (
                <span class="none">no name</span>
              ) : (
                <Text>{record.lease_name}</Text>
              )}
              <small>
                {record.operation}{' '}
                <time dateTime={record.time}>{record.time.slice(0, 16).replace('T', ' ')}</time>
              </small>
            </th>
            <td class="who id">
              <Account kind="user" id={record.user_id ?? ''} />
            </td>
            <td class="time">
              {shownDate(start)} to
              <br />
              {shownDate(end)}
            </td>
            <td class="outcomes">
              <Outcome outcome={record.outcome} />
              {record.filter !== null && (
                <small>
                  <Text>{record.filter}</Text>
                </small>
              )}
            </td>
            <td class="why">{record.message !== null && <Text>{record.message}</Text>}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}
