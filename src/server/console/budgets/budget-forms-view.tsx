/** The forms that set, change and remove a budget. */
import { formatUnitHours } from '../../../filter/amount.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { BudgetView } from '../../../ledger/budgets/view.ts';
import { Account, type NameOf } from '../account.tsx';
import { ChangeForm, Field } from '../fields.tsx';
import { WithNames } from '../known-names.tsx';
import { Message } from '../message.tsx';
import { pathWith } from '../paths.ts';
import { Text } from '../text.tsx';
import { shownDate } from '../time-scale.ts';
import type { BudgetField, BudgetValues, FormMistake } from './budget-form.ts';

interface Common {
  readonly values: BudgetValues;
  readonly mistake: FormMistake | undefined;
  readonly csrf: string;
  readonly unit: string;
  readonly nameOf: NameOf;
}

export interface NewBudgetProps extends Common {
  /** Whether the project is typed; else it is the one of the values. */
  readonly choosesProject: boolean;
  /** Whether it may be the whole project's. */
  readonly maySetProject: boolean;
  /** The project's own budget in force: what a manager may give from. */
  readonly within: BudgetView | undefined;
}

export function NewBudgetView(props: NewBudgetProps) {
  const { values, mistake, csrf, unit, nameOf, choosesProject, maySetProject, within } = props;
  const at = (field: BudgetField) => marks(field, mistake);
  return (
    <WithNames nameOf={nameOf}>
      <section>
        <WholeMistake mistake={mistake} />
        {within !== undefined && (
          <p class="hint">
            The project's budget in force: {formatUnitHours(within.amount)} {unit}, of which{' '}
            {formatUnitHours(within.left, 'down')} are left, from {dateText(within.validFrom)} to{' '}
            {dateText(within.validUntil)}.
          </p>
        )}
        <ChangeForm action="/budgets/new" csrf={csrf}>
          {choosesProject ? (
            <Field
              name="project_id"
              label="Project"
              hint="Its id, or name@domain."
              value={values.project_id}
              isRequired
              {...at('project_id')}
            />
          ) : (
            <p>
              Project{' '}
              <b>
                <Account kind="project" id={values.project_id} />
              </b>
              <input type="hidden" name="project_id" value={values.project_id} />
            </p>
          )}
          <Field
            name="user_id"
            label={maySetProject ? 'User (may be empty)' : 'User'}
            hint={
              maySetProject
                ? 'The id, or name@domain. Empty: the budget is the whole project’s.'
                : 'The id, or name@domain.'
            }
            value={values.user_id}
            isRequired={!maySetProject}
            {...at('user_id')}
          />
          <Terms {...props} hasStart />
          <button type="submit">Set the budget</button>
        </ChangeForm>
      </section>
    </WithNames>
  );
}

function Terms({ values, mistake, unit, hasStart }: Common & { readonly hasStart: boolean }) {
  const at = (field: BudgetField) => marks(field, mistake);
  return (
    <>
      <div class="fields">
        <Field
          name="amount"
          label={`Amount, in ${unit}`}
          hint="A decimal number, such as 50 or 12.5."
          value={values.amount}
          isRequired
          maxLength={30}
          {...at('amount')}
        />
        {hasStart && (
          <Field
            name="valid_from"
            label="Valid from (UTC)"
            type="datetime-local"
            step="1"
            value={values.valid_from}
            isRequired
            {...at('valid_from')}
          />
        )}
        <Field
          name="valid_until"
          label="Valid until (UTC)"
          hint="The first moment that it does not pay for."
          type="datetime-local"
          step="1"
          value={values.valid_until}
          isRequired
          {...at('valid_until')}
        />
      </div>
      <Field
        name="reason"
        label="Reason"
        hint="For the history."
        value={values.reason}
        maxLength={1000}
        isRequired
        {...at('reason')}
      />
    </>
  );
}

export interface ChangeBudgetProps extends Common {
  /** As it is now. */
  readonly budget: BudgetView;
  readonly etag: string;
  /** Whether somebody has changed it since the form was opened. */
  readonly isChanged: boolean;
}

export function ChangeBudgetView(props: ChangeBudgetProps) {
  const { budget, mistake, csrf, nameOf, etag, isChanged } = props;
  return (
    <WithNames nameOf={nameOf}>
      <section>
        {isChanged ? <Changed {...props} /> : <WholeMistake mistake={mistake} />}
        <Facts {...props} />
        <ChangeForm action={`/budgets/${budget.id}`} csrf={csrf}>
          <input type="hidden" name="etag" value={etag} />
          <Terms {...props} hasStart={false} />
          <button type="submit">{isChanged ? 'Change it all the same' : 'Change the budget'}</button>
        </ChangeForm>
        <p>
          <a href={`/budgets/${budget.id}/remove`}>Remove this budget</a>
        </p>
      </section>
    </WithNames>
  );
}

export interface RemoveBudgetProps extends Common {
  readonly budget: BudgetView;
  readonly etag: string;
  readonly isChanged: boolean;
}

export function RemoveBudgetView(props: RemoveBudgetProps) {
  const { budget, mistake, csrf, nameOf, etag, isChanged, values } = props;
  return (
    <WithNames nameOf={nameOf}>
      <section>
        {isChanged ? <Changed {...props} /> : <WholeMistake mistake={mistake} />}
        <p>Is this budget to be removed? What leases were charged to it stays charged.</p>
        <Facts {...props} />
        <ChangeForm action={`/budgets/${budget.id}/remove`} csrf={csrf}>
          <input type="hidden" name="etag" value={etag} />
          <Field
            name="reason"
            label="Reason"
            hint="For the history."
            value={values.reason}
            maxLength={1000}
            isRequired
            {...marks('reason', mistake)}
          />
          <p class="buttons">
            <button type="submit">Remove the budget</button>
            <a href={pathWith('/budgets', { project: budget.projectId })}>Keep it</a>
          </p>
        </ChangeForm>
      </section>
    </WithNames>
  );
}

/** Somebody else was faster: what they did is shown, and nothing of theirs is overwritten unasked. */
function Changed({ budget }: { readonly budget: BudgetView }) {
  return (
    <Message kind="error">
      Nothing was changed: <Text>{budget.changedBy}</Text> has changed this budget meanwhile
      {budget.reason !== null && (
        <>
          {' ('}
          <Text>{budget.reason}</Text>)
        </>
      )}
      . Below is how it is now.
    </Message>
  );
}

function Facts({ budget, unit }: { readonly budget: BudgetView; readonly unit: string }) {
  const { projectId, userId, amount, taken, left, validFrom, validUntil, changedAt, changedBy } = budget;
  return (
    <dl class="facts">
      <dt>Project</dt>
      <dd>
        <Account kind="project" id={projectId} />
      </dd>
      <dt>Whose</dt>
      <dd>{userId === null ? 'the whole project' : <Account kind="user" id={userId} />}</dd>
      <dt>Budget now</dt>
      <dd>
        {formatUnitHours(amount)} {unit}, {formatUnitHours(taken)} taken, {formatUnitHours(left, 'down')} left
      </dd>
      <dt>Valid (UTC)</dt>
      <dd>
        {dateText(validFrom)} to {dateText(validUntil)}
      </dd>
      <dt>Set last</dt>
      <dd>
        {shownDate(changedAt - (changedAt % MICROSECONDS_PER_SECOND))} by <Text>{changedBy}</Text>
      </dd>
    </dl>
  );
}

/** A mistake that no field has. */
function WholeMistake({ mistake }: { readonly mistake: FormMistake | undefined }) {
  return mistake === undefined ? null : (
    <Message kind="error">
      {mistake.field === undefined ? (
        <>
          Nothing was changed: <Text>{mistake.message}</Text>
        </>
      ) : (
        'Nothing was changed: one field needs another value.'
      )}
    </Message>
  );
}

function marks(field: BudgetField, mistake: FormMistake | undefined) {
  const isWrong = mistake?.field === field;
  return { mistake: isWrong ? mistake.message : undefined, hasFocus: isWrong };
}

function dateText(second: bigint): string {
  return shownDate(second * MICROSECONDS_PER_SECOND);
}
