/** What a project used, by user and by resource type. */
import type { VNode } from 'preact';
import { formatUnitHours } from '../../../filter/amount.ts';
import type { UsageGroup, UsageReport } from '../../../ledger/reports/usage.ts';
import { Account } from '../account.tsx';
import { Table } from '../table.tsx';
import { Text } from '../text.tsx';
import { PartOnly } from './folded-leases.tsx';

export interface UsageData {
  readonly byUser: UsageReport;
  readonly byType: UsageReport;
}

/** More rows are of little help: the API gives them all. */
const MAX_ROWS = 50;

export function UsageTables({ byUser, byType, unit }: UsageData & { readonly unit: string }) {
  return (
    <>
      {(byUser.isPartial || byType.isPartial) && (
        <PartOnly from={byUser.isPartial ? byUser.from : byType.from} folded={byUser.folded} />
      )}
      <h3>By user</h3>
      <Groups
        label="Usage by user"
        head={['User', 'Leases', 'Resource hours', `Cost (${unit})`]}
        report={byUser}
        row={({ key, leases, resourceSeconds, amount }) => (
          <tr>
            <th scope="row" class="who id">
              <Account kind="user" id={key} />
            </th>
            <td class="number">{leases}</td>
            <td class="number">{hours(resourceSeconds)}</td>
            <td class="number">{amount === null ? '' : formatUnitHours(amount)}</td>
          </tr>
        )}
      />
      <h3>By resource type</h3>
      <Groups
        label="Usage by resource type"
        head={['Resource type', 'Leases', 'Resource hours']}
        report={byType}
        row={({ key, leases, resourceSeconds }) => (
          <tr>
            <th scope="row">
              <Text>{key}</Text>
            </th>
            <td class="number">{leases}</td>
            <td class="number">{hours(resourceSeconds)}</td>
          </tr>
        )}
      />
    </>
  );
}

interface GroupsProps {
  readonly label: string;
  readonly head: readonly string[];
  readonly report: UsageReport;
  readonly row: (group: UsageGroup) => VNode;
}

function Groups({ label, head, report, row }: GroupsProps) {
  const { groups } = report;
  if (groups.length === 0) {
    return <p>Nothing was used, and nothing is planned.</p>;
  }
  return (
    <>
      <Table label={label} head={head}>
        {groups.slice(0, MAX_ROWS).map(row)}
      </Table>
      {groups.length > MAX_ROWS && (
        <p class="hint">{groups.length - MAX_ROWS} more are not shown; the API gives all.</p>
      )}
    </>
  );
}

/** Rounded up to a tenth, as costs are. */
function hours(seconds: bigint): string {
  const tenths = (seconds * 10n + 3599n) / 3600n;
  return `${tenths / 10n}${tenths % 10n === 0n ? '' : `.${tenths % 10n}`}`;
}
