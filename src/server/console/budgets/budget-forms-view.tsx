/** The forms that set, change and remove a budget. */

import type { ComponentProps } from 'preact';
import { formatUnitHours } from '../../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { BudgetView } from '../../../ledger/budgets/view.ts';
import { pathWith } from '../page.ts';
import { ChangeForm, type FieldEntry, Fields } from '../parts/fields.tsx';
import { Account, type Fact, Facts, Message, Text, Time, Whose } from '../parts/parts.tsx';
import { shownSecond, toSecond } from '../parts/time-scale.ts';

/** Names of fields, as in the API. */
export const BUDGET_FIELDS = [
  'project_id',
  'user_id',
  'amount',
  'valid_from',
  'valid_until',
  'reason',
] as const;
type BudgetField = (typeof BUDGET_FIELDS)[number];
export type BudgetValues = Readonly<Record<BudgetField, string>>;

export interface FormMistake {
  /** `undefined` = the whole form. */
  readonly field: BudgetField | undefined;
  readonly message: string;
}

interface Common {
  readonly values: BudgetValues;
  readonly mistake: FormMistake | undefined;
  readonly csrf: string;
  readonly unit: string;
}

interface NewBudgetProps extends Common {
  /** Whether project budgets are allowed, and the project is entered; otherwise it is in the values. */
  readonly maySetProject: boolean;
  /** The project's own budget in force, which limits what a manager may set. */
  readonly within: BudgetView | undefined;
}

const PROJECT: FieldEntry = {
  name: 'project_id',
  label: 'Project',
  hint: 'Its id, or name@domain.',
  isRequired: true,
};
interface ProjectFieldProps {
  /** Otherwise it is the project of the page. */
  readonly isTyped: boolean;
  readonly id: string;
  readonly sent: Omit<ComponentProps<typeof Fields>, 'fields'>;
}

/** The project that owns the budget. */
export function ProjectField({ isTyped, id, sent }: ProjectFieldProps) {
  return isTyped ? (
    <Fields fields={[PROJECT]} {...sent} />
  ) : (
    <p>
      Project{' '}
      <b>
        <Account kind="project" id={id} />
      </b>
      <input type="hidden" name="project_id" value={id} />
    </p>
  );
}

const FROM: FieldEntry = {
  name: 'valid_from',
  label: 'Valid from (UTC)',
  type: 'datetime-local',
  step: '1',
  isRequired: true,
};
export const UNTIL: FieldEntry = {
  name: 'valid_until',
  label: 'Valid until (UTC)',
  type: 'datetime-local',
  step: '1',
  isRequired: true,
  hint: 'The first moment that it does not pay for.',
};
export const REASON: FieldEntry = {
  name: 'reason',
  label: 'Reason',
  hint: 'For the history.',
  maxLength: 1000,
  isRequired: true,
};

function userField(maySetProject: boolean): FieldEntry {
  return {
    name: 'user_id',
    label: maySetProject ? 'User (may be empty)' : 'User',
    hint: maySetProject
      ? 'The id, or name@domain. Empty: the budget is the whole project’s.'
      : 'The id, or name@domain.',
    isRequired: !maySetProject,
  };
}

export function amountField(unit: string): FieldEntry {
  return {
    name: 'amount',
    label: `Amount, in ${unit}`,
    maxLength: 30,
    isRequired: true,
    hint: 'A decimal number, such as 50 or 12.5.',
  };
}

export function NewBudgetView(props: NewBudgetProps) {
  const { values, mistake, csrf, unit, maySetProject, within } = props;
  const sent = { values, mistakes: mistakesOf(mistake) };
  return (
    <section>
      <WholeMistake mistake={mistake} />
      {within !== undefined && (
        <p class="hint">
          The project's budget in force: {formatUnitHours(within.amount)} {unit}, of which{' '}
          {formatUnitHours(within.left, 'down')} are left, from {shownSecond(within.validFrom)} to{' '}
          {shownSecond(within.validUntil)}.
        </p>
      )}
      <ChangeForm action="/budgets/new" csrf={csrf}>
        <ProjectField isTyped={maySetProject} sent={sent} id={values.project_id} />
        <Fields fields={[userField(maySetProject)]} {...sent} />
        <div class="fields">
          <Fields fields={[amountField(unit), FROM, UNTIL]} {...sent} />
        </div>
        <Fields fields={[REASON]} {...sent} />
        <button type="submit">Set the budget</button>
      </ChangeForm>
    </section>
  );
}

interface EditBudgetProps extends Common {
  readonly isRemoval: boolean;
  /** The current budget. */
  readonly budget: BudgetView;
  readonly etag: string;
  /** Whether another user has changed it since the form was opened. */
  readonly isChanged: boolean;
}

export function EditBudgetView(props: EditBudgetProps) {
  const { isRemoval, budget, values, mistake, csrf, unit, etag, isChanged } = props;
  const sent = { values, mistakes: mistakesOf(mistake) };
  const path = `/budgets/${budget.id}`;
  return (
    <section>
      {isChanged ? <Changed {...props} /> : <WholeMistake mistake={mistake} />}
      {isRemoval && <p>Remove this budget? What was charged to it stays charged.</p>}
      <Facts facts={factsOf(budget, unit)} />
      <ChangeForm action={isRemoval ? `${path}/remove` : path} csrf={csrf}>
        {/* A text field: "back" does not restore fields of type hidden. */}
        <input name="etag" value={etag} hidden />
        {!isRemoval && (
          <div class="fields">
            <Fields fields={[amountField(unit), UNTIL]} {...sent} />
          </div>
        )}
        <Fields fields={[REASON]} {...sent} />
        {isRemoval ? (
          <p class="buttons">
            <button type="submit">Remove the budget</button>
            <a href={pathWith('/budgets', { project: budget.projectId })}>Keep it</a>
          </p>
        ) : (
          <button type="submit">{isChanged ? 'Change it all the same' : 'Change the budget'}</button>
        )}
      </ChangeForm>
      {!isRemoval && (
        <p>
          <a href={`${path}/remove`}>Remove this budget</a>
        </p>
      )}
    </section>
  );
}

/** Another user changed the budget first: shows that change, which is not overwritten without asking. */
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

function factsOf(budget: BudgetView, unit: string): Fact[] {
  const { projectId, userId, amount, taken, left, validFrom, validUntil, changedAt, changedBy } = budget;
  return [
    ['Project', <Account kind="project" id={projectId} />],
    ['Whose', <Whose userId={userId} project="the whole project" />],
    [
      'Budget now',
      `${formatUnitHours(amount)} ${unit}, ${formatUnitHours(taken)} taken, ${formatUnitHours(left, 'down')} left`,
    ],
    [
      'Valid (UTC)',
      <>
        <Time at={validFrom * MICROSECONDS_PER_SECOND} /> to{' '}
        <Time at={validUntil * MICROSECONDS_PER_SECOND} />
      </>,
    ],
    [
      'Set last',
      <>
        <Time at={toSecond(changedAt)} /> by <Text>{changedBy}</Text>
      </>,
    ],
  ];
}

/** A mistake that belongs to no field. */
export function WholeMistake({ mistake }: { readonly mistake: FormMistake | undefined }) {
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

export function mistakesOf(mistake: FormMistake | undefined): ReadonlyMap<string, string> {
  return new Map(mistake?.field === undefined ? [] : [[mistake.field, mistake.message]]);
}

/** For users with several projects: the form shows the data of the chosen one. */
export function ChooseProject({
  projects,
  path,
}: {
  readonly projects: readonly string[];
  readonly path: string;
}) {
  return (
    <section>
      <p>In which project?</p>
      <ul>
        {projects.map((project) => (
          <li>
            <a href={pathWith(path, { project })}>
              <Account kind="project" id={project} />
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
