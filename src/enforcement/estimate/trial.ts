/** Asks the filters of a chain about leases that nobody wants yet: nothing is recorded, however often. */
import type { BaseFilter } from '../../filter/base-filter.ts';
import { isLedgerFilter, LedgerFilter } from '../../filter/ledger-filter.ts';
import type { RequestNames } from '../../filter/request-names.ts';
import type { Decision } from '../../filter/verdict.ts';
import type { Context, CreateRequest, Lease } from '../../lease/lease.ts';
import type { Claimant } from '../../ledger/claimant.ts';
import type { Foreseen } from '../../ledger/foreseen.ts';
import type { ChainLedger } from '../../ledger/service.ts';
import type { Logger } from '../../logger.ts';
import type { ChainedFilter } from '../chain.ts';
import type { CheckOptions } from '../check-options.ts';
import { decide } from '../decide.ts';
import type { Exemptions } from '../exemptions.ts';
import { createRequest, type HookRequest } from '../hook-request.ts';

export type EstimateOptions = Pick<CheckOptions, 'signal' | 'deadline' | 'requestId' | 'acceptsChanges'>;

export interface EstimateParts {
  readonly chain: readonly ChainedFilter[];
  readonly exemptions: Exemptions;
  readonly ledger: ChainLedger;
  readonly claimants: readonly Claimant[];
  readonly logger: Logger;
}

/** How often a filter that asks elsewhere is asked in one estimate. */
const MOST_CALLS = 3;

/** A filter could not decide. */
export class TrialFailedError extends Error {
  override readonly name = 'TrialFailedError';
}

/** There is no time, or no patience, for more. */
export class TrialOverError extends Error {
  override readonly name = 'TrialOverError';
}

export class Trial {
  readonly #parts: EstimateParts;
  readonly #context: Context;
  readonly #options: EstimateOptions;
  readonly #names: RequestNames | undefined;
  /** Filters that did not answer at once: they may have asked another service. Each with the number of its calls. */
  readonly #elsewhere = new Map<BaseFilter, number>();
  #request: HookRequest;

  constructor(
    parts: EstimateParts,
    request: CreateRequest,
    options: EstimateOptions,
    names: RequestNames | undefined,
  ) {
    this.#parts = parts;
    this.#context = request.context;
    this.#options = options;
    this.#names = names;
    this.#request = this.#newRequest(request.lease);
  }

  /** From here on, the ledger is read anew. */
  refresh(lease: Lease): void {
    this.#request = this.#newRequest(lease);
  }

  /** What a check would answer, with the answer of every filter. */
  explain(lease: Lease): Promise<Decision> {
    const { acceptsChanges = true } = this.#options;
    return this.#decide(this.#parts.chain, lease, { explain: true, acceptsChanges });
  }

  exemption(lease: Lease): Decision | undefined {
    return this.#parts.exemptions.of(lease, this.#request);
  }

  /**
   * Whether the enforced filters that answer in this process allow a lease as it is. `first`: the names of those to ask first.
   * @throws TrialFailedError, TrialOverError
   */
  async isAllowedHere(lease: Lease, first: ReadonlySet<string>): Promise<boolean> {
    const here = this.#enforced.filter(({ filter }) => !this.#elsewhere.has(filter));
    const likely = here.filter(({ name }) => first.has(name));
    const others = here.filter(({ name }) => !first.has(name));
    return this.#allows([...likely, ...others], lease);
  }

  /** Whether every enforced filter allows a lease as it is. `undefined` = those that ask elsewhere were asked too often already. */
  async isAllowed(lease: Lease): Promise<boolean | undefined> {
    if (!this.mayAskElsewhere) {
      return undefined;
    }
    // Those that ask elsewhere come last: a call that is not needed is one less.
    const isElsewhere = ({ filter }: ChainedFilter) => this.#elsewhere.has(filter);
    const chain = this.#enforced;
    return this.#allows(
      [...chain.filter((one) => !isElsewhere(one)), ...chain.filter(isElsewhere)],
      lease,
      true,
    );
  }

  get mayAskElsewhere(): boolean {
    return this.#enforced.every(({ filter }) => (this.#elsewhere.get(filter) ?? 0) < MOST_CALLS);
  }

  isElsewhere(name: string): boolean {
    return this.#enforced.some((one) => one.name === name && this.#elsewhere.has(one.filter));
  }

  /** @throws LedgerUnavailableError */
  async foresee(lease: Lease): Promise<Foreseen> {
    const { claimants, ledger } = this.#parts;
    return claimants.length === 0
      ? { charges: [], ends: [], starts: [] }
      : ledger.foresee({ context: this.#context, lease }, claimants, this.#request.call);
  }

  get #enforced(): ChainedFilter[] {
    return this.#parts.chain.filter(({ audit }) => !audit);
  }

  async #allows(chain: readonly ChainedFilter[], lease: Lease, isOwnRequest = false): Promise<boolean> {
    this.#refuseWhenOver();
    // A service tells requests apart by their key.
    const request = isOwnRequest ? this.#newRequest(lease, this.#request) : this.#request;
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
    return decide(chain, lease, request, how, this.#parts.logger);
  }

  #newRequest(lease: Lease, like?: HookRequest): HookRequest {
    const request = createRequest({ context: this.#context, lease }, 'create', this.#options, this.#names);
    this.#parts.ledger.remember(request.call, like?.call);
    return { ...request, invoke: (filter, seen) => this.#counted(filter, request.invoke(filter, seen)) };
  }

  #counted(filter: BaseFilter, returned: unknown): unknown {
    const calls = this.#elsewhere.get(filter);
    if (calls !== undefined || (returned instanceof Promise && !isOfTheLedger(filter))) {
      this.#elsewhere.set(filter, (calls ?? 0) + 1);
    }
    return returned;
  }
}

/** Whether the check of a filter is that of `LedgerFilter`, which asks nobody but the ledger. */
function isOfTheLedger(filter: BaseFilter): boolean {
  return isLedgerFilter(filter) && filter.checkCreate === LedgerFilter.prototype.checkCreate;
}
