/** Judges a past decision by another configuration, and says how the two answers differ. */

import { InvalidRequestError } from '../../base/errors.ts';
import type { Rehearsal, Unasked } from '../../enforcement/rehearsal.ts';
import type { ObservedRule } from '../../filter/rule-observer.ts';
import type { PastDecision, PastRequest } from './past-decision.ts';

/**
 * - `same`: allowed or refused, as it was
 * - `now-refused`, `now-allowed`: otherwise
 * - `undecidable`: the log does not hold all that the configuration asks for
 * - `failed`: a filter or rule broke, so that the lease would be refused
 * - `skipped`: nothing is decided there: an end, a commit, a bypass
 */
export type Difference = 'same' | 'now-refused' | 'now-allowed' | 'undecidable' | 'failed' | 'skipped';

export interface JudgedAgain {
  readonly difference: Difference;
  /** What refuses it now, or allowed it wrongly: a filter, or rules of it as `file:line: name`. */
  readonly by: readonly string[];
  /** Refused: what the user would read now. Undecidable, failed: why. */
  readonly message: string | null;
}

export interface AgainOptions {
  /** Filters that cannot be asked say what the log says that they said. */
  readonly assumeRecorded: boolean;
}

/** What is told about the last request: rules that have refused, and why something failed. Emptied for each request. */
export interface Notes {
  readonly refusing: ObservedRule[];
  readonly causes: string[];
}

const SAME: JudgedAgain = { difference: 'same', by: [], message: null };
const SKIPPED: JudgedAgain = { difference: 'skipped', by: [], message: null };

const LEFT_OUT: Readonly<Record<string, string>> = {
  'too-long': 'its request was too long for the log',
  secret: 'its request had something that looks like a secret, and was not logged',
  'no-room': 'its request was not logged: too many waited',
};
const NEEDS = {
  ledger: 'asks the ledger, and nobody knows what was in it',
  service: 'asks another service',
  keystone: 'asks for a token of Keystone',
  commit: 'has a say when a lease is recorded',
} as const;

/** A promise only if filters must be asked: to await each answer would cost more than most of them. */
export function judgeAgain(
  past: PastDecision,
  rehearsal: Rehearsal,
  notes: Notes,
  options: AgainOptions,
): JudgedAgain | Promise<JudgedAgain> {
  const { operation, request } = past;
  if (operation !== 'create' && operation !== 'update') {
    return withoutLease(operation);
  }
  if (request === undefined) {
    const { leftOut } = past;
    const why = leftOut === undefined ? undefined : Object.hasOwn(LEFT_OUT, leftOut) && LEFT_OUT[leftOut];
    return undecidable(why || 'its request is not in the log');
  }
  if (rehearsal.usesNames && request.names === undefined) {
    return undecidable('the configuration asks Keystone for names, and the log has none');
  }
  return askAgain(past, request, rehearsal, notes, options);
}

async function askAgain(
  past: PastDecision,
  { body, names }: PastRequest,
  rehearsal: Rehearsal,
  notes: Notes,
  { assumeRecorded }: AgainOptions,
): Promise<JudgedAgain> {
  notes.refusing.length = 0;
  notes.causes.length = 0;
  const operation = past.operation === 'create' ? 'create' : 'update';
  let rehearsed: Awaited<ReturnType<Rehearsal['judge']>>;
  try {
    rehearsed = await rehearsal.judge({ operation, body, names, now: past.now });
  } catch (thrown) {
    if (thrown instanceof InvalidRequestError) {
      return undecidable('its request is not one of Blazar');
    }
    throw thrown;
  }
  const { decision, unasked } = rehearsed;
  if (decision.allowed) {
    return unasked.length === 0
      ? allowedNow(past)
      : assumeRecorded
        ? asRecorded(past, unasked)
        : undecidable(needsOf(unasked));
  }
  const filter = decision.filter ?? '';
  if (decision.failed) {
    // A filter that failed then and now makes no difference.
    const message = notes.causes.at(-1) ?? decision.message;
    return past.failed && past.filter === filter ? SAME : { difference: 'failed', by: [filter], message };
  }
  if (!past.allowed) {
    return SAME;
  }
  const rules = notes.refusing.map(({ name, place }) => `${place.file}:${place.line}: ${name}`);
  return {
    difference: 'now-refused',
    by: rules.length > 0 ? rules : [filter],
    message: decision.message,
  };
}

/** What is asked of SkyPilot and Kubernetes is never in the log. */
function withoutLease(operation: string): JudgedAgain {
  if (operation.startsWith('kubernetes.')) {
    return undecidable('the log has no pods');
  }
  return operation.startsWith('skypilot.') && operation !== 'skypilot.bypass'
    ? undecidable('the log has no tasks')
    : SKIPPED;
}

function allowedNow(past: PastDecision): JudgedAgain {
  return past.allowed
    ? SAME
    : { difference: 'now-allowed', by: past.filter === null ? [] : [past.filter], message: null };
}

function asRecorded(past: PastDecision, unasked: readonly Unasked[]): JudgedAgain {
  for (const one of unasked) {
    const said = past.filters.find(({ filter, audit }) => filter === one.filter && !audit);
    if (said?.outcome === 'rejected') {
      return past.allowed ? undecidable(needsOf([one])) : SAME;
    }
    if (said?.outcome !== 'allowed') {
      return undecidable(`${needsOf([one])}; the log does not have its answer`);
    }
  }
  return allowedNow(past);
}

function needsOf(unasked: readonly Unasked[]): string {
  return unasked.map(({ filter, needs }) => `${filter} ${NEEDS[needs]}`).join('; ');
}

function undecidable(message: string): JudgedAgain {
  return { difference: 'undecidable', by: [], message };
}
