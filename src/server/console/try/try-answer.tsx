/** A page with a form for a lease or a change, and the estimate: verdict, costs, suggestions, command. */

import type { ComponentChildren } from 'preact';
import { budgetAccount, budgetIdOf } from '../../../filter/claim.ts';
import type { CreateRequest, Lease, UpdateRequest } from '../../../lease/lease.ts';
import type { BudgetView } from '../../../ledger/budgets/view.ts';
import { type ShownCharge, type ShownEstimate, shownEstimate } from '../../estimate/estimate-lease.ts';
import { FILTER_COLUMNS } from '../decisions/decision-table.tsx';
import type { PageAnswer, PageRequest } from '../page.ts';
import { ChangeForm } from '../parts/fields.tsx';
import { type Column, column, Message, Outcome, Section, Table, Text } from '../parts/parts.tsx';
import { shownSecond } from '../parts/time-scale.ts';

type FormFields = readonly (readonly [name: string, value: string])[];

interface Wanted {
  readonly request: CreateRequest | UpdateRequest;
  readonly what: 'lease' | 'change';
  readonly action: string;
  /** How to request it from Blazar, if it is allowed. */
  readonly howToGet: ComponentChildren;
  readonly fieldsOf: (suggested: Lease) => FormFields;
}

interface Tried extends Wanted {
  readonly estimate: ShownEstimate<FormFields>;
  readonly csrf: string;
  readonly unit: string;
  readonly accountText: (account: string) => string;
}

/** Runs all filters on the request. @throws InvalidRequestError */
export async function tried(request: PageRequest, wanted: Wanted): Promise<Tried> {
  const { caller, generation, deadline, requestId, csrf, unit } = request;
  const asking = { generation, requestId, deadline, forMember: caller.kind === 'member' };
  const estimate = await shownEstimate(asking, wanted.request, wanted.fieldsOf);
  const accountText = await chargedTo(request, wanted.request.context.project_id, estimate);
  return { ...wanted, estimate, csrf, unit, accountText };
}

interface TryPage {
  readonly title: string;
  /** The heading of the form. */
  readonly asked: string;
  readonly about?: ComponentChildren;
  readonly form: ComponentChildren;
}

export interface Shown {
  readonly status?: number;
  /** `undefined` = no estimate yet. */
  readonly answer?: Tried;
  /** What a link could not fill in. */
  readonly notice?: string | undefined;
  /** Why there is no estimate, apart from mistakes in fields. */
  readonly error?: string;
  readonly mistakes?: ReadonlyMap<string, string>;
}

export function tryPage({ title, asked, about, form }: TryPage, shown: Shown): PageAnswer {
  const { answer, notice, error, mistakes } = shown;
  const size = mistakes?.size ?? 0;
  const verdict = answer && (answer.estimate.allowed ? 'Allowed' : 'Refused');
  return {
    status: shown.status ?? (size > 0 || error !== undefined ? 400 : 200),
    title: verdict === undefined ? title : `${title}: ${verdict}`,
    main: (
      <>
        {about}
        {error !== undefined && <Message kind="error">{error}</Message>}
        {notice !== undefined && <Message kind="notice">{notice}</Message>}
        {size > 0 && (
          <Message kind="error">
            {size === 1 ? 'One field needs' : `${size} fields need`} another value: see below.
          </Message>
        )}
        {answer !== undefined && <TryAnswer {...answer} />}
        {answer?.estimate.notes.map((note) => (
          <p class="hint">{note}</p>
        ))}
        <Section id="form" title={asked}>
          <p class="hint">
            Every filter is run, as for a real request. Nothing is recorded. All times are in UTC.
          </p>
          {form}
        </Section>
      </>
    ),
  };
}

function TryAnswer(props: Tried) {
  const { estimate, what, howToGet } = props;
  const { allowed, outcome, filter, message, filters, charges, searched } = estimate;
  return (
    <section aria-labelledby="answer" class={`verdict ${allowed ? 'allowed' : 'rejected'}`} tabIndex={-1}>
      <h2 id="answer">
        <Outcome outcome={allowed ? 'allowed' : outcome} /> This {what} would be{' '}
        {allowed ? 'allowed now' : 'refused'}
        {!allowed && filter !== null && (
          <>
            {' by '}
            <Text>{filter}</Text>
          </>
        )}
      </h2>
      {message !== null && (
        <p>
          <Text>{message}</Text>
        </p>
      )}
      {outcome === 'exempt' && <p>The project is exempt: no filter is run on its leases.</p>}
      <p class="hint">
        Nothing was recorded. Other leases may use up the limits before you request it from Blazar.
      </p>
      {allowed && (
        <>
          <h3>How to request it</h3>
          {howToGet}
        </>
      )}
      {charges.length > 0 && <Charges {...props} />}
      {!allowed && <Suggestions {...props} />}
      {searched !== null && (
        <p class="hint">
          <Text>{searched}</Text>
        </p>
      )}
      {filters.length > 0 && (
        <details>
          <summary>Verdicts of the filters</summary>
          <Table label="Verdicts of the filters" columns={FILTER_COLUMNS} rows={filters} />
        </details>
      )}
    </section>
  );
}

const PRECISION: Readonly<Record<ShownCharge['precision'], string>> = {
  exact: '',
  'at-most': 'at most ',
  about: 'about ',
};

function Charges({ estimate: { charges }, what, unit, accountText }: Tried) {
  const columns: readonly Column<ShownCharge>[] = [
    column('Account', undefined, ({ filter, account, kind }) => (
      <>
        <Text>{accountText(account)}</Text>
        <small>
          <Text>{filter}</Text>
          {kind === 'usage' && ` · ${unit}`}
        </small>
      </>
    )),
    column(
      what === 'change' ? 'Additional cost' : 'Cost',
      'number',
      ({ precision, amount }) => PRECISION[precision] + amount,
    ),
    column('Limit', 'number', ({ limit }) => limit ?? 'no limit'),
    column('Taken before', 'number', ({ taken }) => taken),
    column('Left afterwards', 'number', ({ left }) =>
      left?.startsWith('-') ? <b class="change-removed">{left.slice(1)} missing</b> : (left ?? 'no limit'),
    ),
  ];
  return <Table label="Cost" columns={columns} rows={charges} />;
}

function Suggestions({ estimate, action, csrf, unit, accountText }: Tried) {
  const { suggestions } = estimate;
  return suggestions.length === 0 ? null : (
    <>
      <h3>Leases that would be allowed now</h3>
      <ol class="suggestions">
        {suggestions.map(({ text, lease, charges }, index) => (
          <li>
            <p>
              <Text>{text}</Text>
            </p>
            {charges.length > 0 && (
              <small>
                {charges
                  .filter(({ kind }) => kind === 'usage')
                  .map(
                    ({ account, amount, precision, left }) =>
                      `${accountText(account)}: ${PRECISION[precision]}${amount} ${unit}${
                        left === null ? '' : `, ${left} left afterwards`
                      }`,
                  )
                  .join('; ')}
              </small>
            )}
            <ChangeForm action={action} csrf={csrf}>
              {lease.map(([name, value]) => (
                <input type="hidden" name={name} value={value} />
              ))}
              <button type="submit" name="do" value="try">
                Fill in suggestion {index + 1}
              </button>
            </ChangeForm>
          </li>
        ))}
      </ol>
    </>
  );
}

/** More than the budgets that a lease is charged to. */
const MOST = 20;

/** `Budget of the project, 2026-01-01 to 2027-01-01`; other accounts are shown by their id. */
async function chargedTo(
  { generation, deadline }: Pick<PageRequest, 'generation' | 'deadline'>,
  projectId: string,
  { charges, suggestions }: ShownEstimate,
): Promise<(account: string) => string> {
  const { ledger } = generation;
  const accounts = [...charges, ...suggestions.flatMap((one) => one.charges)].map(({ account }) => account);
  const ids = new Set(accounts.flatMap((account) => budgetIdOf(account) ?? []));
  const known = new Map<string, string>();
  if (ledger !== undefined && ids.size > 0) {
    const { budgetById } = await import('../../../ledger/budgets/view.ts');
    await ledger.read(async (opened) => {
      for (const id of [...ids].slice(0, MOST)) {
        const budget = await budgetById(opened, id, deadline);
        if (budget?.projectId === projectId) {
          known.set(budgetAccount(budget), budgetText(budget));
        }
      }
    });
  }
  return (account) => known.get(account) ?? otherText(account);
}

function budgetText({ userId, validFrom, validUntil }: BudgetView): string {
  const whose = userId === null ? 'project' : 'user';
  return `Budget of the ${whose}, ${shownSecond(validFrom)} to ${shownSecond(validUntil)}`;
}

function otherText(account: string): string {
  if (account.startsWith('usage_budget/uncovered')) {
    return account.includes('/user/')
      ? 'Time without a budget of the user'
      : 'Time without a budget of the project';
  }
  return account;
}
