/**
 * When every filter has allowed a lease: it is recorded in the ledger, where limits that leases share are verified once more,
 * and filters that keep something elsewhere are told. If one of them refuses, all that was recorded is taken back.
 */
import { type Answer, askFilter, failureMessage, type Link, logFailure, type Question } from './asking.ts';
import { accepted, refused } from './decision.ts';
import type { Lease } from './lease.ts';
import { isLedgerFilter } from './ledger/ledger-filter.ts';
import { type ChainLedger, claimantOf, type LeaseRequest } from './ledger/service.ts';
import type { Author, Claimant, Recording } from './ledger/transactions.ts';
import type { Logger } from './logger.ts';
import { readOnly } from './read-only.ts';
import { type Decision, type Outcome, reject } from './verdict.ts';

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

  constructor({ chain, ledger, logger }: CommitParts) {
    this.#chain = chain;
    this.#ledger = ledger;
    this.#logger = logger;
    this.#claimants = chain.flatMap(({ name, filter, audit }) =>
      isLedgerFilter(filter) ? [claimantOf(filter, name, audit)] : [],
    );
  }

  /** Whether anything is kept of a lease: else a decision is all there is. */
  get isNeeded(): boolean {
    return (
      this.#claimants.length > 0 ||
      this.#chain.some(({ filter }) => filter.commitCreate !== undefined || filter.commitUpdate !== undefined)
    );
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
    await this.#takeBack(recording, told, request, question);
    return refused(decision.operation, decision.lease, rejection, outcomes.list());
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
    try {
      const operation = request.currentLease === undefined ? 'create' : 'update';
      const recording = await this.#ledger.commit(
        request,
        this.#claimants,
        author(operation, question),
        question.wait,
      );
      const { refusal, warnings } = recording;
      for (const { name, audit } of this.#claimants) {
        const said = refusal?.filter === name ? refusal : warnings.find(({ filter }) => filter === name);
        const verdict = said === undefined ? undefined : reject(said.message);
        outcomes.add(
          { name, audit },
          verdict && { verdict, failed: false },
          name === first.name ? spent() : 0,
        );
      }
      return recording;
    } catch (thrown) {
      logFailure(this.#logger, first.name, question, thrown);
      const answer = { verdict: reject(failureMessage(thrown)), failed: true };
      outcomes.add({ name: first.name, audit: false }, answer, spent());
      return undefined;
    }
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
              ? asked.commitCreate?.(context, lease, call)
              : asked.commitUpdate?.(context, readOnly(currentLease), lease, call),
          verify: refuseChange,
        },
        this.#logger,
      );
      outcomes.add(link, answer, performance.now() - started);
      if (outcomes.rejection !== undefined) {
        return;
      }
      told.push(link);
    }
  }

  /** Whoever was told of a lease that is new hears that it has ended: there is no other way to take that back. */
  async #takeBack(
    recording: Recording | undefined,
    told: readonly Link[],
    { context, currentLease, lease }: LeaseRequest,
    question: Question,
  ): Promise<void> {
    const failed = (name: string) => (thrown: unknown) => logFailure(this.#logger, name, question, thrown);
    if (recording?.undo !== undefined) {
      // Also when the time is over: what was recorded is of a lease that nobody gets.
      await this.#ledger
        .takeBack(recording.undo, author('undo', question), UNBOUNDED)
        .catch(failed('ledger'));
    }
    if (currentLease === undefined) {
      for (const { name, filter } of told) {
        await Promise.resolve(filter.onEnd(context, readOnly(lease), question.wait)).catch(failed(name));
      }
    }
  }
}

/** The ledger's own timeout bounds it. */
const UNBOUNDED = { signal: undefined, throwIfOver() {} };

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
  add({ name, audit }: Pick<Link, 'name' | 'audit'>, answer: Answer | undefined, milliseconds: number): void {
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
  }

  list(): Outcome[] {
    return [...this.#outcomes.values()];
  }
}
