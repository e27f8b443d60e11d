/** Values over time as a picture that a script draws, and as a table for everybody. */
import type { ChartData, ChartSeries } from './browser/chart-data.ts';
import { Table } from './table.tsx';
import { visible } from './text.tsx';

interface ChartProps {
  /** Unlike that of any other chart of the page. */
  readonly id: string;
  readonly title: string;
  /** What can be seen, in a sentence: screen readers read it instead of the picture. */
  readonly description: string;
  /** Seconds of the epoch, rising. */
  readonly times: readonly number[];
  /** Each has a value for each time. */
  readonly series: readonly ChartSeries[];
  /** Of all values. */
  readonly unit: string;
  /** Drawn as a line, if it is within the picture. Seconds of the epoch. */
  readonly now?: number;
  /** A time as the table shows it. Default: UTC, to the minute. */
  readonly timeText?: (seconds: number) => string;
}

export function Chart({
  id,
  title,
  description,
  times,
  series,
  unit,
  now,
  timeText = toTheMinute,
}: ChartProps) {
  const data: ChartData = { title, unit, times, series, ...(now !== undefined && { now }) };
  return (
    <figure>
      <figcaption>{visible(title)}</figcaption>
      <div data-chart={id} role="img" aria-label={visible(`${title}: ${description}`)} />
      {/* A script of another type is data: the policy of the page does not concern it. No character in it can end the element. */}
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
          head={['Time (UTC)', ...series.map(({ label }) => label)]}
          isLong
        >
          {times.map((time, index) => (
            <tr>
              <th scope="row" class="time">
                {timeText(time)}
              </th>
              {series.map(({ values }) => (
                <td class="number">{numberText(values[index])}</td>
              ))}
            </tr>
          ))}
        </Table>
      </details>
    </figure>
  );
}

/** JSON that cannot end a script element or begin a comment in it. */
export function scriptJson(value: unknown): string {
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
