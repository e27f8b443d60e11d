/** The answer to a form, in plain words: allowed or not, what it costs, what would be allowed, and how to get it. */

import type { ComponentChildren } from 'preact';
import type { Estimate, EstimatedCharge } from '../../../enforcement/estimate/contract.ts';
import { type Amount, budgetAccount, formatUnitHours } from '../../../filter/claim.ts';
import type { Outcome as FilterAnswer } from '../../../filter/verdict.ts';
import type { BudgetView } from '../../../ledger/budgets/view.ts';
import { chargeText } from '../../estimate/estimate-lease.ts';
import type { PageRequest } from '../page.ts';
import { ChangeForm } from '../parts/fields.tsx';
import { type Column, FilterName, Message, Outcome, Table, Text } from '../parts/parts.tsx';
import { shownSecond } from '../parts/time-scale.ts';

/** The fields of a form: name and value. */
export type FormFields = readonly (readonly [name: string, value: string])[];

export interface TryAnswerProps {
  readonly estimate: Estimate;
  /** What was asked about. */
  readonly what: 'lease' | 'change';
  /** How to get it from Blazar, once it is allowed. */
  readonly howToGet: ComponentChildren;
  /** The page of the form. */
  readonly action: string;
  /** For each suggestion, the form that it makes of the one that was sent. */
  readonly wishes: readonly FormFields[];
  readonly csrf: string;
  readonly unit: string;
  /** What accounts of the ledger stand for, for people. */
  readonly accountText: (account: string) => string;
}

export function TryAnswer(props: TryAnswerProps) {
  const { estimate, what, howToGet, unit, accountText } = props;
  const { decision, charges, searched } = estimate;
  const { allowed, failed, exempt, filter, message, outcomes, changed } = decision;
  return (
    <section aria-labelledby="answer" class={`verdict ${allowed ? 'allowed' : 'rejected'}`} tabIndex={-1}>
      <h2 id="answer">
        <Outcome outcome={allowed ? 'allowed' : failed ? 'failed' : 'rejected'} /> This {what} would be{' '}
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
      {exempt && <p>The project is exempt: no filter is asked about its leases.</p>}
      {allowed && changed && <Message kind="notice">Filters would change the lease.</Message>}
      <p class="hint">
        Nothing was recorded. Other leases may take what is left before you ask Blazar for it.
      </p>
      {allowed && (
        <>
          <h3>How to get it</h3>
          {howToGet}
        </>
      )}
      {charges.length > 0 && <Charges {...{ charges, what, unit, accountText }} />}
      {!allowed && <Suggestions {...props} />}
      {searched !== null && (
        <p class="hint">
          <Text>{searched}</Text>
        </p>
      )}
      {outcomes.length > 0 && <Filters outcomes={outcomes} />}
    </section>
  );
}

interface ChargesProps extends Pick<TryAnswerProps, 'what' | 'unit' | 'accountText'> {
  readonly charges: readonly EstimatedCharge[];
}

const PRECISION: Readonly<Record<EstimatedCharge['precision'], string>> = {
  exact: '',
  'at-most': 'at most ',
  about: 'about ',
};

function Charges({ charges, what, unit, accountText }: ChargesProps) {
  return (
    <>
      <h3>Cost, and what is left after it</h3>
      <Table
        label="Cost"
        columns={[
          [
            'From',
            undefined,
            ({ filter, account, kind }) => (
              <>
                <Text>{accountText(account)}</Text>
                <small>
                  <Text>{filter}</Text>
                  {kind === 'usage' && ` · ${unit}`}
                </small>
              </>
            ),
          ],
          [
            what === 'change' ? 'It takes more' : 'It takes',
            'number',
            (charge) => (
              <>
                {PRECISION[charge.precision]}
                {amountOf(charge, charge.amount)}
              </>
            ),
          ],
          ['Limit', 'number', (charge) => amountOf(charge, charge.limit)],
          ['Taken before', 'number', (charge) => amountOf(charge, charge.taken)],
          ['Left after it', 'number', leftAfter],
        ]}
        rows={charges}
        rowProps={({ left }) => ({ class: left !== null && left < 0n ? 'short' : undefined })}
      />
    </>
  );
}

function amountOf({ kind }: EstimatedCharge, value: Amount | null, rounding: 'up' | 'down' = 'up'): string {
  return value === null ? 'no limit' : chargeText(kind, value, rounding);
}

function leftAfter(charge: EstimatedCharge) {
  const { left } = charge;
  return left !== null && left < 0n ? (
    <b class="change-removed">{amountOf(charge, -left)} missing</b>
  ) : (
    amountOf(charge, left, 'down')
  );
}

function Suggestions({ estimate, action, wishes, csrf, unit, accountText }: TryAnswerProps) {
  const { suggestions } = estimate;
  if (suggestions.length === 0) {
    return null;
  }
  return (
    <>
      <h3>What would be allowed now</h3>
      <ol class="suggestions">
        {suggestions.map(({ text, charges }, index) => {
          const fields = wishes[index];
          return (
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
                        `${accountText(account)}: ${PRECISION[precision]}${formatUnitHours(amount)} ${unit}${
                          left === null ? '' : `, ${formatUnitHours(left, 'down')} left after it`
                        }`,
                    )
                    .join('; ')}
                </small>
              )}
              {fields !== undefined && (
                <ChangeForm action={action} csrf={csrf}>
                  {fields.map(([name, value]) => (
                    <input type="hidden" name={name} value={value} />
                  ))}
                  <button type="submit" name="do" value="try">
                    Fill in {changeText(index)}
                  </button>
                </ChangeForm>
              )}
            </li>
          );
        })}
      </ol>
    </>
  );
}

function changeText(index: number): string {
  return `suggestion ${index + 1}`;
}

function Filters({ outcomes }: { readonly outcomes: readonly FilterAnswer[] }) {
  return (
    <details>
      <summary>What every filter says</summary>
      <Table label="What every filter says" columns={VERDICT_COLUMNS} rows={outcomes} named={1} />
    </details>
  );
}

const VERDICT_COLUMNS: readonly Column<FilterAnswer>[] = [
  [
    'Verdict',
    undefined,
    ({ allowed, failed, onError }) => (
      <Outcome
        outcome={failed ? 'failed' : !allowed ? 'rejected' : onError ? 'allowed-on-error' : 'allowed'}
      />
    ),
  ],
  ['Filter', undefined, (one) => <FilterName {...one} />],
  ['Message', 'why', ({ message }) => message !== null && <Text>{message}</Text>],
];

/** More budgets than a lease is charged to. */
const MOST = 20;

/** `Budget of the project, 2026-01-01 to 2027-01-01`; accounts without a name of their own are called as they are. */
export async function chargedTo(
  { generation, deadline }: Pick<PageRequest, 'generation' | 'deadline'>,
  projectId: string,
  { charges, suggestions }: Estimate,
): Promise<(account: string) => string> {
  const { ledger } = generation;
  const accounts = [...charges, ...suggestions.flatMap((one) => one.charges)].map(({ account }) => account);
  const ids = [
    ...new Set(accounts.flatMap((account) => /^usage_budget\/(\d{1,18})$/.exec(account)?.[1] ?? [])),
  ];
  const known = new Map<string, string>();
  if (ledger !== undefined && ids.length > 0) {
    const { budgetById } = await import('../../../ledger/budgets/view.ts');
    await ledger.read(async (opened) => {
      for (const id of ids.slice(0, MOST)) {
        const budget = await budgetById(opened, BigInt(id), deadline);
        if (budget?.projectId === projectId) {
          known.set(budgetAccount(budget), budgetText(budget));
        }
      }
    });
  }
  return (account) => known.get(account) ?? otherText(account);
}

function budgetText({ userId, validFrom, validUntil }: BudgetView): string {
  const date = (second: bigint) => shownSecond(second);
  return `Budget of the ${userId === null ? 'project' : 'user'}, ${date(validFrom)} to ${date(validUntil)}`;
}

function otherText(account: string): string {
  if (account.startsWith('usage_budget/uncovered')) {
    return account.includes('/user/')
      ? 'Time without a budget of the user'
      : 'Time without a budget of the project';
  }
  return account;
}
