import type { DecisionOutcome } from '../../decisions/record.ts';

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
