/** Tables of a project page: leases, limits, usage. */

import { isMapping } from '../../../base/yaml/tree.ts';
import { valueText } from '../../../config/text.ts';
import { formatUnitHours } from '../../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { FoldedTotals } from '../../../ledger/folding/totals.ts';
import type { LeaseRowView } from '../../../ledger/reports/leases.ts';
import { hoursText } from '../../../ledger/reports/usage/formats.ts';
import type { UsageGroup, UsageReport } from '../../../ledger/reports/usage.ts';
import type { FilterLimits, LimitOption, limitsFor } from '../../api/project-limits.ts';
import { changePath, leasePath } from '../page.ts';
import {
  Account,
  type Column,
  column,
  FilterName,
  LeaseName,
  Message,
  Resources,
  Small,
  Table,
  Text,
  Time,
} from '../parts/parts.tsx';
import { shownDate } from '../parts/time-scale.ts';

export function LeasesTable({ leases, unit }: { leases: readonly LeaseRowView[]; unit: string }) {
  return (
    <Table
      label="These leases"
      columns={[
        ...LEASE_COLUMNS,
        column(`Cost (${unit})`, 'number', ({ cost }: LeaseRowView) => formatUnitHours(cost)),
      ]}
      rows={leases}
      isLong
    />
  );
}

const LEASE_COLUMNS: readonly Column<LeaseRowView>[] = [
  column('Lease', 'what', ({ name, leaseId, row, region }) => (
    <>
      <a href={leasePath(leaseId, row)}>
        <LeaseName name={name} />
      </a>
      <Small text={leaseId} look="id" />
      <Small text={region || null} />
    </>
  )),
  column('User', 'who id', ({ userId }) => <Account kind="user" id={userId} />),
  column('Start (UTC)', 'time', ({ start }) => <Time at={start} />),
  column('End (UTC)', 'time', ({ end }) => <Time at={end} />),
  column('State', 'word', ({ state, leaseId, name }) => (
    <>
      {state}
      {state !== 'ended' && leaseId !== null && (
        <small>
          <a href={changePath(leaseId)}>
            Change <span class="unseen">{<Text>{name}</Text>}</span>
          </a>
        </small>
      )}
    </>
  )),
  column('Resources', 'what', ({ resources }) => <Resources resources={resources} />),
];

/** `showsOrigins`: whether to show the lines of the configuration. */
export function LimitsTable({
  limits,
  isExempt,
  showsOrigins,
}: ReturnType<typeof limitsFor> & { readonly showsOrigins: boolean }) {
  if (isExempt) {
    return <p>This project is exempt: no filter is run on its leases.</p>;
  }
  return (
    <Table
      label="Limits that apply"
      columns={showsOrigins ? [...LIMIT_COLUMNS, LIMIT_ORIGIN] : LIMIT_COLUMNS}
      rows={limits.flatMap(({ filter, audit, options }) =>
        options.filter(isLimit).map((option) => ({ filter, audit, option })),
      )}
      empty="No enabled filter has a limit in its options. Filters may have rules of their own."
    />
  );
}

type LimitRow = Pick<FilterLimits, 'filter' | 'audit'> & { readonly option: LimitOption };

const LIMIT_COLUMNS: readonly Column<LimitRow>[] = [
  column('Filter', undefined, (row) => <FilterName {...row} />),
  column('Limit', undefined, ({ option }) => <code>{option.option}</code>),
  column('Value', undefined, ({ option: { value, unit } }) => (
    <>
      <Text>{valueText(value)}</Text>
      {unit !== null && ` ${unit}`}
    </>
  )),
];
const LIMIT_ORIGIN: Column<LimitRow> = column('Origin', 'origin', ({ option }) => (
  <Text>{option.origin ?? ''}</Text>
));

/** Unset options, and lists without an entry for this project, limit nothing. */
function isLimit({ value, hidden }: LimitOption): boolean {
  const isEmpty = Array.isArray(value)
    ? value.length === 0
    : isMapping(value) && Object.keys(value).length === 0;
  return !hidden && value !== null && !isEmpty;
}

/** Maximum rows on a page; the API lists all. */
const MAX_ROWS = 50;

interface UsageProps {
  readonly usage: Readonly<Record<'user' | 'resource_type', UsageReport>>;
  readonly unit: string;
}

export function UsageTables({ usage, unit }: UsageProps) {
  const { isPartial, from, folded } = usage.user;
  return (
    <>
      {isPartial && <PartOnly from={from} folded={folded} />}
      <h3>By user</h3>
      <Groups
        label="Usage by user"
        columns={[
          column('User', 'who id', ({ key }) => <Account kind="user" id={key} />),
          ...USAGE_COLUMNS,
          column(`Cost (${unit})`, 'number', ({ amount }) =>
            amount === null ? '' : formatUnitHours(amount),
          ),
        ]}
        report={usage.user}
      />
      <h3>By resource type</h3>
      <Groups
        label="Usage by resource type"
        columns={[column('Resource type', undefined, ({ key }) => <Text>{key}</Text>), ...USAGE_COLUMNS]}
        report={usage.resource_type}
      />
    </>
  );
}

const USAGE_COLUMNS: readonly Column<UsageGroup>[] = [
  column('Leases', 'number', ({ leases }) => leases),
  column('Resource hours', 'number', ({ resourceSeconds }) => hoursText(resourceSeconds)),
];

interface GroupsProps {
  readonly label: string;
  readonly columns: readonly Column<UsageGroup>[];
  readonly report: UsageReport;
}

function Groups({ label, columns, report: { groups } }: GroupsProps) {
  return (
    <>
      <Table
        label={label}
        columns={columns}
        rows={groups.slice(0, MAX_ROWS)}
        empty="No usage, past or planned."
      />
      {groups.length > MAX_ROWS && (
        <p class="hint">{groups.length - MAX_ROWS} more are not shown; the API lists all.</p>
      )}
    </>
  );
}

export function FoldedLeases({ leases, until }: FoldedTotals) {
  return (
    <Message kind="notice">
      {leases.toLocaleString('en')} older {leases === 1n ? 'lease is' : 'leases are'} folded into totals and
      not listed: {leases === 1n ? 'it' : 'all'} had ended before {shownDate(until)}. Budgets count{' '}
      {leases === 1n ? 'it' : 'them'}.
    </Message>
  );
}

interface PartOnlyProps {
  /** Seconds of the epoch: complete from then on. `undefined` = nothing is counted. */
  readonly from: bigint | undefined;
  readonly folded: FoldedTotals | undefined;
}

/** A notice for figures that begin later than the displayed time. */
export function PartOnly({ from, folded }: PartOnlyProps) {
  const begin = from === undefined ? undefined : from * MICROSECONDS_PER_SECOND;
  if (folded !== undefined && (begin === undefined || begin < folded.until + MICROSECONDS_PER_SECOND)) {
    return (
      <Message kind="notice">
        Leases that had ended before {shownDate(folded.until)} are folded into totals, without the times of
        their usage: these figures begin at that date.
      </Message>
    );
  }
  return (
    <Message kind="notice">
      There are too many leases in this time to add all of them up
      {begin === undefined ? '.' : `: these figures begin on ${shownDate(begin)}.`}
    </Message>
  );
}
