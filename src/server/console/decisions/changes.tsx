/** What the policies changed in a request of SkyPilot, as a diff: a line for what was there, and one for what is. */

import type { ChangeRecord, DecisionRecord, FilterRecord } from '../../../decisions/record.ts';
import { Table } from '../table.tsx';
import { Text, visible } from '../text.tsx';

interface ChangesProps {
  readonly record: DecisionRecord;
  /** Where several decisions stand on one page: which of them. */
  readonly number: number;
}

/** Nothing if nothing was changed. */
export function Changes({ record, number }: ChangesProps) {
  return (
    <>
      {record.filters.map(
        (one) =>
          one.changes !== undefined && one.changes.length > 0 && <OfPolicy one={one} number={number} />,
      )}
    </>
  );
}

interface OfPolicyProps {
  readonly one: FilterRecord;
  readonly number: number;
}

function OfPolicy({ one, number }: OfPolicyProps) {
  const { filter, audit, changes = [], changes_left_out: leftOut = 0 } = one;
  const label = `What ${visible(filter)} ${audit ? 'would have changed' : 'changed'}${number > 1 ? ` (${number})` : ''}`;
  return (
    <>
      <Table label={label} head={['Where', 'Before and after']} isLong={changes.length > 10}>
        {changes.map((change) => (
          <ChangeRow change={change} />
        ))}
      </Table>
      {leftOut > 0 && <p class="hint">And {leftOut} more.</p>}
    </>
  );
}

function ChangeRow({ change: { path, before, after } }: { readonly change: ChangeRecord }) {
  return (
    <tr>
      <th scope="row">
        <code>
          <Text>{path}</Text>
        </code>
      </th>
      <td class="diff">
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
      </td>
    </tr>
  );
}
