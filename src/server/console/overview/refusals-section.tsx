import { DecisionTable } from '../decisions/decision-table.tsx';
import { Message } from '../message.tsx';
import { Table } from '../table.tsx';
import { Text } from '../text.tsx';
import type { FilterRefusals, Refusals } from './refusals.ts';

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
          <Table label="Refused, by filter" head={['Filter', 'Last hour', 'Last day', 'Last (UTC)']}>
            {filters.map((one) => (
              <FilterRow {...one} />
            ))}
          </Table>
          <h3>The latest</h3>
          <DecisionTable label="Refused lately" decisions={latest} />
        </>
      )}
      <p>
        <a href="/decisions?outcome=refused">All refusals</a>
      </p>
      {replicas.size > 0 && (
        <>
          <h3>Replicas that decide</h3>
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

function FilterRow({ filter, hour, day, last }: FilterRefusals) {
  return (
    <tr data-key={filter ?? ''}>
      <th scope="row">
        {filter === null ? (
          <span class="none">none of them</span>
        ) : (
          <a href={`/decisions?${new URLSearchParams({ filter })}`}>
            <Text>{filter}</Text>
          </a>
        )}
      </th>
      <td class="number">{hour}</td>
      <td class="number">{day}</td>
      <td class="time">{shownTime(last)}</td>
    </tr>
  );
}

function shownTime(time: string): string {
  return time.slice(0, 19).replace('T', ' ');
}
