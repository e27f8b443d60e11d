/** What a decision has taken from limits and budgets, as the ledger has recorded it. */
import { inTime } from '../../../base/deadline.ts';
import { LedgerUnavailableError } from '../../../base/errors.ts';
import type { ChangeRecord, DecisionRecord, FilterRecord } from '../../../decisions/record.ts';
import { type Amount, formatUnitHours } from '../../../filter/claim.ts';
import { type EntryView, listEntries } from '../../../ledger/reports/entries.ts';
import { isBudgetAccount } from '../../../ledger/reports/reports.ts';
import type { PageRequest } from '../page.ts';
import { type Column, Small, Table, Text, visible } from '../parts/parts.tsx';

const LIMIT = 50;

/** `undefined` = the ledger is not used, or does not answer; a decision that refused has taken nothing. */
export async function recordedEntries(
  { generation, deadline }: PageRequest,
  { allowed, operation, request_id, project_id, lease_id }: DecisionRecord,
): Promise<readonly EntryView[] | undefined> {
  const { ledger } = generation;
  if (ledger === undefined || !allowed || project_id === null || operation.includes('.')) {
    return undefined;
  }
  try {
    const query = { projectId: project_id, requestId: request_id, leaseId: lease_id ?? undefined };
    const read = ledger.read((opened) =>
      listEntries(opened, { ...query, limit: LIMIT, after: undefined }, deadline),
    );
    return (await inTime(read, deadline)).items;
  } catch (thrown) {
    if (thrown instanceof LedgerUnavailableError) {
      return undefined;
    }
    throw thrown;
  }
}

const ENTRY_COLUMNS: readonly Column<EntryView>[] = [
  ['Account', undefined, ({ account }) => <Text>{account}</Text>],
  [
    'Taken',
    'number',
    ({ account, delta }) => (isBudgetAccount(account) ? `${hours(delta)} unit-hours` : String(delta)),
  ],
  [
    'Why',
    undefined,
    ({ operation, reason }) => (
      <>
        {operation}
        <Small text={reason} />
      </>
    ),
  ],
];

export function RecordedEntries(props: { readonly label: string; readonly entries: readonly EntryView[] }) {
  return <Table label={props.label} columns={ENTRY_COLUMNS} rows={props.entries} />;
}

/** Less than 0 = it was given back. */
function hours(delta: Amount): string {
  return delta < 0n ? `-${formatUnitHours(-delta, 'down')}` : formatUnitHours(delta);
}

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
      <Table label={label} columns={CHANGE_COLUMNS} rows={changes} isLong={changes.length > 10} />
      {leftOut > 0 && <p class="hint">And {leftOut} more.</p>}
    </>
  );
}

const CHANGE_COLUMNS: readonly Column<ChangeRecord>[] = [
  [
    'Where',
    undefined,
    ({ path }) => (
      <code>
        <Text>{path}</Text>
      </code>
    ),
  ],
  [
    'Before and after',
    'diff',
    ({ before, after }) => (
      <>
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
      </>
    ),
  ],
];
