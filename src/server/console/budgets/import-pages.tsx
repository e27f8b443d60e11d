/** Imports budgets from CSV: first a preview of the changes, then the confirmation of exactly these. */

import { createHash } from 'node:crypto';
import { formatUnitHours } from '../../../filter/claim.ts';
import type { ImportPlan, PlannedLine } from '../../../ledger/budgets/plan.ts';
import { reasonOf } from '../../budgets/change-budgets.ts';
import type { ConsolePage, PageAnswer, PageRequest } from '../page.ts';
import { ChangeForm, type FieldEntry, Fields } from '../parts/fields.tsx';
import { Account, BudgetOwner, type Column, column, Message, Span, Table, Text } from '../parts/parts.tsx';
import { shownSecond } from '../parts/time-scale.ts';
import { isCorrectable, REASON } from './form-parts.tsx';

/** In bytes, as forms encode them: more than a thousand budgets. */
const FORM_LIMIT = 2_097_152;
const page = { path: '/budgets/import', action: 'import-budgets' } as const;

export const IMPORT_PAGES: readonly ConsolePage[] = [
  { ...page, method: 'GET', answer: async (request) => shown(request, {}) },
  {
    ...page,
    method: 'POST',
    formLimit: FORM_LIMIT,
    answer: async (request) => {
      const { form } = request;
      // Browsers send every line break as CRLF.
      const csv = (form.get('csv') ?? '').replaceAll('\r\n', '\n');
      const reason = form.get('reason') ?? '';
      try {
        return await imported(request, csv, reason, form.get('do') === 'import');
      } catch (thrown) {
        if (!isCorrectable(thrown)) {
          throw thrown;
        }
        const { status, message: mistake, field } = thrown;
        return shown(request, { csv, reason, status, mistake, field });
      }
    },
  },
];

async function imported(
  request: PageRequest,
  csv: string,
  reason: string,
  isConfirmed: boolean,
): Promise<PageAnswer> {
  const { readBudgetCsv } = await import('../../../ledger/budgets/csv.ts');
  const { importFor } = await import('../../budgets/budget-importing.ts');
  reasonOf(reason);
  const file = await readBudgetCsv(csv);
  const plan = await importFor(request, file, { isDryRun: true, reason });
  const digest = digestOf(csv, plan);
  const isFine = plan.mistakes.length === 0 && plan.lines.length > 0;
  if (!isConfirmed || !isFine) {
    const mistake =
      plan.lines.length + plan.mistakes.length === 0 ? 'The text contains no budget.' : undefined;
    return shown(request, { csv, reason, plan, digest, mistake, status: isFine ? 200 : 422 });
  }
  if (request.form.get('digest') !== digest) {
    const mistake =
      'Nothing was set: the text, or a budget that it would change, has changed since the preview. Look at the preview again.';
    return shown(request, { csv, reason, plan, digest, mistake, status: 412 });
  }
  const done = await importFor(request, file, { isDryRun: false, reason });
  if (done.mistakes.length > 0) {
    return shown(request, { csv, reason, plan: done, digest: '', status: 409 });
  }
  return { redirect: '/budgets?done=imported' };
}

/** Digest of the text and its changes, so that exactly what was shown is confirmed. */
function digestOf(csv: string, { lines }: ImportPlan): string {
  const hash = createHash('sha256').update(csv);
  for (const { line, outcome, before } of lines) {
    hash.update(
      `\n${line} ${outcome} ${before?.id} ${before?.amount} ${before?.validUntil} ${before?.isRemoved}`,
    );
  }
  return hash.digest('base64url');
}

/** Maximum rows shown; longer lists are summed up. The whole file is checked. */
const SHOWN = 300;
const EXAMPLE = 'project_id,user_id,valid_from,valid_until,amount';
const CSV: FieldEntry = {
  name: 'csv',
  label: 'Budgets as CSV',
  rows: 12,
  isRequired: true,
  hint: `The first line names the columns: ${EXAMPLE}. An empty user_id means the whole project. Dates in UTC.`,
};

interface Shown {
  readonly status?: number;
  readonly csv?: string;
  readonly reason?: string;
  /** What the text would change; `undefined` = no preview yet. */
  readonly plan?: ImportPlan;
  /** Digest of text and plan: the confirmation is only for these. */
  readonly digest?: string;
  readonly mistake?: string | undefined;
  /** Of the mistake: `reason`, or the text. */
  readonly field?: string | undefined;
}

function shown({ csrf, unit }: PageRequest, said: Shown): PageAnswer {
  const { csv = '', reason = '', plan, digest = '', mistake, field, status = 200 } = said;
  const isOfReason = mistake !== undefined && field === 'reason';
  const isFine = plan !== undefined && plan.mistakes.length === 0 && plan.lines.length > 0;
  return {
    status,
    title: 'Import budgets',
    main: (
      <section>
        {mistake !== undefined && !isOfReason && (
          <Message kind="error">
            <Text>{mistake}</Text>
          </Message>
        )}
        {plan !== undefined && <Plan {...plan} unit={unit} />}
        <ChangeForm action={page.path} csrf={csrf}>
          <Fields fields={[CSV]} values={{ csv }} />
          <div data-file-into="csv" />
          <Fields
            fields={[{ ...REASON, hint: 'For the history of each budget.' }]}
            values={{ reason }}
            mistakes={new Map(isOfReason ? [['reason', mistake]] : [])}
          />
          <input type="hidden" name="digest" value={digest} />
          <p class="buttons">
            <button type="submit" name="do" value="check">
              Preview
            </button>
            {isFine && (
              <button type="submit" name="do" value="import">
                Set all of these budgets
              </button>
            )}
            <a href="/budgets">Back to all budgets</a>
          </p>
        </ChangeForm>
      </section>
    ),
  };
}

function Plan({ lines, mistakes, unit }: ImportPlan & { readonly unit: string }) {
  const count = (outcome: PlannedLine['outcome']) => lines.filter((line) => line.outcome === outcome).length;
  return (
    <>
      {mistakes.length > 0 ? (
        <>
          <Message kind="error">
            Nothing was set:{' '}
            {mistakes.length === 1 ? 'there is a mistake' : `there are ${mistakes.length} mistakes`} in the
            text.
          </Message>
          <Table label="Mistakes" columns={MISTAKE_COLUMNS} rows={mistakes.slice(0, SHOWN)} isLong />
        </>
      ) : (
        <>
          <Message kind="notice">
            Nothing is set yet. It would set {count('set')} new budgets, change {count('changed')}, and leave{' '}
            {count('unchanged')} unchanged.
          </Message>
          {lines.length > 0 && (
            <Table
              label="Preview of the import"
              columns={planColumns(unit)}
              rows={lines.slice(0, SHOWN)}
              named={2}
              isLong
            />
          )}
        </>
      )}
      {Math.max(lines.length, mistakes.length) > SHOWN && (
        <p class="hint">Only the first {SHOWN} are shown.</p>
      )}
    </>
  );
}

const OUTCOMES: Readonly<Record<PlannedLine['outcome'], string>> = {
  set: '+ new',
  changed: '✎ changed',
  unchanged: '= unchanged',
};

const MISTAKE_COLUMNS: readonly Column<ImportPlan['mistakes'][number]>[] = [
  column('Line', 'number', ({ line }) => line ?? ''),
  column('Column', undefined, ({ field }) => field !== null && <code>{field}</code>),
  column('Mistake', 'why', ({ message }) => <Text>{message}</Text>),
];

function planColumns(unit: string): readonly Column<PlannedLine>[] {
  return [
    column('Line', 'number', ({ line }) => line),
    column('Change', undefined, ({ outcome }) => OUTCOMES[outcome]),
    column('Project', 'what', ({ wanted }) => <Account kind="project" id={wanted.projectId} />),
    column('Owner', undefined, ({ wanted }) => <BudgetOwner userId={wanted.userId} />),
    column(`Budget (${unit})`, 'number', ({ wanted }) => formatUnitHours(wanted.amount)),
    column(
      'Before',
      'number',
      ({ wanted, before }) =>
        before !== undefined &&
        !before.isRemoved && (
          <>
            {formatUnitHours(before.amount)}
            {before.validUntil !== wanted.validUntil && <small>until {shownSecond(before.validUntil)}</small>}
          </>
        ),
    ),
    column('Valid (UTC)', 'time', ({ wanted }) => <Span from={wanted.validFrom} until={wanted.validUntil} />),
  ];
}
