/** Who changed budgets, when and why. */
import { formatUnitHours } from '../../../filter/amount.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { BudgetChange } from '../../../ledger/budgets/budgets.ts';
import type { PageOf } from '../../../ledger/reports/pages.ts';
import { Account, type NameOf } from '../account.tsx';
import { WithNames } from '../known-names.tsx';
import { Pager } from '../pager.tsx';
import { projectPath } from '../paths.ts';
import { Table } from '../table.tsx';
import { Text } from '../text.tsx';
import { shownDate } from '../time-scale.ts';

export interface BudgetHistoryProps {
  readonly page: PageOf<BudgetChange>;
  readonly query: URLSearchParams;
  readonly unit: string;
  readonly nameOf: NameOf;
}

export function BudgetHistory({ page, query, unit, nameOf }: BudgetHistoryProps) {
  return (
    <WithNames nameOf={nameOf}>
      <section>
        <p>
          <a href="/budgets">All budgets</a>
        </p>
        {page.items.length === 0 ? (
          <p>Nothing was changed.</p>
        ) : (
          <Table
            label="Changes of budgets"
            head={[
              'Time (UTC)',
              'Who',
              'Why',
              'Project',
              'Whose',
              'Change',
              `Budget (${unit})`,
              'Valid (UTC)',
            ]}
          >
            {page.items.map((change) => (
              <Row {...change} unit={unit} />
            ))}
          </Table>
        )}
        <Pager label="changes of budgets" path="/budgets/history" query={query} next={page.next} />
      </section>
    </WithNames>
  );
}

function Row(change: BudgetChange & { readonly unit: string }) {
  const { at, who, reason, projectId, userId, operation, amount, validFrom, validUntil } = change;
  return (
    <tr>
      <td class="time">{shownDate(at - (at % MICROSECONDS_PER_SECOND))}</td>
      <th scope="row" class="who">
        <Text>{who}</Text>
      </th>
      <td class="why">{reason === null ? <span class="none">no reason</span> : <Text>{reason}</Text>}</td>
      <td class="what">
        <a href={projectPath(projectId)}>
          <Account kind="project" id={projectId} />
        </a>
      </td>
      <td>{userId === null ? 'Project' : <Account kind="user" id={userId} />}</td>
      <td>{operation}</td>
      <td class="number">{formatUnitHours(amount)}</td>
      <td class="time">
        {shownDate(validFrom * MICROSECONDS_PER_SECOND)} to
        <br />
        {shownDate(validUntil * MICROSECONDS_PER_SECOND)}
      </td>
    </tr>
  );
}
