/** Budgets as bars: what is used, what recorded leases will use, and what is left. */

import { type Amount, formatUnitHours } from '../../filter/amount.ts';
import { budgetAccount } from '../../filter/budget.ts';
import { type Instant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { BudgetStanding } from '../../ledger/budgets.ts';
import { Account } from './account.tsx';
import { Legend, type Look } from './patterns.tsx';
import { Table } from './table.tsx';
import { visible } from './text.tsx';
import { share, shownDate } from './time-scale.ts';

/** Maximum number of budgets that are shown; those that are valid now come first. */
const MAX_BUDGETS = 20;

interface BudgetsProps {
  readonly budgets: readonly BudgetStanding[];
  readonly now: Instant;
  /** `undefined` = unknown how much of the taken amount is still to be used. */
  readonly planned: ReadonlyMap<string, Amount> | undefined;
  readonly unit: string;
}

interface Divided {
  readonly budget: BudgetStanding;
  readonly used: Amount;
  readonly planned: Amount;
  readonly left: Amount;
}

export function Budgets({ budgets, now, planned, unit }: BudgetsProps) {
  if (budgets.length === 0) {
    return <p>There is none for this project, or for a user in it.</p>;
  }
  const shown = inOrder(budgets, now / MICROSECONDS_PER_SECOND)
    .slice(0, MAX_BUDGETS)
    .map((budget) => divided(budget, planned));
  const isDivided = planned !== undefined;
  const used = isDivided ? 'used' : 'used, or to be used';
  const head = ['Whose', 'Valid', 'Budget', isDivided ? 'Used' : 'Used, or to be used'];
  return (
    <>
      <Legend
        entries={[
          ['used', used],
          ...(isDivided ? [['planned', 'to be used by pending and active leases'] as const] : []),
          ['left', 'left'],
        ]}
      />
      <ul class="budgets">
        {shown.map((one) => (
          <li>
            <Heading {...one} unit={unit} second={now / MICROSECONDS_PER_SECOND} />
            <Bar {...one} unit={unit} />
          </li>
        ))}
      </ul>
      {budgets.length > shown.length && (
        <p class="hint">
          {budgets.length - shown.length} more are not shown; <code>budget list</code> prints all.
        </p>
      )}
      <Table label="Budgets" head={[...head, ...(isDivided ? ['To be used'] : []), `Left (${unit})`]} isLong>
        {shown.map(({ budget, used: spent, planned: still, left }) => (
          <tr>
            <th scope="row">
              <Owner {...budget} />
            </th>
            <td class="time">{validity(budget)}</td>
            <td class="number">{formatUnitHours(budget.amount)}</td>
            <td class="number">{formatUnitHours(spent)}</td>
            {isDivided && <td class="number">{formatUnitHours(still)}</td>}
            <td class="number">{formatUnitHours(left, 'down')}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

function Heading({
  budget,
  left,
  unit,
  second,
}: Divided & { readonly unit: string; readonly second: bigint }) {
  const { validFrom, validUntil, amount } = budget;
  const when = second < validFrom ? 'not valid yet: ' : second >= validUntil ? 'not valid any more: ' : '';
  return (
    <p>
      <b>
        <Owner {...budget} />
      </b>{' '}
      <span class="figure">
        <b>{formatUnitHours(left, 'down')}</b> of {formatUnitHours(amount)} {unit} left
      </span>
      <small>
        {when}
        {validity(budget)}
      </small>
    </p>
  );
}

const BAR_HEIGHT = 20;

/** As long as the budget, or as the taken amount if the budget was reduced since: a line shows where the budget ends. */
function Bar({ budget, used, planned, left, unit }: Divided & { readonly unit: string }) {
  const { id, amount, taken } = budget;
  const whole = budget.left < 0n ? taken : amount;
  const name = `budget-${id}`;
  const parts: [Look, Amount, Amount][] = [
    ['used', 0n, used],
    ['planned', used, planned],
  ];
  const figures = [
    `${formatUnitHours(used)} ${unit} used`,
    ...(planned > 0n ? [`${formatUnitHours(planned)} to be used`] : []),
    `${formatUnitHours(left, 'down')} left of ${formatUnitHours(amount)}`,
  ];
  return (
    <svg width="100%" height={BAR_HEIGHT} role="img" aria-labelledby={`${name}-title ${name}-description`}>
      <title id={`${name}-title`}>Budget of {ownerOf(budget)}</title>
      <desc id={`${name}-description`}>
        {figures.join(', ')}; valid {validity(budget)}.
      </desc>
      <rect x="0" y="0" width="100%" height={BAR_HEIGHT} rx="3" class="bar left" />
      {parts.map(
        ([look, from, length]) =>
          length > 0n && (
            <rect
              x={share(from, whole)}
              y="0"
              width={share(length, whole)}
              height={BAR_HEIGHT}
              rx="3"
              class={`bar ${look}`}
            />
          ),
      )}
      {taken > amount && (
        <line x1={share(amount, whole)} x2={share(amount, whole)} y1="0" y2={BAR_HEIGHT} class="limit" />
      )}
    </svg>
  );
}

function Owner({ userId }: Pick<BudgetStanding, 'userId'>) {
  return userId === null ? (
    <>Project</>
  ) : (
    <>
      User <Account kind="user" id={userId} />
    </>
  );
}

function ownerOf({ userId }: Pick<BudgetStanding, 'userId'>): string {
  return userId === null ? 'the project' : `the user ${visible(userId)}`;
}

function validity({ validFrom, validUntil }: BudgetStanding): string {
  return `${shownDate(validFrom * MICROSECONDS_PER_SECOND)} to ${shownDate(validUntil * MICROSECONDS_PER_SECOND)}`;
}

function divided(budget: BudgetStanding, planned: BudgetsProps['planned']): Divided {
  const still = planned?.get(budgetAccount(budget)) ?? 0n;
  // The two amounts were not read at the same time.
  const rest = still < budget.taken ? still : budget.taken;
  return { budget, used: budget.taken - rest, planned: rest, left: budget.left };
}

/** Those that are valid now, of the project before those of users; then those to come, the next one first; then the past. */
function inOrder(budgets: readonly BudgetStanding[], second: bigint): BudgetStanding[] {
  const isPast = ({ validUntil }: BudgetStanding) => validUntil <= second;
  const current = budgets.filter((one) => !isPast(one) && one.validFrom <= second);
  const later = budgets.filter(({ validFrom }) => validFrom > second);
  return [
    ...current,
    ...later.sort((a, b) => (a.validFrom < b.validFrom ? -1 : 1)),
    ...budgets.filter(isPast).sort((a, b) => (a.validUntil > b.validUntil ? -1 : 1)),
  ];
}
