/** Why something may not be had, in words that name the field, what would do, and whose rule it is. */
export interface Reason {
  /** Below `spec` of the pod: `schedulerName`, `nodeSelector`, `tolerations[2]`, … */
  readonly field: string;
  /** What was expected there, and what came. */
  readonly expectation: string;
  /** Whose rules these are; empty where no policy that may be used mentions the field. */
  readonly policies: readonly string[];
}

/** A rule may list thousands. */
const SHOWN = 8;
const SHOWN_LENGTH = 200;

/** `nodeSelector disk: expected ssd or hdd, got sata (scheduling policies a and b)` */
export function formatReason({ field, expectation, policies }: Reason): string {
  const whose =
    policies.length === 0
      ? 'no scheduling policy that may be used mentions it'
      : `scheduling ${policies.length === 1 ? 'policy' : 'policies'} ${listed(policies, 'and')}`;
  return `${field}: ${expectation} (${whose})`;
}

/** `a`, `a or b`, `a, b, c or 12 more` */
export function listed(values: readonly string[], word: 'and' | 'or'): string {
  const shown = values.slice(0, SHOWN).map(cut);
  const more = values.length - shown.length;
  const all = more > 0 ? [...shown, `${more} more`] : shown;
  const last = all.at(-1) ?? '';
  return all.length < 2 ? last : `${all.slice(0, -1).join(', ')} ${word} ${last}`;
}

/** A value of whoever asks, which may be of any length. */
export function quoted(value: string): string {
  return JSON.stringify(cut(value));
}

function cut(value: string): string {
  return value.length > SHOWN_LENGTH ? `${value.slice(0, SHOWN_LENGTH)}…` : value;
}
