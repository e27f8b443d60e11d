import type { DecisionOutcome } from '../../decisions/record.ts';

/** The words of the decision log and of the metrics. The sign is for the eye; whoever can't tell colours apart needs none. */
const SIGNS: Readonly<Record<DecisionOutcome, string>> = {
  allowed: '✓',
  changed: '✎',
  rejected: '✗',
  failed: '!',
  'allowed-on-error': '!',
  exempt: '–',
  audit: '?',
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
