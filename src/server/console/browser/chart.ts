/** Draws every `[data-chart]` with uPlot, in the page's colours. A table next to it has the same numbers. */
import type { ChartData, ChartSeries } from './chart-data.ts';
import uPlot from './uplot.js';

const HEIGHT = 260;
/** In CSS pixels of the page. */
const NARROWEST = 240;
const DAY = 86_400;
/** Of a label of the time axis, with the space beside it. */
const LABEL_WIDTH = 70;
/** How much of `2026-12-01 09:00` is shown. */
const [MONTH, DATE, MINUTE] = [7, 10, 16];

interface Drawn {
  readonly place: HTMLElement;
  readonly text: string;
  readonly data: ChartData;
  readonly plot: uPlot;
}

const drawn = new Map<string, Drawn>();

/** Draws new charts and redraws those whose data changed. */
export function drawCharts(within: ParentNode): void {
  for (const place of within.querySelectorAll<HTMLElement>('[data-chart]')) {
    const id = place.dataset.chart ?? '';
    const text = document.getElementById(`${id}-data`)?.textContent ?? '';
    const before = drawn.get(id);
    if (text !== '' && (before?.text !== text || before.place !== place)) {
      // From the same service as this script.
      draw(id, place, text, JSON.parse(text) as ChartData);
    }
  }
}

function draw(id: string, place: HTMLElement, text: string, data: ChartData): void {
  drawn.get(id)?.plot.destroy();
  const values = data.series.map((one) => [...one.values]);
  const plot = new uPlot(optionsOf(place, data), [[...data.times], ...values], place);
  const one: Drawn = { place, text, data, plot };
  drawn.set(id, one);
  // Follows the available width, also when the window does not change.
  const watch = new ResizeObserver(() => {
    if (!place.isConnected || drawn.get(id) !== one) {
      watch.disconnect();
      return;
    }
    plot.setSize({ width: widthOf(place), height: HEIGHT });
  });
  watch.observe(place);
}

/** Redraws for a new colour scheme: colours are read when a chart is drawn. */
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const [id, { place, text, data }] of [...drawn]) {
    draw(id, place, text, data);
  }
});

function widthOf(place: HTMLElement): number {
  return Math.max(NARROWEST, Math.floor(place.getBoundingClientRect().width));
}

function optionsOf(place: HTMLElement, { times, unit, series, now }: ChartData): uPlot.Options {
  const style = getComputedStyle(place);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour('--muted'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { stroke: colour('--line'), width: 1 },
    font: `12px ${style.fontFamily}`,
  };
  const isByMonth = series.some(({ form }) => form === 'bars');
  // Bars start at the beginning of their months: this shows the first and the last one whole.
  const beside = isByMonth ? 16 * DAY : 0;
  const last = times.at(-1) ?? 0;
  const shownLength = isByMonth ? MONTH : last - (times[0] ?? 0) > 2 * DAY ? DATE : MINUTE;
  return {
    width: widthOf(place),
    height: HEIGHT,
    // UTC, as everywhere in the console.
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    cursor: { y: false, drag: { x: true, y: false } },
    scales: {
      x: { range: (_, min, max) => [min - beside, Math.min(max, last) + beside] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] },
    },
    axes: [
      {
        ...axis,
        space: LABEL_WIDTH,
        values: (_, splits, __, ___, step) =>
          isByMonth ? splits.map((second) => timeText(second, MONTH)) : dateTexts(splits, step),
        ...(isByMonth && {
          splits: ({ width }) => labelled(times, Math.floor(width / LABEL_WIDTH)),
        }),
      },
      { ...axis, size: 64, values: (_, splits) => splits.map(shortNumber) },
    ],
    series: [
      { value: (_, seconds) => timeText(seconds, shownLength) },
      ...series.map((one) => ({
        label: one.label,
        ...lookOf(one, colour),
        value: (_: uPlot, value: number | null) => (value === null ? '–' : `${shortNumber(value)} ${unit}`),
      })),
    ],
    ...(now !== undefined && { hooks: { draw: [(plot: uPlot) => drawNow(plot, now, colour)] } }),
  };
}

const COLOURS = {
  used: '--accent',
  planned: '--accent',
  left: '--good',
  limit: '--care',
} as const satisfies Record<ChartSeries['look'], string>;

function lookOf({ look, form }: ChartSeries, colour: (name: string) => string): Partial<uPlot.Series> {
  const stroke = colour(COLOURS[look]);
  const paths = form === 'bars' ? uPlot.paths.bars?.({ size: [0.8, 40] }) : undefined;
  const steps = form === 'steps' ? uPlot.paths.stepped?.({ align: 1 }) : undefined;
  const drawnBy = paths ?? steps;
  return {
    stroke,
    width: 2,
    // Half transparent: 8-digit colours.
    ...((form === 'area' || form === 'bars') && { fill: look === 'planned' ? `${stroke}22` : `${stroke}55` }),
    ...(look === 'planned' && { dash: [6, 4] }),
    ...(look === 'limit' && { dash: [2, 3] }),
    ...(drawnBy && { paths: drawnBy }),
    points: { show: false },
  };
}

function drawNow(plot: uPlot, now: number, colour: (name: string) => string): void {
  const { min = 0, max = 0 } = plot.scales.x ?? {};
  if (now < min || now > max) {
    return;
  }
  const { ctx, bbox } = plot;
  const x = Math.round(plot.valToPos(now, 'x', true));
  ctx.save();
  ctx.strokeStyle = colour('--care');
  ctx.lineWidth = 2;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

function timeText(seconds: number | null, length: number): string {
  return seconds === null ? '–' : new Date(seconds * 1000).toISOString().slice(0, length).replace('T', ' ');
}

/** At most `most` times, at the same distance. */
function labelled(times: readonly number[], most: number): number[] {
  const step = Math.ceil(times.length / most);
  return times.filter((_, index) => index % step === 0);
}

/** Labels of the time axis: days, or hours for closer ticks; below, the year or day where it changes. */
function dateTexts(splits: readonly number[], step: number): string[] {
  const [from, end] = step < DAY ? ([5, 10] as const) : ([0, 4] as const);
  let before = '';
  return splits.map((seconds) => {
    const text = new Date(seconds * 1000).toISOString();
    const below = text.slice(from, end);
    const isNew = below !== before;
    before = below;
    return (step < DAY ? text.slice(11, 16) : text.slice(5, 10)) + (isNew ? `\n${below}` : '');
  });
}

function shortNumber(value: number | null): string {
  const notation = Math.abs(value ?? 0) < 100_000 ? 'standard' : 'compact';
  return value === null
    ? ''
    : value.toLocaleString('en', { maximumFractionDigits: 2, notation, useGrouping: false });
}
