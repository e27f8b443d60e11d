/**
 * Records a lease that every filter has allowed: first in the ledger, with the claims of all `LedgerFilter`s
 * in one transaction, which verifies their limits again; then with the filters' commit hooks. If one refuses,
 * everything is undone.
 */

import { inTime, type Wait, withinDeadline } from '../../base/deadline.ts';
import type { Logger } from '../../base/logger.ts';
import { isLedgerFilter } from '../../filter/base-filter.ts';
import { type Claim, refusalOf } from '../../filter/claim.ts';
import type { LeaseRequest } from '../../filter/services.ts';
import { allow, type Decision, type Outcome, type RuleOutcomes, reject } from '../../filter/verdict.ts';
import { readOnly } from '../../lease/read-only.ts';
import { claimantOf } from '../../ledger/lease-request.ts';
import type { Claimant } from '../../ledger/ledger-request.ts';
import type { ChainOutbox } from '../../ledger/outbox/chain-outbox.ts';
import type { ChainLedger } from '../../ledger/service.ts';
import type { Author } from '../../ledger/transactions/journal.ts';
import type { Recording } from '../../ledger/transactions/lease-transactions.ts';
import type { Execution } from '../execution-tracker.ts';
import { accepted, afterCommit, isTried, outcomeOf, refused } from './chain.ts';
import { type ChainedFilter, callHook, commitRequest, type HookRequest, type HookResult } from './hook.ts';
import { failureMessage, failureVerdict, logAudit, logFailure } from './messages.ts';

interface CommitParts {
  readonly chain: readonly ChainedFilter[];
  readonly ledger: ChainLedger;
  readonly outbox: ChainOutbox;
  readonly logger: Logger;
}

/** In seconds. The ledger and the filters have their own, shorter timeouts. */
const UNDO_TIMEOUT = 30;

export class Commits {
  /** The filters with shared limits, in the form that the ledger takes. */
  readonly claimants: readonly Claimant[];
  readonly #parts: CommitParts;
  /** The filters that record leases elsewhere. */
  readonly #recorders: readonly ChainedFilter[];
  readonly #undoing = new Set<Promise<void>>();
  /** Lease → resolves when the last request for it is answered, or undone. */
  readonly #latest = new Map<string, Promise<unknown>>();

  constructor(parts: CommitParts) {
    this.#parts = parts;
    this.#recorders = parts.chain.filter(
      ({ filter }) => (filter.commitCreate ?? filter.commitUpdate) !== undefined,
    );
    this.claimants = parts.chain.flatMap(({ name, filter, audit, execution }) =>
      isLedgerFilter(filter) ? [withExecution(claimantOf(filter, name, audit), execution)] : [],
    );
  }

  /** For a decision that allows: the same decision after recording, or a refusal with nothing recorded. */
  async commit(decision: Decision, lease: LeaseRequest, request: HookRequest): Promise<Decision> {
    const same = sameLease(lease, request);
    if (same === undefined) {
      return (await this.#commit(decision, lease, request)).decision;
    }
    // One after the other: a repetition keeps its lease from being taken back, although it may be refused, too,
    // and of two updates that are refused, neither may take back to what the other had recorded.
    const earlier = this.#latest.get(same);
    const lock = this.#lock(same, earlier, request.wait);
    const committed = this.#commit(decision, lease, request, lock);
    const ended = Promise.allSettled([earlier, committed.then(({ undone }) => undone)]).then(async () => {
      await (await lock.catch(() => undefined))?.();
    });
    this.#latest.set(same, ended);
    this.#undoing.add(ended);
    void ended.then(() => {
      this.#undoing.delete(ended);
      if (this.#latest.get(same) === ended) {
        this.#latest.delete(same);
      }
    });
    return (await committed).decision;
  }

  /**
   * Waits for earlier requests for the same lease, also of other processes if not only the ledger must record
   * it. Resolves to what releases the lock; `undefined` = there is none.
   */
  async #lock(
    same: string,
    earlier: Promise<unknown> | undefined,
    wait: Wait,
  ): Promise<(() => Promise<void>) | undefined> {
    if (earlier !== undefined) {
      await inTime(earlier, wait);
    }
    const { ledger, outbox } = this.#parts;
    const isShared = this.#recorders.length > 0 && (this.claimants.length > 0 || outbox.isUsed);
    return isShared ? ledger.acquireCommitLock(same, wait) : undefined;
  }

  async #commit(
    decision: Decision,
    lease: LeaseRequest,
    request: HookRequest,
    lock?: Promise<unknown>,
  ): Promise<{ readonly decision: Decision; readonly undone?: Promise<void> }> {
    const outcomes = new CommitOutcomes(decision.outcomes, this.#parts.logger, request);
    const recording = await this.#record(lease, request, outcomes, lock);
    const committed: ChainedFilter[] = [];
    // A lease recorded before this request stays granted: it must not be reported as ended.
    const isNew =
      lease.currentLease === undefined && (recording === undefined || recording.undo !== undefined);
    if (outcomes.rejection === undefined) {
      if (isNew) {
        this.#parts.outbox.beginCommit(request.call);
      }
      await this.#callCommitHooks(lease, request, outcomes, committed);
    }
    if (outcomes.rejection === undefined && this.#parts.outbox.isUsed) {
      await this.#confirm(request, outcomes);
    }
    const { rejection } = outcomes;
    if (rejection === undefined) {
      return { decision: accepted(decision.operation, decision.lease, decision.changed, outcomes.list()) };
    }
    const undone = this.#undo(recording, isNew ? committed : [], lease, request);
    this.#undoing.add(undone);
    void undone.then(() => this.#undoing.delete(undone));
    // The answer does not wait beyond its deadline: the lease is refused anyway.
    await inTime(undone, request.wait).catch(() => {});
    return { decision: refused(decision.operation, decision.lease, rejection, outcomes.list()), undone };
  }

  /** Resolves when nothing is being undone. */
  async settled(): Promise<void> {
    await Promise.all(this.#undoing);
  }

  /** Records the claims of all filters, in one transaction, once there is the `lock`. */
  async #record(
    lease: LeaseRequest,
    request: HookRequest,
    outcomes: CommitOutcomes,
    lock: Promise<unknown> | undefined,
  ): Promise<Recording | undefined> {
    const [first] = this.claimants;
    const started = performance.now();
    const elapsed = () => performance.now() - started;
    const failures = new Map<string, unknown>();
    const ruled = new Map<string, RuleOutcomes>();
    const claimants = this.claimants.map((claimant) => rejectingOnFailure(claimant, failures, ruled));
    try {
      await lock;
      if (first === undefined) {
        return undefined;
      }
      const operation = lease.currentLease === undefined ? 'create' : 'update';
      const author = authorOf(operation, request);
      const recorded = {
        ...lease,
        repetition: request.call.repetition,
        adopts: request.operation === 'commit-create' || request.operation === 'commit-update',
        names: request.call.names,
      };
      const recording = await this.#parts.ledger.commit(recorded, claimants, author, request.wait);
      for (const claimant of askedOf(claimants, recording, outcomes)) {
        const { name } = claimant;
        if (failures.has(name)) {
          logFailure(this.#parts.logger, name, request, failures.get(name));
        }
        // The time of the transaction counts once.
        outcomes.add(
          claimant,
          resultOf(name, recording, failures, ruled),
          name === first.name ? elapsed() : 0,
        );
      }
      return recording;
    } catch (thrown) {
      // A failure of the ledger counts as audited only if all claimants are.
      const concerned = first === undefined ? this.#recorders : claimants;
      const blamed = concerned.find(({ audit }) => !audit) ?? concerned[0];
      const result = { verdict: reject(failureMessage(thrown)), failed: true };
      const withoutOutcome = claimants.filter(({ name, audit }) => audit && !outcomes.has(name));
      for (const claimant of new Set(blamed === undefined ? [] : [blamed, ...withoutOutcome])) {
        logFailure(this.#parts.logger, claimant.name, request, thrown);
        outcomes.add(claimant, result, claimant === blamed ? elapsed() : 0);
      }
      return undefined;
    }
  }

  /** In order, until one refuses. Adds filters that may have recorded the lease to `committed`. */
  async #callCommitHooks(
    { currentLease, lease }: LeaseRequest,
    request: HookRequest,
    outcomes: CommitOutcomes,
    committed: ChainedFilter[],
  ): Promise<void> {
    const members = this.#parts.chain.filter(
      ({ filter }) => (currentLease === undefined ? filter.commitCreate : filter.commitUpdate) !== undefined,
    );
    if (members.length === 0) {
      return;
    }
    const commit = commitRequest(request);
    for (const member of members) {
      const started = performance.now();
      const result = await callHook(member, readOnly(lease), commit, this.#parts.logger);
      outcomes.add(member, result, performance.now() - started);
      if (result.verdict.allowed || result.failed) {
        committed.push(member);
      }
      if (outcomes.rejection !== undefined) {
        return;
      }
    }
  }

  /** Removes the messages that would undo the lease. On failure they are sent: the lease must be refused. */
  async #confirm(request: HookRequest, outcomes: CommitOutcomes): Promise<void> {
    const started = performance.now();
    try {
      await this.#parts.outbox.confirm(request.call, request.wait);
    } catch (thrown) {
      const failed = this.#parts.chain.filter(({ name }) => this.#parts.outbox.isSender(name));
      for (const member of failed) {
        logFailure(this.#parts.logger, member.name, request, thrown);
        const result = { verdict: reject(failureMessage(thrown)), failed: true };
        outcomes.add(member, result, performance.now() - started);
      }
      if (outcomes.rejection === undefined) {
        // All of them are audited: the lease is granted anyway.
        this.#parts.outbox.forget(request.call);
      }
    }
  }

  /**
   * Reverts the recording, and calls `onEnd` of the filters that committed a new lease: no other hook undoes
   * a commit. Continues after the deadline of the request.
   */
  async #undo(
    recording: Recording | undefined,
    committed: readonly ChainedFilter[],
    { context, lease }: LeaseRequest,
    request: HookRequest,
  ): Promise<void> {
    const attempt = (name: string, work: (wait: Wait) => unknown) =>
      withinDeadline(UNDO_TIMEOUT, async (wait) => inTime(Promise.resolve(work(wait)), wait)).catch(
        (thrown: unknown) => logFailure(this.#parts.logger, name, request, thrown),
      );
    const undo = recording?.undo;
    const { call: undoes } = request;
    await Promise.all([
      undo && attempt('ledger', (wait) => this.#parts.ledger.takeBack(undo, authorOf('undo', request), wait)),
      ...committed.map(({ name, filter }) =>
        attempt(name, (wait) =>
          filter.onEnd(readOnly(context), readOnly(lease), { signal: wait.signal, wait, undoes }),
        ),
      ),
    ]);
    this.#parts.outbox.forget(undoes);
  }
}

/** By the key of a request that is repeated, or the id. `undefined` = any other request is for another lease. */
function sameLease(
  { context, currentLease, lease }: LeaseRequest,
  { call }: HookRequest,
): string | undefined {
  const same = currentLease === undefined ? (call.repetition?.key ?? lease.id) : currentLease.id;
  return typeof same === 'string'
    ? JSON.stringify([context.region_name, context.project_id, same])
    : undefined;
}

/** Marks the filter's execution around `claims`, which the ledger calls in a transaction. */
function withExecution(claimant: Claimant, execution: Execution): Claimant {
  return {
    ...claimant,
    claims: (proposal, state) => execution.run(() => claimant.claims(proposal, state)),
  };
}

/**
 * Rejects if `claims` or `refuse` of a claim throws, and stores the error in `failures`. The claims of other
 * filters are still computed. Stores the outcomes of rules that reject in `ruled`.
 */
function rejectingOnFailure(
  claimant: Claimant,
  failures: Map<string, unknown>,
  ruled: Map<string, RuleOutcomes>,
): Claimant {
  const { name } = claimant;
  const failed = (thrown: unknown) => {
    failures.set(name, thrown);
    return failureMessage(thrown);
  };
  return {
    ...claimant,
    claims(proposal, state) {
      try {
        const claims = claimant.claims(proposal, state);
        if (!('allowed' in claims)) {
          return claims.map((claim) => Object.assign({}, claim, { refuse: refusing(claim, failed) }));
        }
        if (claims.rules !== undefined) {
          ruled.set(name, claims.rules);
        }
        return claims;
      } catch (thrown) {
        return reject(failed(thrown));
      }
    },
  };
}

function refusing(claim: Claim, failed: (thrown: unknown) => string): Claim['refuse'] {
  return (shortage) => {
    try {
      return refusalOf(claim, shortage);
    } catch (thrown) {
      return failed(thrown);
    }
  };
}

/** The claimants with an answer. After a refusal, later enforced filters that no check called have none. */
function askedOf(
  claimants: readonly Claimant[],
  { refusal }: Recording,
  outcomes: CommitOutcomes,
): readonly Claimant[] {
  const refused = claimants.findIndex(({ name }) => name === refusal?.filter);
  return refusal === undefined
    ? claimants
    : claimants.filter(({ name, audit }, index) => index <= refused || audit || outcomes.has(name));
}

function resultOf(
  name: string,
  { refusal, warnings }: Recording,
  failures: ReadonlyMap<string, unknown>,
  ruled: ReadonlyMap<string, RuleOutcomes>,
): HookResult {
  if (failures.has(name)) {
    return { verdict: failureVerdict(failures.get(name)), failed: true };
  }
  const rejection = refusal?.filter === name ? refusal : warnings.find(({ filter }) => filter === name);
  if (rejection === undefined) {
    return { verdict: allow(), failed: false };
  }
  const rules = ruled.get(name);
  return { verdict: { ...reject(rejection.message), ...(rules && { rules }) }, failed: false };
}

function authorOf(operation: Author['operation'], { context, requestId }: HookRequest): Author {
  return { operation, who: context.user_id, requestId: requestId ?? null, reason: null };
}

class CommitOutcomes {
  readonly #outcomes: Map<string, Outcome>;
  readonly #logger: Logger;
  readonly #request: HookRequest;
  rejection: Outcome | undefined;

  constructor(checked: readonly Outcome[], logger: Logger, request: HookRequest) {
    this.#outcomes = new Map(checked.map((outcome) => [outcome.filter, outcome]));
    this.#logger = logger;
    this.#request = request;
  }

  /** Logs what an audited filter would have done, unless the check has logged it. */
  add(member: Pick<ChainedFilter, 'name' | 'audit'>, result: HookResult, milliseconds: number): void {
    const before = this.#outcomes.get(member.name);
    const outcome = afterCommit(before, outcomeOf(member, result, milliseconds));
    this.#outcomes.set(member.name, outcome);
    if (!result.verdict.allowed && !member.audit) {
      this.rejection ??= outcome;
    }
    if (isTried(outcome) && (before?.allowed !== outcome.allowed || before.onError !== outcome.onError)) {
      logAudit(this.#logger, this.#request, outcome);
    }
  }

  has(filter: string): boolean {
    return this.#outcomes.has(filter);
  }

  list(): Outcome[] {
    return [...this.#outcomes.values()];
  }
}
