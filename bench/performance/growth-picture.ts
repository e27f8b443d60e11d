/** Draws growing costs as SVG: sizes on a logarithmic scale, ratios on a linear one unless far apart. */

export interface GrowthLine {
  readonly name: string;
  /** By size; at least one. */
  readonly points: readonly { readonly size: number; readonly ratio: number }[];
}

export interface DrawnGrowth {
  readonly title: string;
  readonly across: string;
  readonly up: string;
  /** Alternative text. */
  readonly alt: string;
  readonly lines: readonly GrowthLine[];
  /** The permitted ratio, drawn as a line. */
  readonly limit?: number | undefined;
}

const WIDTH = 760;
const HEIGHT = 360;
const LEFT = 64;
const RIGHT = 230;
const TOP = 44;
const BOTTOM = 56;
/** From this ratio on, the scale is logarithmic. */
const FAR_APART = 10;
const LABEL_HEIGHT = 16;
/** Distinct in brightness, too, on white and on black. */
const COLOURS = [
  ['#0b5cad', '#7db8f5'],
  ['#b3470b', '#f5a673'],
  ['#1a7f37', '#6fd68a'],
  ['#7a3fb0', '#c9a2f2'],
];

const style = `
  .ground { fill: #fff } text { fill: #24292f; font: 13px system-ui, sans-serif } .title { font-size: 15px; font-weight: 600 }
  .grid { stroke: #d0d7de } .limit { stroke: #6e7781; stroke-dasharray: 5 4 } polyline { fill: none; stroke-width: 2 }
${COLOURS.map(([light], index) => `  .c${index} { stroke: ${light} } .d${index} { fill: ${light} }`).join('\n')}
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } text { fill: #e6edf3 } .grid { stroke: #30363d } .limit { stroke: #8b949e }
${COLOURS.map(([, dark], index) => `    .c${index} { stroke: ${dark} } .d${index} { fill: ${dark} }`).join('\n')}
  }
`;

export function drawnGrowth({ title, across, up, alt, lines, limit }: DrawnGrowth): string {
  const points = lines.flatMap((line) => line.points);
  const x = acrossScale(points.map(({ size }) => size));
  const y = upScale([...points.map(({ ratio }) => ratio), limit ?? 1]);
  const right = WIDTH - RIGHT;
  const bottom = HEIGHT - BOTTOM;
  const labels = apart(lines.map(({ points: of }) => y.at(of.at(-1)?.ratio ?? 1) + 4));
  const parts = [
    `<rect class="ground" width="${WIDTH}" height="${HEIGHT}"/>`,
    text(LEFT, 24, title, 'class="title"'),
    ...y.ticks.flatMap((tick) => [
      `<line class="grid" x1="${LEFT}" x2="${right}" y1="${y.at(tick)}" y2="${y.at(tick)}"/>`,
      text(LEFT - 8, y.at(tick) + 4, shown(tick), 'text-anchor="end"'),
    ]),
    ...x.ticks.map((tick) => text(x.at(tick), bottom + 20, shown(tick), 'text-anchor="middle"')),
    text((LEFT + right) / 2, HEIGHT - 14, across, 'text-anchor="middle"'),
    text(0, 0, up, `text-anchor="middle" transform="translate(16 ${(TOP + bottom) / 2}) rotate(-90)"`),
    ...(limit === undefined
      ? []
      : [
          `<line class="limit" x1="${LEFT}" x2="${right}" y1="${y.at(limit)}" y2="${y.at(limit)}"/>`,
          text(LEFT + 6, y.at(limit) - 6, `at most ${shown(limit)}`, ''),
        ]),
    ...lines.flatMap(({ name, points: of }, index) => {
      const colour = index % COLOURS.length;
      const at = of.map(({ size, ratio }) => [x.at(size), y.at(ratio)] as const);
      return [
        `<polyline class="c${colour}" points="${at.map((point) => point.join(',')).join(' ')}"/>`,
        ...at.map(([cx, cy]) => `<circle class="d${colour}" cx="${cx}" cy="${cy}" r="4"/>`),
        `<circle class="d${colour}" cx="${right + 12}" cy="${(labels[index] ?? 0) - 4}" r="4"/>`,
        text(right + 22, labels[index] ?? 0, name, ''),
      ];
    }),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img">
<title>${escaped(title)}</title>
<desc>${escaped(alt)}</desc>
<style>${style}</style>
${parts.join('\n')}
</svg>
`;
}

interface Scale {
  readonly ticks: readonly number[];
  at(value: number): number;
}

function acrossScale(sizes: readonly number[]): Scale {
  const ticks = powersOfTen(Math.min(...sizes), Math.max(...sizes));
  const from = Math.log10(ticks[0] ?? 1);
  const span = Math.log10(ticks.at(-1) ?? 10) - from;
  const width = WIDTH - LEFT - RIGHT;
  return { ticks, at: (size) => rounded(LEFT + ((Math.log10(size) - from) / span) * width) };
}

function upScale(ratios: readonly number[]): Scale {
  const least = Math.min(...ratios);
  const most = Math.max(...ratios);
  const height = HEIGHT - TOP - BOTTOM;
  if (most >= FAR_APART) {
    const ticks = powersOfTen(least, most);
    const from = Math.log10(ticks[0] ?? 1);
    const span = Math.log10(ticks.at(-1) ?? 10) - from;
    return { ticks, at: (ratio) => rounded(HEIGHT - BOTTOM - ((Math.log10(ratio) - from) / span) * height) };
  }
  const step = most <= 2 ? 0.5 : most <= 5 ? 1 : 2;
  const top = Math.ceil((most * 1.1) / step) * step;
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step);
  return { ticks, at: (ratio) => rounded(HEIGHT - BOTTOM - (ratio / top) * height) };
}

/** From the power at or below the least to that at or above the most; at least two. */
function powersOfTen(least: number, most: number): number[] {
  const from = Math.floor(Math.log10(least) + 1e-9);
  const to = Math.max(from + 1, Math.ceil(Math.log10(most) - 1e-9));
  return Array.from({ length: to - from + 1 }, (_, index) => 10 ** (from + index));
}

/** The heights, moved down to avoid overlaps. */
function apart(heights: readonly number[]): number[] {
  const moved = [...heights];
  let next = Number.NEGATIVE_INFINITY;
  for (const index of [...heights.keys()].sort((a, b) => (heights[a] ?? 0) - (heights[b] ?? 0))) {
    moved[index] = Math.max(heights[index] ?? 0, next);
    next = (moved[index] ?? 0) + LABEL_HEIGHT;
  }
  return moved;
}

function text(x: number, y: number, words: string, attributes: string): string {
  return `<text x="${x}" y="${y}"${attributes === '' ? '' : ` ${attributes}`}>${escaped(words)}</text>`;
}

function shown(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 3 });
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
