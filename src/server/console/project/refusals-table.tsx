/** The latest refusals of a project: why, the whole decision, and the same wish to try again. */
import { Account } from '../account.tsx';
import { Outcome } from '../outcome.tsx';
import { Table } from '../table.tsx';
import { Text } from '../text.tsx';
import { shownDate } from '../time-scale.ts';
import type { Refusal } from './project-data.ts';

export function RefusalsTable({ refusals }: { readonly refusals: readonly Refusal[] }) {
  return (
    <Table label="Refused leases" head={['Lease', 'User', 'Asked for (UTC)', 'Reason', 'More']} isLong>
      {refusals.map((refusal) => (
        <Row {...refusal} />
      ))}
    </Table>
  );
}

function Row({ record, start, end, decisionPath, tryPath }: Refusal) {
  const { lease_name: name, user_id: user, time, operation, outcome, filter, message } = record;
  const what = `of ${name === null || name === '' ? 'a lease without a name' : name} at ${time.slice(0, 16)}`;
  return (
    <tr>
      <th scope="row" class="what">
        {name === null || name === '' ? <span class="none">no name</span> : <Text>{name}</Text>}
        <small>
          {operation} <time dateTime={time}>{time.slice(0, 16).replace('T', ' ')}</time>
        </small>
      </th>
      <td class="who id">{user !== null && <Account kind="user" id={user} />}</td>
      <td class="time">
        {start === undefined || end === undefined ? (
          <span class="none">not known</span>
        ) : (
          <>
            {shownDate(start)} to
            <br />
            {shownDate(end)}
          </>
        )}
      </td>
      <td class="why">
        <Outcome outcome={outcome} />
        {filter !== null && (
          <small>
            <Text>{filter}</Text>
          </small>
        )}
        {message !== null && <Text>{message}</Text>}
      </td>
      <td class="time">
        <a href={decisionPath}>
          Decision <span class="unseen">{<Text>{what}</Text>}</span>
        </a>
        <br />
        <a href={tryPath}>
          Try it <span class="unseen">{<Text>{what}</Text>}</span>
        </a>
      </td>
    </tr>
  );
}
