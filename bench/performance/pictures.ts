/** The pictures of growing costs, and the measured rows that they show. */
import { drawnGrowth, type GrowthLine } from './growth-picture.ts';
import { isMeasured, type Measurements } from './measurements.ts';

interface PictureFacts {
  readonly title: string;
  readonly across: string;
  readonly up: string;
}

const PICTURES = {
  ledger: {
    title: 'A check, by leases on record',
    across: 'leases in the ledger',
    up: 'times the smallest ledger',
  },
  rules: { title: 'A check, by rules', across: 'rules, all asked', up: 'times ten rules' },
} as const satisfies Record<string, PictureFacts>;

export interface Picture {
  /** In `docs/images`. */
  readonly file: string;
  readonly title: string;
  /** Alternative text. */
  readonly alt: string;
  readonly svg: string;
}

/** The pictures with at least one measurement. */
export function pictures(measurements: Measurements): readonly Picture[] {
  const rows = Object.values(measurements.topics).flatMap((topic) => (isMeasured(topic) ? topic.rows : []));
  return Object.entries(PICTURES).flatMap(([name, { title, across, up }]) => {
    const ofIt = rows.flatMap(({ growth, ratio, target }) =>
      growth?.picture === name ? [{ ...growth, ratio, target }] : [],
    );
    if (ofIt.length === 0) {
      return [];
    }
    const lines = [...new Set(ofIt.map(({ line }) => line))].map((line): GrowthLine => {
      const points = ofIt.filter((row) => row.line === line);
      const from = Math.min(...points.map((point) => point.from));
      const all = [{ size: from, ratio: 1 }, ...points.map(({ size, ratio }) => ({ size, ratio }))];
      return { name: line, points: all.sort((a, b) => a.size - b.size) };
    });
    const limits = new Set(
      ofIt.flatMap(({ target }) => (target !== null && 'atMost' in target ? [target.atMost] : [])),
    );
    const [limit] = limits;
    const described = lines.map(
      ({ name: line, points }) =>
        `${line}: ${points.map(({ size, ratio }) => `${ratio.toFixed(2)} at ${size.toLocaleString('en')}`).join(', ')}`,
    );
    const alt = `${title}. ${described.join('. ')}.`;
    const drawn = { title, across, up, alt, lines, ...(limits.size === 1 && { limit }) };
    return [{ file: `performance-${name}.svg`, title, alt, svg: drawnGrowth(drawn) }];
  });
}
