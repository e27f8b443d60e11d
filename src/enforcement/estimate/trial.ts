/** Calls the filters of a chain for hypothetical leases, any number of times: nothing is recorded. */
import { LedgerUnavailableError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { type BaseFilter, isLedgerFilter, LedgerFilter } from '../../filter/base-filter.ts';
import type { Decision, RequestNames } from '../../filter/verdict.ts';
import type { Instant } from '../../lease/dates.ts';
import type { CreateRequest, Lease, UpdateRequest } from '../../lease/lease.ts';
import type { Claimant } from '../../ledger/ledger-request.ts';
import type { ChainLedger } from '../../ledger/service.ts';
import type { LeasePreview } from '../../ledger/transactions/preview.ts';
import { decide, type Exemptions } from '../chain/chain.ts';
import {
  type ChainedFilter,
  type CheckOptions,
  checkRequest,
  type HookRequest,
  invokeHook,
  isThenable,
} from '../chain/hook.ts';

export type EstimateOptions = Pick<CheckOptions, 'signal' | 'deadline' | 'requestId' | 'acceptsChanges'>;

export interface EstimateParts {
  readonly chain: readonly ChainedFilter[];
  readonly exemptions: Exemptions;
  readonly ledger: ChainLedger;
  readonly claimants: readonly Claimant[];
  readonly logger: Logger;
  /** By the filters' clock. */
  readonly now: Instant;
}

/** Maximum calls of a filter that calls other services, per estimate. */
const MOST_CALLS = 3;

/** The result for a tried lease. */
type Tried =
  | { readonly allowed: false }
  /** `undefined` = no filter has a ledger. */
  | { readonly allowed: true; readonly preview: LeasePreview | undefined };

const REFUSED: Tried = { allowed: false };

/** A filter could not decide. */
export class TrialFailedError extends Error {
  override readonly name = 'TrialFailedError';
}

/** The time or the number of trials is used up. */
export class TrialOverError extends Error {
  override readonly name = 'TrialOverError';
}

/** The error as a value if the ledger does not answer. */
export async function orUnavailable<Result>(
  work: () => Promise<Result>,
): Promise<Result | LedgerUnavailableError> {
  try {
    return await work();
  } catch (thrown) {
    if (thrown instanceof LedgerUnavailableError) {
      return thrown;
    }
    throw thrown;
  }
}

export class Trial {
  readonly #parts: EstimateParts;
  /** The request with the original lease. */
  readonly #asked: CreateRequest | UpdateRequest;
  readonly #options: EstimateOptions;
  readonly #names: RequestNames | undefined;
  readonly #hook: 'checkCreate' | 'checkUpdate';
  /** Filters that did not answer at once: they may have called another service. Each with its number of calls. */
  readonly #elsewhere = new Map<BaseFilter, number>();
  /** The enforced filters; and those of them that do more than use the ledger. */
  readonly #members: readonly ChainedFilter[];
  readonly #others: readonly ChainedFilter[];
  readonly #usesLedger: boolean;
  #request: HookRequest;

  constructor(
    parts: EstimateParts,
    request: CreateRequest | UpdateRequest,
    options: EstimateOptions,
    names: RequestNames | undefined,
  ) {
    this.#parts = parts;
    this.#asked = request;
    this.#options = options;
    this.#names = names;
    this.#hook = 'currentLease' in request ? 'checkUpdate' : 'checkCreate';
    this.#members = parts.chain.filter(({ audit }) => !audit);
    this.#others = this.#members.filter(({ filter }) => !this.#isOfTheLedger(filter));
    this.#usesLedger = parts.claimants.some(({ audit }) => !audit);
    this.#request = this.#newRequest(request.lease);
  }

  /** Rereads the ledger from here on. */
  refresh(lease: Lease): void {
    this.#request = this.#newRequest(lease);
  }

  /** The decision of a check, with the answers of all filters. */
  explain(lease: Lease): Promise<Decision> {
    const { acceptsChanges = true } = this.#options;
    return this.#decide(this.#parts.chain, lease, { explain: true, acceptsChanges });
  }

  exemption(lease: Lease): Decision | undefined {
    return this.#parts.exemptions.of(lease, this.#request);
  }

  /**
   * Calls the enforced filters that answer in this process. `first`: those to call first.
   * @throws TrialFailedError, TrialOverError
   */
  askHere(lease: Lease, first: ReadonlySet<string>): Promise<Tried> {
    const isFirst = this.#members.some(({ name, filter }) => first.has(name) && this.#isOfTheLedger(filter));
    const others = this.#others.filter(({ filter }) => !this.#elsewhere.has(filter));
    const likely = others.filter(({ name }) => first.has(name));
    const rest = others.filter(({ name }) => !first.has(name));
    return this.#ask(lease, isFirst ? [[], [...likely, ...rest]] : [[...likely, ...rest], []], this.#request);
  }

  /**
   * Calls all enforced filters. `undefined` = those that call other services have used up their calls.
   * @throws TrialFailedError, TrialOverError, LedgerUnavailableError
   */
  async askAll(lease: Lease): Promise<Tried | undefined> {
    if ([...this.#elsewhere.values()].some((calls) => calls >= MOST_CALLS)) {
      return undefined;
    }
    const isElsewhere = ({ filter }: ChainedFilter) => this.#elsewhere.has(filter);
    // Those that call other services come last, to save unnecessary calls.
    const last = this.#others.filter(isElsewhere);
    const here = this.#others.filter((one) => !isElsewhere(one));
    // A service distinguishes requests by their key.
    return this.#ask(lease, [here, last], this.#newRequest(lease, this.#request));
  }

  /** Whether a filter has called another service. Without a name: any enforced one. */
  isElsewhere(name?: string): boolean {
    return this.#others.some(
      (one) => this.#elsewhere.has(one.filter) && (name === undefined || name === one.name),
    );
  }

  /** `undefined` = no filter has a ledger, or the lease cannot be recorded. @throws LedgerUnavailableError */
  async preview(lease: Lease, request = this.#request): Promise<LeasePreview | undefined> {
    const { claimants, ledger } = this.#parts;
    return claimants.length === 0
      ? undefined
      : ledger.preview({ ...this.#asked, lease }, claimants, request.call);
  }

  /** Why leases cannot be recorded; `undefined` = they can, or no enforced filter has a ledger. */
  async whyNotRecorded(): Promise<LedgerUnavailableError | undefined> {
    const verified = this.#usesLedger
      ? await orUnavailable(() => this.#parts.ledger.verifyGrants(this.#request.call))
      : undefined;
    return verified ?? undefined;
  }

  /** Some filters, then the ledger for all its filters at once, then other filters. */
  async #ask(
    lease: Lease,
    [before, after]: readonly [readonly ChainedFilter[], readonly ChainedFilter[]],
    request: HookRequest,
  ): Promise<Tried> {
    this.#refuseWhenOver();
    if (!(await this.#allow(before, lease, request))) {
      return REFUSED;
    }
    const preview = await this.preview(lease, request);
    if (this.#usesLedger && (preview === undefined || preview.calculation.refusal !== undefined)) {
      return REFUSED;
    }
    return (await this.#allow(after, lease, request)) ? { allowed: true, preview } : REFUSED;
  }

  async #allow(chain: readonly ChainedFilter[], lease: Lease, request: HookRequest): Promise<boolean> {
    if (chain.length === 0) {
      return true;
    }
    const decision = await this.#decide(chain, lease, { acceptsChanges: false }, request);
    if (decision.failed) {
      throw new TrialFailedError(`${decision.filter} failed`);
    }
    return decision.allowed;
  }

  #refuseWhenOver(): void {
    try {
      this.#request.wait.throwIfOver();
    } catch (thrown) {
      throw new TrialOverError('the time is over', { cause: thrown });
    }
  }

  #decide(
    chain: readonly ChainedFilter[],
    lease: Lease,
    how: Pick<CheckOptions, 'explain' | 'acceptsChanges'>,
    request = this.#request,
  ): Promise<Decision> {
    const invoke: typeof invokeHook = (filter, seen, asked) =>
      this.#counted(filter, invokeHook(filter, seen, asked));
    return decide(chain, lease, request, { ...how, invoke }, this.#parts.logger);
  }

  #newRequest(lease: Lease, like?: HookRequest): HookRequest {
    const operation = this.#hook === 'checkUpdate' ? 'update' : 'create';
    const request = checkRequest(operation, { ...this.#asked, lease }, this.#options, this.#names);
    this.#parts.ledger.remember(request.call, like?.call);
    return request;
  }

  #counted(filter: BaseFilter, returned: unknown): unknown {
    const calls = this.#elsewhere.get(filter);
    if (calls !== undefined || (isThenable(returned) && !this.#isOfTheLedger(filter))) {
      this.#elsewhere.set(filter, (calls ?? 0) + 1);
    }
    return returned;
  }

  /** Whether a filter's check is that of `LedgerFilter`, which uses only the ledger. */
  #isOfTheLedger(filter: BaseFilter): boolean {
    return isLedgerFilter(filter) && filter[this.#hook] === LedgerFilter.prototype[this.#hook];
  }
}
