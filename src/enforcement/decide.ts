/** Asks the filters of a chain about a lease. Whether a lease is allowed is decided in this file. */
import { isDeepStrictEqual } from 'node:util';
import type { Wait } from '../deadline.ts';
import type { Decision, Outcome } from '../filter/verdict.ts';
import type { Lease } from '../lease/lease.ts';
import { readOnly } from '../lease/read-only.ts';
import type { Logger } from '../logger.ts';
import { callHook } from './call-hook.ts';
import type { ChainedFilter } from './chain.ts';
import type { CheckOptions } from './check-options.ts';
import { accepted, refused } from './decision.ts';
import { FAILED_MESSAGE } from './failure.ts';
import type { HookRequest } from './hook-request.ts';
import { describeChanges } from './lease-changes.ts';
import { logAudit } from './log-lines.ts';
import { afterRound, type HookResult, outcomeOf } from './outcomes.ts';

/** If filters still change the lease in this round, they contradict each other. */
const MAX_ROUNDS = 5;

type How = Pick<CheckOptions, 'explain' | 'acceptsChanges'>;

/**
 * Asks the filters in order. If one changed the lease, asks all of them again about the result, until a round changes
 * nothing: every filter has then accepted exactly the lease that is returned. A promise only if a filter returned one.
 *
 * `left`: from this position on, filters are not asked about a lease that is allowed so far, because the caller has them judge it in
 * the transaction that records it. Only `LedgerFilter`s can be left, which change no lease and ask nobody else.
 */
export function decide(
  chain: readonly ChainedFilter[],
  original: Lease,
  request: HookRequest,
  how: How,
  logger: Logger,
  left = chain.length,
): Decision | Promise<Decision> {
  const inquiry = new Inquiry(chain, original, request, how, logger, left);
  const waiting = inquiry.ask();
  // Most filters answer at once, and `await` costs more than such a filter.
  return waiting === undefined ? inquiry.decision() : decideLater(inquiry, waiting);
}

async function decideLater(inquiry: Inquiry, first: Waiting): Promise<Decision> {
  for (let waiting: Waiting | undefined = first; waiting !== undefined; waiting = inquiry.ask()) {
    inquiry.hear(waiting.position, await waiting.result, waiting.started);
  }
  return inquiry.decision();
}

/** A filter that has not answered yet. */
interface Waiting {
  readonly position: number;
  readonly result: Promise<HookResult>;
  readonly started: number;
}

/** One lease on its way through the chain. */
class Inquiry {
  readonly #chain: readonly ChainedFilter[];
  readonly #original: Lease;
  readonly #request: HookRequest;
  readonly #explain: boolean;
  readonly #acceptsChanges: boolean;
  readonly #logger: Logger;
  readonly #left: number;
  readonly #outcomes: Outcome[] = [];
  #lease: Lease;
  #view: Lease;
  #round = 1;
  /** Of the filter that is asked next. */
  #position = 0;
  /** Whether a filter has changed the lease in this round. */
  #changed = false;
  #rejection: Outcome | undefined;
  #lastChange: Outcome | undefined;

  constructor(
    chain: readonly ChainedFilter[],
    original: Lease,
    request: HookRequest,
    { explain = false, acceptsChanges = true }: How,
    logger: Logger,
    left: number,
  ) {
    this.#chain = chain;
    this.#original = original;
    this.#request = request;
    this.#explain = explain;
    this.#acceptsChanges = acceptsChanges;
    this.#logger = logger;
    this.#left = left;
    this.#lease = original;
    this.#view = readOnly(original);
  }

  /** Asks the next filters, until one does not answer at once. `undefined` = all have answered. */
  ask(): Waiting | undefined {
    do {
      while (this.#position < this.#chain.length) {
        const position = this.#position;
        this.#position += 1;
        const member = this.#chain[position] as ChainedFilter;
        if (this.#isLeftOut(member, position)) {
          continue;
        }
        const started = performance.now();
        const result = callHook(member, this.#view, this.#request, this.#logger);
        if (result instanceof Promise) {
          return { position, result, started };
        }
        this.hear(position, result, started);
      }
    } while (this.#hasAnotherRound());
    return undefined;
  }

  /** Takes the answer of a filter. */
  hear(position: number, result: HookResult, started: number): void {
    const member = this.#chain[position] as ChainedFilter;
    const { verdict } = result;
    const proposal = verdict.allowed && !isSame(verdict.lease, this.#lease) ? verdict.lease : undefined;
    const latest = outcomeOf(member, result, performance.now() - started, proposal !== undefined);
    const outcome = afterRound(this.#outcomes[position], latest);
    this.#outcomes[position] = outcome;
    logAudit(this.#logger, this.#request, outcome);
    if (member.audit) {
      return;
    }
    if (!outcome.allowed) {
      this.#rejection ??= outcome;
    } else if (proposal !== undefined) {
      this.#lease = proposal;
      this.#view = readOnly(proposal);
      this.#lastChange = outcome;
      this.#changed = true;
    }
  }

  decision(): Decision {
    const { operation } = this.#request;
    if (this.#rejection !== undefined) {
      // The array has holes for filters that were not asked: `Object.values` skips them.
      return refused(operation, this.#original, this.#rejection, Object.values(this.#outcomes));
    }
    if (this.#lastChange !== undefined && !this.#acceptsChanges) {
      const message = `The lease would be allowed with other values: ${describeChanges(this.#original, this.#lease)}.`;
      return refused(operation, this.#original, { ...this.#lastChange, message }, this.#outcomes);
    }
    return accepted(operation, this.#lease, this.#lastChange !== undefined, this.#outcomes);
  }

  #isLeftOut({ audit }: ChainedFilter, position: number): boolean {
    if (this.#rejection !== undefined) {
      // After a rejection only audited filters are asked, while there is time: the operator wants to see what they would refuse.
      return !this.#explain && (!audit || isOver(this.#request.wait));
    }
    // A change that the caller cannot accept ends here: the answer must still say whether that lease would be allowed.
    return position >= this.#left && (this.#acceptsChanges || this.#lastChange === undefined);
  }

  #hasAnotherRound(): boolean {
    if (!this.#changed || this.#rejection !== undefined) {
      return false;
    }
    if (this.#round === MAX_ROUNDS && this.#lastChange !== undefined) {
      const { operation } = this.#request;
      const { filter } = this.#lastChange;
      this.#logger.error({ operation, filter }, `filters kept changing the lease for ${MAX_ROUNDS} rounds`);
      this.#rejection = { ...this.#lastChange, allowed: false, failed: true, message: FAILED_MESSAGE };
      return false;
    }
    this.#round += 1;
    this.#position = 0;
    this.#changed = false;
    return true;
  }
}

function isOver(wait: Wait): boolean {
  try {
    wait.throwIfOver();
    return false;
  } catch {
    return true;
  }
}

/** Whether a filter has left the lease unchanged. An equal copy counts as unchanged. */
function isSame(answered: Lease | undefined, lease: Lease): boolean {
  return answered === undefined || isDeepStrictEqual(answered, lease);
}
