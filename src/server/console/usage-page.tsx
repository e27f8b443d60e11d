/** Usage in a time range: as a table, by month also as a chart, and as files. */
import { formatUnitHours, unitHours } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND, secondText, toInstant } from '../../lease/dates.ts';
import { hoursText, missingTexts, monthText } from '../../ledger/reports/usage/formats.ts';
import {
  nextMonth,
  USAGE_KEYS,
  type UsageKey,
  type UsageReport,
  type UsageRow,
} from '../../ledger/reports/usage/sums.ts';
import { ApiError } from '../api/route.ts';
import { learnNames } from '../api/shown.ts';
import { usageFor } from '../api/usage-report.ts';
import { ledgerFor } from '../budgets/named-accounts.ts';
import { visibleProjects } from '../users/caller.ts';
import { type ConsolePage, pathWith, queryText } from './page.ts';
import { type FieldEntry, Fields } from './parts/fields.tsx';
import { Account, type Column, column, Message, ProjectLink, Section, Table, Text } from './parts/parts.tsx';
import { Chart } from './parts/pictures.tsx';

const PATH = '/usage';
/** Maximum rows on the page; the files have all. */
const MAX_ROWS = 200;
/** Default number of months: the last year, and what is planned for the current month. */
const MONTHS = 12;

const KEY_TEXTS: Readonly<Record<UsageKey, string>> = {
  month: 'Month',
  project: 'Project',
  user: 'User',
  resource_type: 'Resource type',
};

interface Asked {
  readonly from: string;
  readonly until: string;
  readonly by: UsageKey;
  readonly project: string;
}

export const usagePage: ConsolePage = {
  method: 'GET',
  path: PATH,
  action: 'list-projects',
  label: 'Usage',
  answer: async (request) => {
    const { caller, query, unit } = request;
    const now = (await ledgerFor(request)).now() / MICROSECONDS_PER_SECOND;
    const text = (name: string) => queryText(query, name);
    const asked: Asked = {
      from: text('from') || secondText(nextMonth(now, 1 - MONTHS)).slice(0, 10),
      until: text('until') || secondText(nextMonth(now)).slice(0, 10),
      by: USAGE_KEYS.find((one) => one === text('by')) ?? 'month',
      project: text('project'),
    };
    const mistakes = new Map<string, string>();
    const second = (name: 'from' | 'until') => {
      const instant = toInstant(asked[name]);
      if (instant === undefined) {
        mistakes.set(name, 'expected a date such as 2026-12-01');
      }
      return instant === undefined ? undefined : instant / MICROSECONDS_PER_SECOND;
    };
    const span = { from: second('from'), until: second('until') };
    let report: UsageReport | undefined;
    if (mistakes.size === 0) {
      try {
        ({ report } = await usageFor(request, asked.project || undefined, { ...span, by: asked.by }));
      } catch (thrown) {
        if (!(thrown instanceof ApiError && thrown.field !== undefined && thrown.status < 500)) {
          throw thrown;
        }
        mistakes.set(thrown.field === 'project_id' ? 'project' : thrown.field, thrown.message);
      }
    }
    await learnNames(request, report?.rows.slice(0, MAX_ROWS) ?? []);
    return {
      status: mistakes.size === 0 ? 200 : 400,
      title: 'Usage',
      main: (
        <>
          <UsageForm asked={asked} mistakes={mistakes} projects={visibleProjects(caller)} />
          {report !== undefined && <UsageReportView asked={asked} report={report} unit={unit} />}
        </>
      ),
    };
  },
};

interface FormProps {
  readonly asked: Asked;
  readonly mistakes: ReadonlyMap<string, string>;
  /** The caller's projects; `undefined` = all. */
  readonly projects: readonly string[] | undefined;
}

function UsageForm({ asked, mistakes, projects = [] }: FormProps) {
  const dateType = (text: string) => (/^\d{4}-\d\d-\d\d$/.test(text) ? 'date' : 'text');
  const fields: readonly FieldEntry[] = [
    { name: 'from', label: 'From (UTC)', type: dateType(asked.from) },
    {
      name: 'until',
      label: 'Until (UTC)',
      type: dateType(asked.until),
      hint: 'This day is not counted.',
    },
    { name: 'by', label: 'By', options: Object.entries(KEY_TEXTS) },
    {
      name: 'project',
      label: 'Project',
      hint: 'Its id, or name@domain. Empty: all.',
      suggestions: projects,
    },
  ];
  return (
    <form method="get" action={PATH} autocomplete="off">
      <div class="fields">
        <Fields values={{ ...asked }} mistakes={mistakes} fields={fields} />
      </div>
      <div class="actions">
        <button type="submit">Show</button>
      </div>
    </form>
  );
}

function UsageReportView({ asked, report, unit }: { asked: Asked; report: UsageReport; unit: string }) {
  const { from, until, by, project: project_id } = asked;
  const { rows } = report;
  const file = (format: string) =>
    pathWith('/v1/reports/usage', { from, until, by, project_id: project_id || undefined, format });
  return (
    <Section id="report" title={`By ${KEY_TEXTS[by].toLowerCase()}`}>
      {missingTexts(report, by, unit).map((text) => (
        <Message kind="notice">
          <Text>{text}</Text>
        </Message>
      ))}
      {by === 'month' && rows.length > 0 && <MonthsChart rows={rows} unit={unit} />}
      <Table
        label={`Usage by ${KEY_TEXTS[by].toLowerCase()}`}
        columns={[...KEY_COLUMNS[by], ...(by === 'resource_type' ? [] : amountColumns(unit)), ...COLUMNS]}
        rows={rows.slice(0, MAX_ROWS)}
        empty="No usage, past or planned."
        isLong
      />
      {rows.length > MAX_ROWS && (
        <p class="hint">{rows.length - MAX_ROWS} more are not shown; the files contain all.</p>
      )}
      <nav aria-label="Files" class="pages">
        <a href={file('csv')} download="usage.csv">
          CSV
        </a>
        <a href={file('focus')} download="usage-focus.csv">
          FOCUS 1.2
        </a>
        <a href={file('json')} download="usage.json">
          JSON
        </a>
      </nav>
    </Section>
  );
}

const PROJECT: Column<UsageRow> = column(
  'Project',
  'what id',
  ({ projectId }) => projectId !== null && <ProjectLink id={projectId} />,
);
const KEY_COLUMNS: Readonly<Record<UsageKey, readonly Column<UsageRow>[]>> = {
  month: [['Month', 'time', monthText]],
  project: [PROJECT],
  user: [
    PROJECT,
    column('User', 'who id', ({ userId }) =>
      userId === null ? <span class="none">not known</span> : <Account kind="user" id={userId} />,
    ),
  ],
  resource_type: [
    column('Resource type', undefined, ({ resourceType }) => <Text>{resourceType ?? ''}</Text>),
  ],
};

function amountColumns(unit: string): readonly Column<UsageRow>[] {
  return [
    column(`Budgets of projects (${unit})`, 'number', ({ amount }) => formatUnitHours(amount)),
    column(`Budgets of users (${unit})`, 'number', ({ userAmount }) => formatUnitHours(userAmount)),
  ];
}

const COLUMNS: readonly Column<UsageRow>[] = [
  column('Resource hours', 'number', ({ resourceSeconds }) => hoursText(resourceSeconds)),
  column('Leases', 'number', ({ leases }) => leases),
  column('Ended early', 'number', ({ endedEarly }) => endedEarly),
  column('Unused hours', 'number', ({ unusedSeconds }) => hoursText(unusedSeconds)),
];

const SECONDS_PER_HOUR = 3600;

/** Months without usage have no row and no bar. Shows resource hours if nothing is taken from budgets. */
function MonthsChart({ rows, unit }: { readonly rows: readonly UsageRow[]; readonly unit: string }) {
  const isPaid = rows.some(({ amount }) => amount !== 0n);
  const what = isPaid ? `Budgets of projects (${unit})` : 'Resource hours';
  const values = rows.map(({ amount, resourceSeconds }) =>
    isPaid ? unitHours(amount) : Number(resourceSeconds) / SECONDS_PER_HOUR,
  );
  const most = values.indexOf(Math.max(...values));
  const row = rows[most];
  return (
    <Chart
      id="usage-months"
      title="Usage by month"
      description={row === undefined ? '' : `Highest usage: ${monthText(row)}.`}
      times={rows.map(({ from }) => Number(from))}
      unit={isPaid ? unit : 'hours'}
      series={[{ label: what, look: 'used', form: 'bars', values }]}
      timeText={(second) => secondText(BigInt(second)).slice(0, 7)}
    />
  );
}
