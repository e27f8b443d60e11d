/** The limits that apply to a project, and whence. */
import { valueText } from '../../../config/text.ts';
import { isMapping } from '../../../yaml/tree.ts';
import type { FilterLimits, LimitOption } from '../../api/project-limits.ts';
import { Table } from '../table.tsx';
import { Text } from '../text.tsx';

interface LimitsTableProps {
  readonly limits: readonly FilterLimits[];
  /** Whether the project is in `exempt_projects`. */
  readonly isExempt: boolean;
  /** Whether to show the lines of the configuration. */
  readonly showsOrigins: boolean;
}

export function LimitsTable({ limits, isExempt, showsOrigins }: LimitsTableProps) {
  if (isExempt) {
    return <p>This project is exempt: no filter is asked about its leases.</p>;
  }
  const rows = limits.flatMap(({ filter, audit, options }) =>
    options.filter(isLimit).map((option) => ({ filter, audit, option })),
  );
  if (rows.length === 0) {
    return <p>No filter in use has a limit in its options. Filters may have rules of their own.</p>;
  }
  return (
    <Table label="Limits that apply" head={['Filter', 'Limit', 'Value', ...(showsOrigins ? ['Origin'] : [])]}>
      {rows.map(({ filter, audit, option: { option, value, unit, origin } }) => (
        <tr>
          <th scope="row">
            <Text>{filter}</Text>
            {audit && <small>audit: tried, not enforced</small>}
          </th>
          <td>
            <code>{option}</code>
          </td>
          <td>
            <Text>{valueText(value)}</Text>
            {unit !== null && ` ${unit}`}
          </td>
          {showsOrigins && (
            <td class="origin">
              <Text>{origin ?? ''}</Text>
            </td>
          )}
        </tr>
      ))}
    </Table>
  );
}

/** Options that are not set, and lists that name nobody of this project, limit nothing. */
function isLimit({ value, isHidden }: LimitOption): boolean {
  const isEmpty = Array.isArray(value)
    ? value.length === 0
    : isMapping(value) && Object.keys(value).length === 0;
  return !isHidden && value !== null && !isEmpty;
}
