import type { ComponentChildren } from 'preact';
import type { DecisionOutcome } from '../../../decisions/record.ts';
import { Text } from './text.tsx';
import { shownSecond } from './time-scale.ts';

interface TableProps {
  /** What it is: its caption, which screen readers read first. */
  readonly label: string;
  readonly head: readonly string[];
  /** Whether its height is limited to the screen. */
  readonly isLong?: boolean;
  readonly children: ComponentChildren;
}

/** It scrolls when there is no room, and can be focused so that the keyboard can scroll it. */
export function Table({ label, head, isLong = false, children }: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable without a mouse.
    <section class={isLong ? 'scrolls long' : 'scrolls'} aria-label={label} tabIndex={0}>
      <table>
        <caption>{label}</caption>
        <thead>
          <tr>
            {head.map((name) => (
              <th scope="col">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

interface MessageProps {
  /** `done`: it worked. `error` is read to screen readers at once. */
  readonly kind: 'done' | 'notice' | 'error';
  readonly children: ComponentChildren;
}

export function Message({ kind, children }: MessageProps) {
  return (
    <p class={kind} role={kind === 'error' ? 'alert' : 'status'}>
      {children}
    </p>
  );
}

interface LivePartProps {
  /** Unlike that of any other part of the page. */
  readonly name: string;
  readonly children: ComponentChildren;
}

/** A part of a page that scripts replace when something has happened. Without them it stays as it was loaded. Forms do not belong into it. */
export function LivePart({ name, children }: LivePartProps) {
  return <div data-live={name}>{children}</div>;
}

/** Signs beside the outcome, which is the word of the decision log and the metrics, so that nobody depends on colours. */
const SIGNS: Readonly<Record<DecisionOutcome, string>> = {
  allowed: '✓',
  changed: '✎',
  rejected: '✗',
  failed: '!',
  'allowed-on-error': '!',
  exempt: '–',
  audit: '?',
  bypassed: '↷',
};

export function Outcome({ outcome }: { readonly outcome: DecisionOutcome }) {
  return (
    <span class={`outcome ${outcome}`}>
      <span aria-hidden="true">{SIGNS[outcome]}</span> {outcome}
    </span>
  );
}

/** `0.041 ms`, `1250 ms` */
export function Milliseconds({ value }: { readonly value: number }) {
  return <span class="number">{`${value < 100 ? value.toFixed(3) : Math.round(value)} ms`}</span>;
}

interface SpanProps {
  /** Seconds of the epoch. */
  readonly from: bigint;
  readonly until: bigint;
  readonly children?: ComponentChildren;
}

export function SpanCell({ from, until, children }: SpanProps) {
  return (
    <td class="time">
      {shownSecond(from)} to
      <br />
      {shownSecond(until)}
      {children}
    </td>
  );
}

/** The name of a lease, which may be none. */
export function LeaseName({ name }: { readonly name: string | null }) {
  return name === null || name === '' ? <span class="none">no name</span> : <Text>{name}</Text>;
}
