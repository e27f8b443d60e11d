/** The data that the server passes to the chart script: types only. */

export interface ChartSeries {
  readonly label: string;
  /** Colour and form; distinguishable without colours. */
  readonly look: 'used' | 'planned' | 'left' | 'limit';
  /** `area` is filled, `line` is not, `steps` keeps a value until the next one, `bars` has one per month. */
  readonly form: 'area' | 'line' | 'steps' | 'bars';
  /** `null` = no value at that time. */
  readonly values: readonly (number | null)[];
}

export interface ChartData {
  readonly title: string;
  /** Of all values. */
  readonly unit: string;
  /** Seconds of the epoch, ascending. */
  readonly times: readonly number[];
  /** Each has one value per time. */
  readonly series: readonly ChartSeries[];
  /** Seconds of the epoch. Drawn as a line if it is within the chart. */
  readonly now?: number;
}
