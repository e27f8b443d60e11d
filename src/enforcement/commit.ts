/**
 * When every filter has allowed a lease: it is recorded in the ledger, where limits that leases share are verified once more,
 * and filters that keep something elsewhere are told. If one of them refuses, all that was recorded is taken back.
 */

import { inTime, type Wait, withinDeadline } from '../deadline.ts';
import { isLedgerFilter } from '../filter/ledger-filter.ts';
import type { LeaseRequest } from '../filter/services.ts';
import { type Decision, type Outcome, reject } from '../filter/verdict.ts';
import type { Lease } from '../lease/lease.ts';
import { readOnly } from '../lease/read-only.ts';
import { claimantOf } from '../ledger/lease-request.ts';
import type { Author } from '../ledger/posting.ts';
import type { Claimant } from '../ledger/prospect.ts';
import type { ChainLedger } from '../ledger/service.ts';
import type { Recording } from '../ledger/transactions.ts';
import type { Logger } from '../logger.ts';
import { type Answer, askFilter, failureMessage, logAudit, logFailure, type Question } from './ask-filter.ts';
import type { Link } from './chain.ts';
import { accepted, refused } from './decision.ts';
import type { Turn } from './occupation.ts';

export interface CommitParts {
  readonly chain: readonly Link[];
  readonly ledger: ChainLedger;
  readonly logger: Logger;
}

export class Commits {
  readonly #chain: readonly Link[];
  readonly #ledger: ChainLedger;
  readonly #logger: Logger;
  readonly #claimants: readonly Claimant[];
  readonly #takingBack = new Set<Promise<void>>();

  constructor({ chain, ledger, logger }: CommitParts) {
    this.#chain = chain;
    this.#ledger = ledger;
    this.#logger = logger;
    this.#claimants = chain.flatMap(({ name, filter, audit, turn }) =>
      isLedgerFilter(filter) ? [seen(claimantOf(filter, name, audit), turn)] : [],
    );
  }

  /** The filters whose limits leases share, as the ledger asks them. */
  get claimants(): readonly Claimant[] {
    return this.#claimants;
  }

  /** Of a lease that is allowed: the same decision when all is recorded, or a refusal when nothing is. */
  async commit(decision: Decision, request: LeaseRequest, question: Question): Promise<Decision> {
    const outcomes = new Outcomes(decision.outcomes);
    const recording = await this.#record(request, question, outcomes);
    const told: Link[] = [];
    if (outcomes.rejection === undefined) {
      await this.#tell(request, question, outcomes, told);
    }
    const { rejection } = outcomes;
    if (rejection === undefined) {
      return accepted(decision.operation, decision.lease, decision.changed, outcomes.list());
    }
    const takenBack = this.#takeBack(recording, told, request, question);
    this.#takingBack.add(takenBack);
    void takenBack.then(() => this.#takingBack.delete(takenBack));
    // The answer does not come later for it: that the lease is refused is certain by now.
    await inTime(takenBack, question.wait).catch(() => {});
    return refused(decision.operation, decision.lease, rejection, outcomes.list());
  }

  /** Resolves when all that had to be taken back is, or can't be. */
  async settled(): Promise<void> {
    await Promise.all(this.#takingBack);
  }

  /** The claims of all filters, in one transaction. */
  async #record(
    request: LeaseRequest,
    question: Question,
    outcomes: Outcomes,
  ): Promise<Recording | undefined> {
    const [first] = this.#claimants;
    if (first === undefined) {
      return undefined;
    }
    const started = performance.now();
    const spent = () => performance.now() - started;
    const failures = new Map<string, unknown>();
    const claimants = this.#claimants.map((claimant) => noting(claimant, failures));
    try {
      const operation = request.currentLease === undefined ? 'create' : 'update';
      const by = author(operation, question);
      const asked = {
        ...request,
        repetition: question.call.repetition,
        adopts: question.operation === 'commit-create',
      };
      const recording = await this.#ledger.commit(asked, claimants, by, question.wait);
      const { refusal, warnings } = recording;
      for (const { name, audit } of claimants) {
        const failure = failures.get(name);
        const said = refusal?.filter === name ? refusal : warnings.find(({ filter }) => filter === name);
        const message = failures.has(name) ? failureMessage(failure) : said?.message;
        if (failures.has(name)) {
          logFailure(this.#logger, name, question, failure);
        }
        const answer =
          message === undefined ? undefined : { verdict: reject(message), failed: failures.has(name) };
        this.#note({ name, audit }, answer, outcomes, question, name === first.name ? spent() : 0);
      }
      return recording;
    } catch (thrown) {
      // Where all of them are only tried, so is the ledger.
      const blamed = claimants.find(({ audit }) => !audit) ?? first;
      logFailure(this.#logger, blamed.name, question, thrown);
      const answer = { verdict: reject(failureMessage(thrown)), failed: true };
      this.#note(blamed, answer, outcomes, question, spent());
      return undefined;
    }
  }

  /** Adds what a filter says to the lease; what an audited one has not said to the check stands in the log. */
  #note(
    link: Pick<Link, 'name' | 'audit'>,
    answer: Answer | undefined,
    outcomes: Outcomes,
    question: Question,
    milliseconds: number,
  ): void {
    const { before, outcome } = outcomes.add(link, answer, milliseconds);
    if (before?.allowed === outcome.allowed && before.onError === outcome.onError) {
      return;
    }
    logAudit(this.#logger, question, outcome);
  }

  /** Those that keep something of their own, in their order, until one refuses. */
  async #tell(request: LeaseRequest, question: Question, outcomes: Outcomes, told: Link[]): Promise<void> {
    const { context, currentLease } = request;
    for (const link of this.#chain) {
      const { filter } = link;
      const isCommitted = currentLease === undefined ? filter.commitCreate : filter.commitUpdate;
      if (isCommitted === undefined) {
        continue;
      }
      const started = performance.now();
      const answer = await askFilter(
        link,
        readOnly(request.lease),
        {
          ...question,
          ask: (asked, lease, call) =>
            currentLease === undefined
              ? asked.commitCreate?.(readOnly(context), lease, call)
              : asked.commitUpdate?.(readOnly(context), readOnly(currentLease), lease, call),
          verify: refuseChange,
        },
        this.#logger,
      );
      this.#note(link, answer, outcomes, question, performance.now() - started);
      if (answer.verdict.allowed || answer.failed) {
        // One that has failed may have kept it all the same.
        told.push(link);
      }
      if (outcomes.rejection !== undefined) {
        return;
      }
    }
  }

  /**
   * Whoever was told of a lease that is new hears that it has ended: there is no other way to take that back. Also when the
   * time is over: it was of a lease that nobody gets.
   */
  async #takeBack(
    recording: Recording | undefined,
    told: readonly Link[],
    { context, currentLease, lease }: LeaseRequest,
    question: Question,
  ): Promise<void> {
    const attempt = (name: string, work: (wait: Wait) => unknown) =>
      withinDeadline(SECONDS_TO_TAKE_BACK, async (wait) => inTime(Promise.resolve(work(wait)), wait)).catch(
        (thrown: unknown) => logFailure(this.#logger, name, question, thrown),
      );
    const undo = recording?.undo;
    // A lease that was recorded before was granted before: this request has begun nothing that could end.
    const isNew = currentLease === undefined && (recording === undefined || undo !== undefined);
    await Promise.all([
      undo && attempt('ledger', (wait) => this.#ledger.takeBack(undo, author('undo', question), wait)),
      ...(isNew ? told : []).map(({ name, filter }) =>
        attempt(name, (wait) => filter.onEnd(readOnly(context), readOnly(lease), wait)),
      ),
    ]);
  }
}

/** Besides what bounds the ledger, and the filters themselves. */
const SECONDS_TO_TAKE_BACK = 30;

/** As a filter's other answers: what it claims is asked from within a transaction. */
function seen(claimant: Claimant, turn: Turn): Claimant {
  return {
    ...claimant,
    claims(proposal, standing) {
      turn.begin();
      const claims = claimant.claims(proposal, standing);
      turn.end();
      return claims;
    },
  };
}

/** A filter that can't tell what it claims refuses the lease by itself: the others have their say. */
function noting(claimant: Claimant, failures: Map<string, unknown>): Claimant {
  const { name, audit } = claimant;
  return {
    name,
    audit,
    claims(proposal, standing) {
      try {
        return claimant.claims(proposal, standing);
      } catch (thrown) {
        failures.set(name, thrown);
        return reject(failureMessage(thrown));
      }
    },
  };
}

function author(
  operation: Author['operation'],
  { context, requestId }: Pick<Question, 'context' | 'requestId'>,
): Author {
  return { operation, who: context.user_id, requestId: requestId ?? null, reason: null };
}

function refuseChange(_changed: Lease): never {
  throw new TypeError('expected allow() or reject(message): the lease can not be changed any more');
}

/** What the filters have said to the lease, and what they say now. */
class Outcomes {
  readonly #outcomes: Map<string, Outcome>;
  /** The first one that is enforced. */
  rejection: Outcome | undefined;

  constructor(before: readonly Outcome[]) {
    this.#outcomes = new Map(before.map((outcome) => [outcome.filter, outcome]));
  }

  /** `undefined` = nothing against it. */
  add(
    { name, audit }: Pick<Link, 'name' | 'audit'>,
    answer: Answer | undefined,
    milliseconds: number,
  ): { readonly before: Outcome | undefined; readonly outcome: Outcome } {
    const before = this.#outcomes.get(name);
    const { verdict, failed } = answer ?? { verdict: undefined, failed: false };
    const isRejected = verdict?.allowed === false;
    const outcome: Outcome = {
      filter: name,
      allowed: isRejected ? false : (before?.allowed ?? true),
      message: isRejected ? verdict.message : (before?.message ?? null),
      failed: failed || before?.failed === true,
      onError: (verdict?.allowed === true && verdict.onError === true) || before?.onError === true,
      audit,
      changed: before?.changed === true,
      milliseconds: (before?.milliseconds ?? 0) + milliseconds,
    };
    this.#outcomes.set(name, outcome);
    if (isRejected && !audit) {
      this.rejection ??= outcome;
    }
    return { before, outcome };
  }

  list(): Outcome[] {
    return [...this.#outcomes.values()];
  }
}
