/** What the server gives the script that draws a chart: types only. */

export interface ChartSeries {
  readonly label: string;
  /** Its colour and form; told apart without colours too. */
  readonly look: 'used' | 'planned' | 'left' | 'limit' | 'refused';
  /** `area` is filled, `line` is not, `steps` keeps a value until the next one, `bars` counts something. */
  readonly form: 'area' | 'line' | 'steps' | 'bars';
  /** `null` = none at that time. */
  readonly values: readonly (number | null)[];
}

export interface ChartData {
  readonly title: string;
  readonly unit: string;
  /** Seconds of the epoch, rising. */
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly now?: number;
}
