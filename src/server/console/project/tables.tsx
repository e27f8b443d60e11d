/** Leases of a project as a table, in pages. */

import type { VNode } from 'preact';
import { isMapping } from '../../../base/yaml/tree.ts';
import { valueText } from '../../../config/text.ts';
import type { DecisionRecord } from '../../../decisions/record.ts';
import { formatUnitHours } from '../../../filter/claim.ts';
import type { Instant } from '../../../lease/dates.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { FoldedTotals } from '../../../ledger/folding/totals.ts';
import type { LeaseRowView } from '../../../ledger/reports/leases.ts';
import type { UsageGroup, UsageReport } from '../../../ledger/reports/usage.ts';
import type { FilterLimits, LimitOption } from '../../api/project-limits.ts';
import { Account, LeaseName, Message, Outcome, Table, Text } from '../parts/parts.tsx';
import { shownDate } from '../parts/time-scale.ts';

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
        <LeaseRow {...lease} />
      ))}
    </Table>
  );
}

function LeaseRow({ leaseId, region, name, userId, start, end, state, cost, resources }: LeaseRowView) {
  return (
    <tr>
      <th scope="row" class="what">
        <LeaseName name={name} />
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

export interface Refusal {
  readonly record: DecisionRecord;
  readonly start: Instant | undefined;
  readonly end: Instant | undefined;
  readonly decisionPath: string;
  /** "Try it" with the same wish filled in. */
  readonly tryPath: string;
}

export function RefusalsTable({ refusals }: { readonly refusals: readonly Refusal[] }) {
  return (
    <Table label="Refused leases" head={['Lease', 'User', 'Asked for (UTC)', 'Reason', 'More']} isLong>
      {refusals.map((refusal) => (
        <RefusalRow {...refusal} />
      ))}
    </Table>
  );
}

function RefusalRow({ record, start, end, decisionPath, tryPath }: Refusal) {
  const { lease_name: name, user_id: user, time, operation, outcome, filter, message } = record;
  const what = `of ${name === null || name === '' ? 'a lease without a name' : name} at ${time.slice(0, 16)}`;
  return (
    <tr>
      <th scope="row" class="what">
        <LeaseName name={name} />
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

/** Beside a list of leases. */
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
  /** Seconds of the epoch: from then on everything is counted. `undefined` = nothing is. */
  readonly from: bigint | undefined;
  readonly folded: FoldedTotals | undefined;
}

/** Beside figures that begin later than the time that is shown. */
export function PartOnly({ from, folded }: PartOnlyProps) {
  const begin = from === undefined ? undefined : from * MICROSECONDS_PER_SECOND;
  if (folded !== undefined && (begin === undefined || begin < folded.until + MICROSECONDS_PER_SECOND)) {
    return (
      <Message kind="notice">
        Leases that had ended before {shownDate(folded.until)} are folded into totals, without the times of
        their usage: this begins then.
      </Message>
    );
  }
  return (
    <Message kind="notice">
      There are too many leases in this time to add all of them up
      {begin === undefined ? '.' : `: this begins on ${shownDate(begin)}.`}
    </Message>
  );
}
