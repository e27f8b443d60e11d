/** What came of a replay: counts, and the first examples. Its size does not grow with the log. */
import type { Difference, JudgedAgain } from './judge-again.ts';
import type { PastDecision } from './past-decision.ts';

/** In this order they are shown. */
export const DIFFERENCES = [
  'same',
  'now-refused',
  'now-allowed',
  'failed',
  'undecidable',
  'skipped',
] as const satisfies readonly Difference[];

/** A decision that is shown. */
export interface Example {
  readonly difference: Difference;
  readonly time: string;
  readonly requestId: string;
  readonly operation: string;
  readonly projectId: string | null;
  readonly userId: string | null;
  readonly leaseName: string | null;
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

/** How often a filter or a rule made a difference. */
export interface Cause {
  readonly difference: Difference;
  readonly by: string;
  readonly decisions: number;
}

/** Different filters and reasons: names come from logs, too. */
const MAX_CAUSES = 1000;
const OTHERS = '(all others)';
/** As in the log: texts of a log that somebody else has written may be longer. */
const MAX_TEXT = 2000;

export class ReplaySummary {
  readonly #examplesOfEach: number;
  readonly #counts = new Map<Difference, number>();
  readonly #causes = new Map<string, { difference: Difference; by: string; decisions: number }>();
  readonly #examples = new Map<Difference, Example[]>();
  #first: string | undefined;
  #last: string | undefined;

  /** `examplesOfEach`: how many examples of each difference are kept. */
  constructor(examplesOfEach: number) {
    this.#examplesOfEach = examplesOfEach;
  }

  add(past: PastDecision, judged: JudgedAgain): void {
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

  /** All that were selected. */
  get decisions(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** `undefined` = there is none. */
  get period(): { readonly from: string; readonly to: string } | undefined {
    return this.#first === undefined || this.#last === undefined
      ? undefined
      : { from: this.#first, to: this.#last };
  }

  /** The most frequent first. */
  get causes(): Cause[] {
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

function exampleOf(past: PastDecision, { difference, by, message }: JudgedAgain): Example {
  const { requestId, projectId, userId, leaseName, allowed, filter } = past;
  return {
    difference,
    time: past.time,
    requestId: cut(requestId),
    operation: cut(past.operation),
    projectId: projectId && cut(projectId),
    userId: userId && cut(userId),
    leaseName: leaseName && cut(leaseName),
    before: { allowed, filter: filter && cut(filter), message: past.message && cut(past.message) },
    after: {
      allowed: difference === 'undecidable' ? null : difference === 'now-allowed',
      by: difference === 'now-allowed' ? [] : by.map(cut),
      message: message && cut(message),
    },
  };
}

/** Copies the part: a slice would keep the whole line in memory. */
function cut(text: string): string {
  return text.length > MAX_TEXT ? `${structuredClone(text.slice(0, MAX_TEXT))}…` : text;
}
