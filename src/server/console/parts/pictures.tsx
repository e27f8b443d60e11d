/** Values over time: a chart that a script draws, and a table without script. */

import { type Amount, formatUnitHours } from '../../../filter/claim.ts';
import type { ChartData } from '../browser/chart-data.ts';
import { column, Table, visible } from './parts.tsx';
import { share } from './time-scale.ts';

interface ChartProps extends ChartData {
  /** Unique on the page. */
  readonly id: string;
  /** The content in a sentence, which screen readers read instead of the chart. */
  readonly description: string;
  /** Formats a time for the table. Default: UTC, to the minute. */
  readonly timeText?: (seconds: number) => string;
}

export function Chart(props: ChartProps) {
  const { id, title, description, times, series, unit, now, timeText = toTheMinute } = props;
  const data: ChartData = { title, unit, times, series, ...(now !== undefined && { now }) };
  return (
    <figure>
      <figcaption>{visible(title)}</figcaption>
      <div data-chart={id} role="img" aria-label={visible(`${title}: ${description}`)} />
      {/* Data, not a script: the CSP does not apply. No character in it can end the element. */}
      <script
        type="application/json"
        id={`${id}-data`}
        dangerouslySetInnerHTML={{ __html: scriptJson(data) }}
      />
      <p class="hint">{visible(description)}</p>
      <details>
        <summary>{`Numbers of: ${visible(title)}`}</summary>
        <Table
          label={`${visible(title)} (${unit})`}
          columns={[
            column('Time (UTC)', 'time', (index: number) => timeText(times[index] ?? 0)),
            ...series.map(({ label, values }) =>
              column(label, 'number', (index: number) => numberText(values[index])),
            ),
          ]}
          rows={[...times.keys()]}
          isLong
        />
      </details>
    </figure>
  );
}

/** JSON that cannot end a script element or begin a comment in it. */
function scriptJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function toTheMinute(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ');
}

function numberText(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : String(Math.round(value * 100) / 100);
}

/** The pattern for the future. It must come before the pictures that use it. */
export function Patterns() {
  return (
    <svg width="0" height="0" class="patterns" aria-hidden="true">
      <defs>
        <pattern
          id="hatched"
          width="6"
          height="6"
          patternUnits="userSpaceOnUse"
          patternTransform="rotate(45)"
        >
          <rect width="6" height="6" class="hatch-ground" />
          <rect width="2.5" height="6" class="hatch-line" />
        </pattern>
      </defs>
    </svg>
  );
}

export type Look = 'used' | 'planned' | 'left' | 'pending' | 'active' | 'ended' | 'refused';

export function Legend({ entries }: { readonly entries: readonly (readonly [Look, string])[] }) {
  return (
    <ul class="legend">
      {entries.map(([look, text]) => (
        <li>
          <svg width="24" height="12" aria-hidden="true">
            <rect x="1" y="1" width="22" height="10" rx="2" class={`bar ${look}`} />
          </svg>{' '}
          {text}
        </li>
      ))}
    </ul>
  );
}

interface BudgetBarProps {
  readonly amount: Amount;
  readonly taken: Amount;
  readonly left: Amount;
  readonly unit: string;
}

const HEIGHT = 12;

/** The length is the larger of the budget and what is taken; a line marks the end of a reduced budget. */
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
