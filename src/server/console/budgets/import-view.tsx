/** Importing budgets: the text of a CSV file, what it would change, and the confirmation. */
import { formatUnitHours } from '../../../filter/amount.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { ImportPlan, PlannedLine } from '../../../ledger/budgets/plan.ts';
import { Account, type NameOf } from '../account.tsx';
import { ChangeForm, Field, LongField } from '../fields.tsx';
import { WithNames } from '../known-names.tsx';
import { Message } from '../message.tsx';
import { Table } from '../table.tsx';
import { Text } from '../text.tsx';
import { shownDate } from '../time-scale.ts';

export interface ImportViewProps {
  readonly csv: string;
  readonly reason: string;
  readonly csrf: string;
  readonly unit: string;
  readonly nameOf: NameOf;
  /** What the text would change; `undefined` = nothing was tried yet. */
  readonly plan: ImportPlan | undefined;
  /** Stands for text and plan: the confirmation is about this text, and nothing else. */
  readonly digest: string;
  readonly reasonMistake: string | undefined;
  readonly mistake: string | undefined;
}

/** Longer lists are summed up: the whole file is judged. */
const SHOWN = 300;
const EXAMPLE = 'project_id,user_id,valid_from,valid_until,amount';

export function ImportView(props: ImportViewProps) {
  const { csv, reason, csrf, nameOf, plan, digest, mistake, reasonMistake } = props;
  const isFine = plan !== undefined && plan.mistakes.length === 0 && plan.lines.length > 0;
  return (
    <WithNames nameOf={nameOf}>
      <section>
        {mistake !== undefined && (
          <Message kind="error">
            <Text>{mistake}</Text>
          </Message>
        )}
        {plan !== undefined && <Plan {...props} plan={plan} />}
        <ChangeForm action="/budgets/import" csrf={csrf}>
          <LongField
            name="csv"
            label="Budgets as CSV"
            hint={`The first line names the columns: ${EXAMPLE}. An empty user_id: the whole project's. Dates in UTC.`}
            rows={12}
            value={csv}
            isRequired
          />
          <div data-file-into="csv" />
          <Field
            name="reason"
            label="Reason"
            hint="For the history of each budget."
            value={reason}
            maxLength={1000}
            isRequired
            mistake={reasonMistake}
            hasFocus={reasonMistake !== undefined}
          />
          <input type="hidden" name="digest" value={digest} />
          <p class="buttons">
            <button type="submit" name="do" value="check">
              See what it would change
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
    </WithNames>
  );
}

function Plan({ plan, unit }: ImportViewProps & { readonly plan: ImportPlan }) {
  const { lines, mistakes } = plan;
  const count = (outcome: PlannedLine['outcome']) => lines.filter((line) => line.outcome === outcome).length;
  return (
    <>
      {mistakes.length > 0 ? (
        <Message kind="error">
          Nothing was set:{' '}
          {mistakes.length === 1 ? 'there is a mistake' : `there are ${mistakes.length} mistakes`} in the
          text.
        </Message>
      ) : (
        <Message kind="notice">
          Nothing is set yet. It would set {count('set')} new budgets, change {count('changed')}, and leave{' '}
          {count('unchanged')} as they are.
        </Message>
      )}
      {mistakes.length > 0 && (
        <Table label="Mistakes" head={['Line', 'Column', 'Mistake']} isLong>
          {mistakes.slice(0, SHOWN).map(({ line, field, message }) => (
            <tr>
              <td class="number">{line ?? ''}</td>
              <td>{field !== null && <code>{field}</code>}</td>
              <td class="why">
                <Text>{message}</Text>
              </td>
            </tr>
          ))}
        </Table>
      )}
      {mistakes.length === 0 && lines.length > 0 && (
        <Table
          label="What the import would change"
          head={['Line', 'Change', 'Project', 'Whose', `Budget (${unit})`, 'Before', 'Valid (UTC)']}
          isLong
        >
          {lines.slice(0, SHOWN).map((line) => (
            <PlanRow {...line} />
          ))}
        </Table>
      )}
      {Math.max(lines.length, mistakes.length) > SHOWN && (
        <p class="hint">Only the first {SHOWN} are shown; all of them count.</p>
      )}
    </>
  );
}

const OUTCOMES: Readonly<Record<PlannedLine['outcome'], string>> = {
  set: '+ new',
  changed: '✎ changed',
  unchanged: '= as it is',
};

function PlanRow({ line, outcome, wanted, before }: PlannedLine) {
  const { projectId, userId, amount, validFrom, validUntil } = wanted;
  const date = (second: bigint) => shownDate(second * MICROSECONDS_PER_SECOND);
  return (
    <tr>
      <td class="number">{line}</td>
      <td>{OUTCOMES[outcome]}</td>
      <th scope="row" class="what">
        <Account kind="project" id={projectId} />
      </th>
      <td>{userId === null ? 'Project' : <Account kind="user" id={userId} />}</td>
      <td class="number">{formatUnitHours(amount)}</td>
      <td class="number">
        {before !== undefined && !before.isRemoved && (
          <>
            {formatUnitHours(before.amount)}
            {before.validUntil !== validUntil && <small>until {date(before.validUntil)}</small>}
          </>
        )}
      </td>
      <td class="time">
        {date(validFrom)} to
        <br />
        {date(validUntil)}
      </td>
    </tr>
  );
}
