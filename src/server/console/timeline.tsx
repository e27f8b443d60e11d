/** Leases as bars on a time line, refused ones hollow, and the same as a table. */

import type { RefusedLease } from '../../decisions/recent.ts';
import { COUNTED, type ProjectTimeline, type TimelineLease } from '../../ledger/timeline.ts';
import { Account } from './account.tsx';
import { Legend } from './patterns.tsx';
import { Table } from './table.tsx';
import { shortened, Text, visible } from './text.tsx';
import { REACH_DAYS, shownDate, type TimeScale, timeScale } from './time-scale.ts';

interface TimelineProps {
  readonly timeline: ProjectTimeline;
  readonly refused: readonly RefusedLease[];
}

/** Maximum number of refused leases that are drawn. */
const DRAWN_REFUSALS = 10;
/** In characters, so that a name and its state fit on a phone. */
const NAME_LENGTH = 28;
const REASON_LENGTH = 90;

/** In pixels. */
const HEAD = 38;
const ROW = 34;
const LABEL = 14;
const BAR_TOP = 19;
const BAR_HEIGHT = 10;

export function Timeline({ timeline, refused }: TimelineProps) {
  const { leases, recorded } = timeline;
  const drawn = refused.slice(0, DRAWN_REFUSALS);
  if (leases.length === 0 && drawn.length === 0) {
    return <p>{recorded === 0 ? 'There is none.' : 'There is none that has ever run, or that will run.'}</p>;
  }
  return (
    <>
      <Legend
        entries={[
          ['active', 'active'],
          ['pending', 'pending'],
          ['ended', 'ended'],
          ...(drawn.length > 0 ? [['refused', 'refused, by this process'] as const] : []),
        ]}
      />
      <Picture timeline={timeline} refused={drawn} />
      <p class="hint">
        {howMany(timeline)} Anything more than {REACH_DAYS} days away is drawn at the edge.
      </p>
      {leases.length > 0 && (
        <Table label="Leases" head={['Lease', 'User', 'Start', 'End', 'State']} isLong>
          {leases.map((lease) => (
            <LeaseTableRow {...lease} />
          ))}
        </Table>
      )}
    </>
  );
}

function howMany({ leases, recorded }: ProjectTimeline): string {
  const all = recorded >= COUNTED ? `more than ${COUNTED}` : String(recorded);
  return leases.length === recorded
    ? `All recorded leases: ${all}.`
    : `The ${leases.length} nearest to now, of ${all} recorded leases. Leases that ended before their start are left out.`;
}

function Picture({ timeline, refused }: TimelineProps) {
  const { now, leases } = timeline;
  const scale = timeScale(now, [...leases, ...refused]);
  const height = HEAD + ROW * (leases.length + refused.length);
  const counted = (state: TimelineLease['state']) => leases.filter((lease) => lease.state === state).length;
  return (
    <svg
      width="100%"
      height={height}
      class="timeline"
      role="img"
      aria-labelledby="timeline-title timeline-description"
    >
      <title id="timeline-title">Leases on a time line</title>
      <desc id="timeline-description">
        {counted('active')} active, {counted('pending')} pending, {counted('ended')} ended, {refused.length}{' '}
        refused. The tables below say the same.
      </desc>
      {scale.ticks.map(({ x, label }, index) => (
        <g class={index % 2 === 1 ? 'tick odd' : 'tick'}>
          <line x1={x} x2={x} y1={HEAD - 6} y2={height} />
          <text x={x} y={HEAD - 10} {...anchor(x)}>
            {label}
          </text>
        </g>
      ))}
      <Now x={scale.place(now)} height={height} />
      {leases.map((lease, index) => (
        <LeaseRow lease={lease} scale={scale} y={HEAD + ROW * index} />
      ))}
      {refused.map((lease, index) => (
        <RefusedRow lease={lease} scale={scale} y={HEAD + ROW * (leases.length + index)} />
      ))}
    </svg>
  );
}

function Now({ x, height }: { readonly x: string; readonly height: number }) {
  return (
    <g class="now">
      <line x1={x} x2={x} y1="14" y2={height} />
      <text x={x} y="11" {...anchor(x)}>
        now
      </text>
    </g>
  );
}

interface RowProps<Shown> {
  readonly lease: Shown;
  readonly scale: TimeScale;
  readonly y: number;
}

function LeaseRow({ lease, scale, y }: RowProps<TimelineLease>) {
  const { name, start, end, state } = lease;
  return (
    <g>
      <title>{`${visible(name)}: ${shownDate(start)} to ${shownDate(end)}, ${state}`}</title>
      <text x="0" y={y + LABEL}>
        {name === '' ? 'no name' : shortened(name, NAME_LENGTH)}
      </text>
      <text x="100%" y={y + LABEL} text-anchor="end" class="aside">
        {state}
      </text>
      <rect {...scale.bar(start, end)} y={y + BAR_TOP} height={BAR_HEIGHT} rx="3" class={`bar ${state}`} />
    </g>
  );
}

function RefusedRow({ lease, scale, y }: RowProps<RefusedLease>) {
  const { record, start, end } = lease;
  const name = record.lease_name ?? '';
  const message = record.message ?? '';
  return (
    <g>
      <title>{`${visible(name)}: ${shownDate(start)} to ${shownDate(end)}, refused: ${visible(message)}`}</title>
      <text x="0" y={y + LABEL}>
        {name === '' ? 'no name' : shortened(name, NAME_LENGTH)}
        <tspan class="aside wide">{`  ${shortened(message, REASON_LENGTH)}`}</tspan>
      </text>
      <text x="100%" y={y + LABEL} text-anchor="end" class="aside refusal">
        {record.outcome}
      </text>
      <rect {...scale.bar(start, end)} y={y + BAR_TOP} height={BAR_HEIGHT} rx="3" class="bar refused" />
    </g>
  );
}

function LeaseTableRow({ leaseId, name, userId, start, end, state }: TimelineLease) {
  return (
    <tr>
      <th scope="row" class="what">
        {name === '' ? <span class="none">no name</span> : <Text>{name}</Text>}
        {leaseId !== null && (
          <small class="id">
            <Text>{leaseId}</Text>
          </small>
        )}
      </th>
      <td class="who id">
        <Account kind="user" id={userId} />
      </td>
      <td class="time">{shownDate(start)}</td>
      <td class="time">{shownDate(end)}</td>
      <td>{state}</td>
    </tr>
  );
}

/** Keeps texts at the edges inside the picture. */
function anchor(x: string): { readonly 'text-anchor': 'start' | 'middle' | 'end' } {
  const percent = Number.parseFloat(x);
  return { 'text-anchor': percent < 6 ? 'start' : percent > 94 ? 'end' : 'middle' };
}
