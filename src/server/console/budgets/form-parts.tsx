/** What the forms about budgets share: their fields, and a page that shows a form and one that accepts it. */
import type { ComponentProps } from 'preact';
import { formatInstant, MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import { ApiError } from '../../api/route.ts';
import type { Action } from '../../users/caller.ts';
import { type ConsolePage, type PageRequest, pathWith, type ShownPage } from '../page.ts';
import { type FieldEntry, Fields } from '../parts/fields.tsx';
import { Account, Message, Text } from '../parts/parts.tsx';

/** Names of fields, as in the API. */
const BUDGET_FIELDS = ['project_id', 'user_id', 'amount', 'valid_from', 'valid_until', 'reason'] as const;
type BudgetValues = Readonly<Record<(typeof BUDGET_FIELDS)[number], string>>;

/** Maximum characters of a field: longer texts are truncated, and validation rejects them. */
const LONGEST = 2000;

export function budgetValues(form: URLSearchParams): BudgetValues {
  return Object.fromEntries(
    BUDGET_FIELDS.map((name) => [name, (form.get(name) ?? '').trim().slice(0, LONGEST)]),
  ) as unknown as BudgetValues;
}

/** An error that the caller can correct: a mistake in the form, or a conflict with another change. */
export function isCorrectable(thrown: unknown): thrown is ApiError {
  return thrown instanceof ApiError && [400, 409, 412, 422].includes(thrown.status);
}

/** A form that was not accepted. */
export interface Sent {
  readonly values: BudgetValues;
  readonly status: number;
  readonly message: string;
  /** `undefined` = the whole form. */
  readonly field: keyof BudgetValues | undefined;
}

/** A page with a form, and its submission, each with its right. `work` resolves to where to redirect. */
export function formPages(
  path: string,
  actions: Readonly<Record<ConsolePage['method'], Action>>,
  show: (request: PageRequest, sent: Sent | undefined) => Promise<ShownPage>,
  work: (request: PageRequest, values: BudgetValues) => Promise<string>,
): readonly ConsolePage[] {
  return [
    { path, method: 'GET', action: actions.GET, answer: (request) => show(request, undefined) },
    {
      path,
      method: 'POST',
      action: actions.POST,
      answer: async (request) => {
        const values = budgetValues(request.form);
        try {
          return { redirect: await work(request, values) };
        } catch (thrown) {
          if (!isCorrectable(thrown)) {
            throw thrown;
          }
          const { status, message } = thrown;
          const field = BUDGET_FIELDS.find((name) => name === thrown.field);
          return { ...(await show(request, { values, status, message, field })), status };
        }
      },
    },
  ];
}

export function fieldsOf(values: BudgetValues, sent: Sent | undefined) {
  return { values, mistakes: new Map(sent?.field === undefined ? [] : [[sent.field, sent.message]]) };
}

export function WholeMistake({ sent }: { readonly sent: Sent | undefined }) {
  return sent === undefined ? null : (
    <Message kind="error">
      {sent.field === undefined ? (
        <>
          Nothing was changed: <Text>{sent.message}</Text>
        </>
      ) : (
        'Nothing was changed: one field needs another value.'
      )}
    </Message>
  );
}

const PROJECT = {
  name: 'project_id',
  label: 'Project',
  hint: 'Its id, or name@domain.',
  isRequired: true,
};

interface ProjectFieldProps {
  /** Otherwise it is the project of the page. */
  readonly isTyped: boolean;
  readonly fields: Omit<ComponentProps<typeof Fields>, 'fields'> & { readonly values: BudgetValues };
}

export function ProjectField({ isTyped, fields }: ProjectFieldProps) {
  const { project_id: id } = fields.values;
  return isTyped ? (
    <Fields fields={[PROJECT]} {...fields} />
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

export const FROM: FieldEntry = {
  name: 'valid_from',
  label: 'Valid from (UTC)',
  type: 'datetime-local',
  step: '1',
  isRequired: true,
};
export const UNTIL: FieldEntry = {
  ...FROM,
  name: 'valid_until',
  label: 'Valid until (UTC)',
  hint: 'The budget is no longer valid at this time.',
};
export const REASON: FieldEntry = {
  name: 'reason',
  label: 'Reason',
  hint: 'For the history.',
  maxLength: 1000,
  isRequired: true,
};

export function amountField(unit: string, label = 'Amount'): FieldEntry {
  return {
    name: 'amount',
    label: `${label}, in ${unit}`,
    maxLength: 30,
    isRequired: true,
    hint: 'A decimal number, such as 50 or 12.5.',
  };
}

/** For users with several projects: the form shows the data of the chosen one. */
export function ChooseProject({ projects, path }: { projects: readonly string[]; path: string }) {
  return (
    <section>
      <p>Choose a project.</p>
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

/** In the format of `datetime-local` fields; without seconds if they are 0. */
export function local(second: bigint): string {
  return formatInstant(second * MICROSECONDS_PER_SECOND)
    .replace(/Z$/, '')
    .replace(/(T\d\d:\d\d):00$/, '$1');
}
