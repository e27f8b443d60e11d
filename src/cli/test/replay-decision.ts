/** Judges a past decision by another configuration, and classifies the difference. */

import { InvalidRequestError } from '../../base/errors.ts';
import type { Replay, UnknownAnswer } from '../../enforcement/replay.ts';
import type { ObservedRule } from '../../filter/services.ts';
import type { PastDecision } from './past-decision.ts';

/**
 * In the order of the output.
 *
 * - `same`: allowed or refused, as before
 * - `now-refused`, `now-allowed`: otherwise
 * - `failed`: a filter or rule failed, so the lease would be refused
 * - `undecidable`: the log lacks data that the configuration needs
 * - `skipped`: not a decision: an end, a commit, a bypass
 */
export const DIFFERENCES = [
  'same',
  'now-refused',
  'now-allowed',
  'failed',
  'undecidable',
  'skipped',
] as const;

export type Difference = (typeof DIFFERENCES)[number];

interface ReplayedDecision {
  readonly difference: Difference;
  /** What refuses it now, or refused it then: a filter, or its rules as `file:line: name`. */
  readonly by: readonly string[];
  /** Refused: the message for the user. Undecidable, failed: the cause. */
  readonly message: string | null;
}

/** Notes about the last request: rules that refused it, and causes of failures. Emptied for each request. */
export interface Notes {
  readonly refusing: ObservedRule[];
  readonly causes: string[];
}

const SAME: ReplayedDecision = { difference: 'same', by: [], message: null };
const SKIPPED: ReplayedDecision = { difference: 'skipped', by: [], message: null };

const LEFT_OUT: Readonly<Record<string, string>> = {
  'too-long': 'its request was too long for the log',
  secret: 'its request had something that looks like a secret, and was not logged',
  'no-room': 'its request was not logged: too many waited',
};
const NEEDS = {
  ledger: 'asks the ledger, whose content at that time is not known',
  service: 'asks another service',
  keystone: 'asks for a token of Keystone',
  commit: 'can still refuse a lease when it is recorded',
} as const;

/** `assumeRecorded`: filters that cannot be asked give the answer that the log has. */
export async function replayDecision(
  past: PastDecision,
  replay: Replay,
  notes: Notes,
  { assumeRecorded }: { readonly assumeRecorded: boolean },
): Promise<ReplayedDecision> {
  const { operation, request } = past;
  if (operation !== 'create' && operation !== 'update') {
    return withoutLease(operation);
  }
  if (request === undefined) {
    const { request_left_out: leftOut } = past;
    const why = leftOut === undefined ? undefined : Object.hasOwn(LEFT_OUT, leftOut) && LEFT_OUT[leftOut];
    return undecidable(why || 'its request is not in the log');
  }
  const { names } = request;
  if (replay.usesNames && names === undefined) {
    return undecidable('the configuration asks Keystone for names, and the log has none');
  }
  notes.refusing.length = 0;
  notes.causes.length = 0;
  let replayed: Awaited<ReturnType<Replay['judge']>>;
  try {
    replayed = await replay.judge({ operation, body: request, names, now: past.now });
  } catch (thrown) {
    if (thrown instanceof InvalidRequestError) {
      return undecidable('its request is not one of Blazar');
    }
    throw thrown;
  }
  const { decision, unanswered } = replayed;
  if (decision.allowed) {
    return unanswered.length === 0
      ? allowedNow(past)
      : assumeRecorded
        ? asRecorded(past, unanswered)
        : undecidable(needsOf(unanswered));
  }
  const filter = decision.filter ?? '';
  if (decision.failed) {
    // A filter that fails now as then makes no difference.
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
function withoutLease(operation: string): ReplayedDecision {
  if (operation.startsWith('kubernetes.')) {
    return undecidable('the log has no pods');
  }
  return operation.startsWith('skypilot.') && operation !== 'skypilot.bypass'
    ? undecidable('the log has no tasks')
    : SKIPPED;
}

function allowedNow(past: PastDecision): ReplayedDecision {
  return past.allowed
    ? SAME
    : { difference: 'now-allowed', by: past.filter === null ? [] : [past.filter], message: null };
}

function asRecorded(past: PastDecision, unanswered: readonly UnknownAnswer[]): ReplayedDecision {
  for (const one of unanswered) {
    const recorded = past.filters.find(({ filter, audit }) => filter === one.filter && !audit);
    if (recorded?.outcome === 'rejected') {
      return past.allowed ? undecidable(needsOf([one])) : SAME;
    }
    if (recorded?.outcome !== 'allowed') {
      return undecidable(`${needsOf([one])}; the log does not have its answer`);
    }
  }
  return allowedNow(past);
}

function needsOf(unanswered: readonly UnknownAnswer[]): string {
  return unanswered.map(({ filter, needs }) => `${filter} ${NEEDS[needs]}`).join('; ');
}

function undecidable(message: string): ReplayedDecision {
  return { difference: 'undecidable', by: [], message };
}

/** With the member names of the decision log. */
export interface Example
  extends Pick<PastDecision, 'time' | 'request_id' | 'operation' | 'project_id' | 'user_id' | 'lease_name'> {
  readonly difference: Difference;
  readonly before: {
    readonly allowed: boolean;
    readonly filter: string | null;
    readonly message: string | null;
  };
  readonly after: {
    readonly allowed: boolean | null;
    readonly by: readonly string[];
    readonly message: string | null;
  };
}

interface Cause {
  readonly difference: Difference;
  readonly by: string;
  decisions: number;
}

/** Limit of distinct filters and reasons, because logs contain names, too. */
const MAX_CAUSES = 1000;
const OTHERS = '(all others)';
/** As in our logs: texts in other logs may be longer. */
const MAX_TEXT = 2000;

export class ReplaySummary {
  readonly #examplesOfEach: number;
  readonly #counts = new Map<Difference, number>();
  readonly #causes = new Map<string, Cause>();
  readonly #examples = new Map<Difference, Example[]>();
  #first: string | undefined;
  #last: string | undefined;

  /** `examplesOfEach`: the number of examples to keep of each difference. */
  constructor(examplesOfEach: number) {
    this.#examplesOfEach = examplesOfEach;
  }

  add(past: PastDecision, judged: ReplayedDecision): void {
    const { difference, by, message } = judged;
    const { time } = past;
    this.#counts.set(difference, this.count(difference) + 1);
    this.#first = this.#first === undefined || time < this.#first ? time : this.#first;
    this.#last = this.#last === undefined || time > this.#last ? time : this.#last;
    if (difference === 'same' || difference === 'skipped') {
      return;
    }
    for (const one of difference === 'undecidable' ? [message ?? ''] : by) {
      this.#cause(difference, cut(one));
    }
    const examples = this.#examples.get(difference) ?? [];
    if (examples.length < this.#examplesOfEach) {
      examples.push(exampleOf(past, judged));
      this.#examples.set(difference, examples);
    }
  }

  count(difference: Difference): number {
    return this.#counts.get(difference) ?? 0;
  }

  get decisions(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** `undefined` = no decisions. */
  get period(): { readonly from: string; readonly to: string } | undefined {
    return this.#first === undefined || this.#last === undefined
      ? undefined
      : { from: this.#first, to: this.#last };
  }

  /** Most frequent first. */
  get causes(): readonly Readonly<Cause>[] {
    return [...this.#causes.values()].sort((a, b) => b.decisions - a.decisions);
  }

  /** In the order of the log. */
  examples(difference: Difference): readonly Example[] {
    return this.#examples.get(difference) ?? [];
  }

  #cause(difference: Difference, named: string): void {
    const isTold = this.#causes.has(`${difference}\0${named}`) || this.#causes.size < MAX_CAUSES;
    const by = isTold ? named : OTHERS;
    const key = `${difference}\0${by}`;
    const known = this.#causes.get(key);
    if (known === undefined) {
      this.#causes.set(key, { difference, by, decisions: 1 });
    } else {
      known.decisions += 1;
    }
  }
}

function exampleOf(past: PastDecision, { difference, by, message }: ReplayedDecision): Example {
  const { request_id, project_id, user_id, lease_name, allowed, filter } = past;
  return {
    difference,
    time: past.time,
    request_id: cut(request_id),
    operation: cut(past.operation),
    project_id: project_id && cut(project_id),
    user_id: user_id && cut(user_id),
    lease_name: lease_name && cut(lease_name),
    before: { allowed, filter: filter && cut(filter), message: past.message && cut(past.message) },
    after: {
      allowed: difference === 'undecidable' ? null : difference === 'now-allowed',
      by: difference === 'now-allowed' ? [] : by.map(cut),
      message: message && cut(message),
    },
  };
}

/** Copies the text: a slice would keep the whole line in memory. */
function cut(text: string): string {
  return text.length > MAX_TEXT ? `${structuredClone(text.slice(0, MAX_TEXT))}…` : text;
}
