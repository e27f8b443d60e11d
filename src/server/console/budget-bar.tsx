/** A budget as a bar: what is taken, and what is left. */
import { type Amount, formatUnitHours } from '../../filter/amount.ts';
import { share } from './time-scale.ts';

interface BudgetBarProps {
  readonly amount: Amount;
  readonly taken: Amount;
  readonly left: Amount;
  readonly unit: string;
}

const HEIGHT = 12;

/** As long as the budget, or as what is taken if the budget was reduced since: a line shows where the budget ends. */
export function BudgetBar({ amount, taken, left, unit }: BudgetBarProps) {
  const whole = taken > amount ? taken : amount;
  return (
    <div class="share">
      <span class="figure">
        <b>{formatUnitHours(left, 'down')}</b> of {formatUnitHours(amount)} {unit} left
      </span>
      <svg width="100%" height={HEIGHT} aria-hidden="true">
        <rect x="0" y="0" width="100%" height={HEIGHT} rx="3" class="bar left" />
        {taken > 0n && (
          <rect x="0" y="0" width={share(taken, whole)} height={HEIGHT} rx="3" class="bar used" />
        )}
        {taken > amount && (
          <line x1={share(amount, whole)} x2={share(amount, whole)} y1="0" y2={HEIGHT} class="limit" />
        )}
      </svg>
      <small>{formatUnitHours(taken)} taken</small>
    </div>
  );
}
