/** Why a request is rejected: the field, what would be accepted, and by which policies. */
export interface Reason {
  /** Path below `spec` of the pod: `schedulerName`, `nodeSelector`, `tolerations[2]`, … */
  readonly field: string;
  /** What was expected, and what was found. */
  readonly expectation: string;
  /** The policies that decide; empty if none of the account's policies mentions the field. */
  readonly policies: readonly string[];
}

/** Limits, because a rule may list thousands of values. */
const SHOWN = 8;
const SHOWN_LENGTH = 200;

/** `nodeSelector disk: expected ssd or hdd, got sata (scheduling policies a and b)` */
export function formatReason({ field, expectation, policies }: Reason): string {
  const whose =
    policies.length === 0
      ? 'no scheduling policy of the account mentions it'
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

/** Quotes a value from a request, which may be of any length. */
export function quoted(value: string): string {
  return JSON.stringify(cut(value));
}

function cut(value: string): string {
  return value.length > SHOWN_LENGTH ? `${value.slice(0, SHOWN_LENGTH)}…` : value;
}
