/**
 * Leases on a time line: text on one side, bars on the other, so that text never overlaps bars, at any width
 * and with any name. Links move and zoom it; scripts add drag, wheel and keys.
 */

import type { VNode } from 'preact';
import { larger, smaller } from '../../../filter/claim.ts';
import { formatInstant, type Instant, MICROSECONDS_PER_SECOND, toInstant } from '../../../lease/dates.ts';
import { Account, LeaseName, Text } from '../parts/parts.tsx';
import { Legend, type Look } from '../parts/pictures.tsx';
import { shownDate, type TimeScale, toSecond, windowScale } from '../parts/time-scale.ts';

export interface TimelineRow {
  readonly name: string;
  readonly userId: string | null;
  readonly start: Instant;
  readonly end: Instant;
  readonly look: Extract<Look, 'pending' | 'active' | 'ended' | 'refused'>;
  readonly reason?: string | undefined;
}

interface TimelineProps {
  readonly window: TimeWindow;
  readonly now: Instant;
  readonly rows: readonly TimelineRow[];
  /** The URL of the page with another window. */
  readonly href: (parameters: Readonly<Record<string, string>>) => string;
}

/** In pixels. */
const AXIS = 36;
const TRACK = 30;
const BAR_HEIGHT = 12;
/** In percent: the label of a tick further right would be cut off. */
const LAST_LABEL = 88;

const MOVE_TEXTS: Readonly<Record<Move, string>> = {
  earlier: 'Earlier',
  later: 'Later',
  wider: 'Wider',
  narrower: 'Narrower',
};

export function Timeline({ window, now, rows, href }: TimelineProps) {
  const scale = windowScale(window);
  const { from, until } = windowParameters(window);
  const isNowInside = now >= window.from && now < window.until;
  return (
    <div class="timeline" data-from={from} data-until={until}>
      <nav aria-label="Time line" class="moves">
        {MOVES.map((move) => (
          <a href={href(windowParameters(moved(window, move)))} data-move={move}>
            {MOVE_TEXTS[move]}
          </a>
        ))}
        <a href={href({})} data-move="now">
          Around now
        </a>
        <span class="hint">
          {shownDate(window.from)} to {shownDate(window.until)}
        </span>
      </nav>
      <Legend
        entries={[
          ['active', 'active'],
          ['pending', 'pending'],
          ['ended', 'ended'],
          ['refused', 'refused'],
        ]}
      />
      <Grid scale={scale} now={isNowInside ? now : undefined} />
      <div class="lease-row axis" aria-hidden="true">
        <div />
        <Axis scale={scale} now={isNowInside ? now : undefined} />
      </div>
      {rows.length === 0 ? (
        <p>No leases and no refusals in this time.</p>
      ) : (
        <ol>
          {rows.map((row) => (
            <LaneRow row={row} scale={scale} window={window} />
          ))}
        </ol>
      )}
    </div>
  );
}

function LaneRow({ row, scale, window }: { row: TimelineRow; scale: TimeScale; window: TimeWindow }) {
  const { name, userId, start, end, look, reason } = row;
  const isInside = end > window.from && start < window.until;
  return (
    <li class="lease-row">
      <div class="words">
        <p>
          <LeaseName name={name} />
          <span class={`lease-row-state ${look}`}>{look}</span>
        </p>
        <small>
          {shownDate(start)} to {shownDate(end)}
        </small>
        {userId !== null && (
          <small>
            <Account kind="user" id={userId} />
          </small>
        )}
        {reason !== undefined && (
          <small class="reason">
            <Text>{reason}</Text>
          </small>
        )}
      </div>
      <svg width="100%" height={TRACK} class="track" aria-hidden="true">
        <use href="#lease-row-grid" />
        {isInside && (
          <rect {...scale.bar(start, end)} y="50%" height={BAR_HEIGHT} rx="3" class={`bar ${look}`} />
        )}
      </svg>
    </li>
  );
}

interface ScaleProps {
  readonly scale: TimeScale;
  /** `undefined` = outside the window. */
  readonly now: Instant | undefined;
}

/** The lines behind the bars: defined once, used in each row. */
function Grid({ scale, now }: ScaleProps) {
  return (
    <svg width="0" height="0" class="patterns" aria-hidden="true">
      <defs>
        <g id="lease-row-grid">
          {scale.ticks.map(({ x }) => (
            <line x1={x} x2={x} y1="0" y2="100%" class="lease-row-tick" />
          ))}
          {now !== undefined && (
            <line x1={scale.place(now)} x2={scale.place(now)} y1="0" y2="100%" class="lease-row-now" />
          )}
        </g>
      </defs>
    </svg>
  );
}

/** "now" has its own line above the dates, so that they never overlap. */
function Axis({ scale, now }: ScaleProps): VNode {
  return (
    <svg width="100%" height={AXIS} class="track" aria-hidden="true">
      {now !== undefined && (
        <text x={scale.place(now)} y="12" class="lease-row-now-text" {...anchor(scale.place(now))}>
          now
        </text>
      )}
      {scale.ticks.map(({ x, label }, index) => (
        <g class={index % 2 === 1 ? 'lease-row-label odd' : 'lease-row-label'}>
          <line x1={x} x2={x} y1={AXIS - 16} y2={AXIS} class="lease-row-tick" />
          {Number.parseFloat(x) <= LAST_LABEL && (
            <text x={x} y={AXIS - 5} dx="3">
              {label}
            </text>
          )}
        </g>
      ))}
    </svg>
  );
}

/** Keeps the text inside the picture. */
function anchor(x: string): { readonly 'text-anchor': 'start' | 'middle' | 'end' } {
  const percent = Number.parseFloat(x);
  return { 'text-anchor': percent < 10 ? 'start' : percent > 90 ? 'end' : 'middle' };
}

/** Microseconds of the epoch. */
export interface TimeWindow {
  readonly from: Instant;
  readonly until: Instant;
}

const HOUR = 3600n * MICROSECONDS_PER_SECOND;
const DAY = 24n * HOUR;
const BEFORE = 30n * DAY;
const AFTER = 60n * DAY;
const SHORTEST = 6n * HOUR;
/** Limits how much of the ledger a page reads. */
const LONGEST = 400n * DAY;
/** Keeps years at four digits. */
const EARLIEST: Instant = 0n;
const LATEST: Instant = 253_000_000_000n * MICROSECONDS_PER_SECOND;

/** `mistake`: for users; the window is then the default, from a month before now to two months after. */
export function timeWindow(
  query: URLSearchParams,
  now: Instant,
): TimeWindow & { readonly mistake?: string | undefined } {
  const usual = bounded({ from: now - BEFORE, until: now + AFTER });
  const from = query.get('from') ?? '';
  const until = query.get('until') ?? '';
  if (from === '' && until === '') {
    return usual;
  }
  const start = from === '' ? usual.from : toInstant(from);
  const end = until === '' ? usual.until : toInstant(until);
  if (start === undefined || end === undefined) {
    return { ...usual, mistake: 'Expected dates such as 2026-12-01 as from and until.' };
  }
  if (end <= start) {
    return { ...usual, mistake: 'Expected "until" to be after "from".' };
  }
  return bounded({ from: start, until: end });
}

export const MOVES = ['earlier', 'later', 'wider', 'narrower'] as const;
export type Move = (typeof MOVES)[number];

/** The window after a move: by half of its length, or twice or half as long around its middle. */
export function moved({ from, until }: TimeWindow, move: Move): TimeWindow {
  const length = until - from;
  switch (move) {
    case 'earlier':
      return bounded({ from: from - length / 2n, until: until - length / 2n });
    case 'later':
      return bounded({ from: from + length / 2n, until: until + length / 2n });
    case 'wider':
      return bounded({ from: from - length / 2n, until: until + length / 2n });
    case 'narrower':
      return bounded({ from: from + length / 4n, until: until - length / 4n });
  }
}

/** As URL parameters, to the second. */
export function windowParameters({ from, until }: TimeWindow): Record<'from' | 'until', string> {
  return { from: formatInstant(toSecond(from)), until: formatInstant(toSecond(until)) };
}

/** Keeps the middle, as far as the limits of time and length allow. */
function bounded({ from, until }: TimeWindow): TimeWindow {
  const length = smaller(LONGEST, larger(SHORTEST, until - from));
  const start = smaller(LATEST - length, larger(EARLIEST, (from + until - length) / 2n));
  return { from: start, until: start + length };
}
