/** The chain: create, update, commit, estimate, end, close. What the filters answer is put together in `decide.ts`. */

import type { ConfigSources } from '../config/sources.ts';
import { formatProblem } from '../errors.ts';
import { isLedgerFilter, isOnlyOfTheLedger } from '../filter/ledger-filter.ts';
import type { Clock } from '../filter/services.ts';
import type { Decision, EndReport } from '../filter/verdict.ts';
import type { CreateRequest, EndRequest, Lease, UpdateRequest } from '../lease/lease.ts';
import { parseCreateRequest, parseEndRequest, parseUpdateRequest } from '../lease/parse-request.ts';
import type { Claimant } from '../ledger/ledger-request.ts';
import { ledgerSection } from '../ledger/options.ts';
import type { ChainOutbox } from '../ledger/outbox/chain-outbox.ts';
import type { ChainLedger } from '../ledger/service.ts';
import { createLogger, type Logger } from '../logger.ts';
import type { Notifications } from '../notifications/notifications.ts';
import { notificationsSection } from '../notifications/options.ts';
import type { Keystone } from '../openstack/contract.ts';
import type { Names } from '../openstack/names.ts';
import { keystoneSection } from '../openstack/options.ts';
import { callOnEnd } from './call-hook.ts';
import { CallsUnderWay } from './calls-under-way.ts';
import { type ChainedFilter, closeChain } from './chain.ts';
import type { CheckOptions } from './check-options.ts';
import type { Commits } from './commit.ts';
import { type Configuration, requireConfiguration } from './configuration.ts';
import { decide } from './decide.ts';
import { accepted } from './decision.ts';
import type { Estimate } from './estimate/contract.ts';
import type { EstimateOptions } from './estimate/trial.ts';
import type { Exemptions } from './exemptions.ts';
import { createRequest, endRequest, type HookRequest, updateRequest } from './hook-request.ts';
import { projectIdsOf } from './keystone.ts';
import { withNames } from './named-request.ts';
import { openParts, type Parts } from './parts.ts';
import type { EnforcementServices, WatchedServices } from './services.ts';

/**
 * The enabled filters, in order, ready to judge leases. Any number of calls may run at the same time.
 *
 * After `close()` every call rejects with an `EnforcementClosedError`, whatever the filters are.
 */
export class UsageEnforcement {
  /** `undefined` = `[keystone]` is not set. Closed by `close()`. */
  readonly keystone: Keystone | undefined;
  /** `undefined` = `[keystone] resolve_names` is false. */
  readonly names: Names | undefined;
  /** That of the filters. */
  readonly clock: Clock;
  /** `undefined` = `[notifications]` is not set. Closed by `close()`. */
  readonly notifications: Notifications | undefined;
  readonly #chain: readonly ChainedFilter[];
  readonly #exemptions: Exemptions;
  readonly #logger: Logger;
  readonly #ledger: ChainLedger;
  readonly #outbox: ChainOutbox;
  readonly #commits: Commits | undefined;
  readonly #commitsChecks: boolean;
  /** From this position on, a commit asks nothing but what the checks of these filters would. */
  readonly #judgedByCommit: number;
  /** Whether several filters ask the ledger: it is read once for all of them. */
  readonly #sharesLedger: boolean;
  readonly #calls = new CallsUnderWay();
  #closing: Promise<void> | undefined;

  private constructor(parts: Parts) {
    this.keystone = parts.keystone;
    this.names = parts.names;
    this.clock = parts.clock;
    this.notifications = parts.notifications;
    this.#chain = parts.chain;
    this.#exemptions = parts.exemptions;
    this.#logger = parts.logger;
    this.#ledger = parts.ledger;
    this.#outbox = parts.outbox;
    this.#commits = parts.commits;
    this.#commitsChecks = parts.commitsChecks;
    this.#judgedByCommit = parts.chain.findLastIndex(({ filter }) => !isOnlyOfTheLedger(filter)) + 1;
    this.#sharesLedger = parts.chain.filter(({ filter }) => isLedgerFilter(filter)).length > 1;
  }

  /** For views of the ledger. `undefined` = no filter uses it. */
  get ledger(): ChainLedger | undefined {
    return this.#chain.some(({ filter }) => isLedgerFilter(filter)) ? this.#ledger : undefined;
  }

  /** The ledger with messages that filters and `[notifications]` have to deliver. `undefined` = nobody has any. */
  get outbox(): ChainLedger | undefined {
    return this.#outbox.isUsed ? this.#ledger : undefined;
  }

  /** Whether messages of this sender in the outbox are delivered here. */
  delivers(sender: string): boolean {
    return this.#outbox.isSender(sender);
  }

  /** Starts delivering what the outbox holds. `load` does so; a process that only looks at leases must not. */
  deliver(): void {
    this.#outbox.deliver();
  }

  /** Leaves the rest of the outbox to a successor. Ends may still be reported. Never rejects. */
  stopDelivering(): Promise<void> {
    return this.#outbox.stop();
  }

  /** The filters whose limits leases share: for recording leases that were granted without them. */
  get claimants(): readonly Claimant[] {
    return this.#commits?.claimants ?? [];
  }

  /** The ids of the projects in `exempt_projects`. Throws if Keystone does not tell that of a name. */
  exemptProjectIds(): Promise<readonly string[]> {
    return projectIdsOf(this.#exemptions.projects, this.names && this.keystone);
  }

  /**
   * Reads the configuration and constructs its filters. Throws `ConfigurationError` with every mistake; logs warnings.
   */
  static async load(
    sources: ConfigSources = {},
    services: EnforcementServices = {},
  ): Promise<UsageEnforcement> {
    const configuration = await requireConfiguration(sources, [
      ledgerSection,
      keystoneSection,
      notificationsSection,
    ]);
    const logger = services.logger ?? createLogger();
    for (const problem of configuration.problems) {
      logger.warn(formatProblem(problem));
    }
    const enforcement = await UsageEnforcement.fromConfiguration(configuration, { ...services, logger });
    enforcement.deliver();
    return enforcement;
  }

  /** Constructs the filters of a configuration that `requireConfiguration` has returned. */
  static async fromConfiguration(
    configuration: Configuration,
    services: WatchedServices = {},
  ): Promise<UsageEnforcement> {
    return new UsageEnforcement(await openParts(configuration, services));
  }

  /**
   * Judges a lease that is about to be created. Records it if every filter allows it (`[ledger] commit`). Resolves to a
   * decision whatever a filter does. Throws `InvalidRequestError` if the request is malformed.
   */
  checkCreate(request: CreateRequest, options: CheckOptions = {}): Promise<Decision> {
    return this.#calls.run(() => {
      const parsed = parseCreateRequest(request);
      return withNames(this.names, parsed.context, options, (names) =>
        this.#check(parsed, createRequest(parsed, 'create', options, names), options),
      );
    });
  }

  /** Like `checkCreate`, for a change of a lease. `currentLease` may also be called `current_lease`, as on the wire. */
  checkUpdate(request: UpdateRequest, options: CheckOptions = {}): Promise<Decision> {
    return this.#calls.run(() => {
      const parsed = parseUpdateRequest(request);
      return withNames(this.names, parsed.context, options, (names) =>
        this.#check(parsed, updateRequest(parsed, 'update', options, names), options),
      );
    });
  }

  /**
   * Records a lease that a check has allowed, if checks do not record (`[ledger] commit = request`). Verifies the limits that
   * leases share once more; does not ask other filters again. Changes nothing if the lease is recorded already.
   */
  commitCreate(request: CreateRequest, options: CheckOptions = {}): Promise<Decision> {
    return this.#calls.run(() => {
      const parsed = parseCreateRequest(request);
      return withNames(this.names, parsed.context, options, (names) =>
        this.#commitUnchecked(parsed, createRequest(parsed, 'commit-create', options, names)),
      );
    });
  }

  /** Like `commitCreate`, for a change of a lease. */
  commitUpdate(request: UpdateRequest, options: CheckOptions = {}): Promise<Decision> {
    return this.#calls.run(() => {
      const parsed = parseUpdateRequest(request);
      return withNames(this.names, parsed.context, options, (names) =>
        this.#commitUnchecked(parsed, updateRequest(parsed, 'commit-update', options, names)),
      );
    });
  }

  /**
   * What a new lease would cost, and whether it would be allowed; for one that would be refused, leases near it that would be allowed.
   * Records nothing. Filters that call other services are asked at most three times. Throws `InvalidRequestError` if the request is malformed.
   */
  estimate(request: CreateRequest, options: EstimateOptions = {}): Promise<Estimate> {
    return this.#calls.run(async () => {
      const parsed = parseCreateRequest(request);
      const names = await this.names?.of(parsed.context, options.deadline);
      // Checks do not need it.
      const { estimate } = await import('./estimate/estimate.ts');
      const parts = {
        ...{ chain: this.#chain, exemptions: this.#exemptions, ledger: this.#ledger },
        ...{ claimants: this.claimants, logger: this.#logger },
      };
      return estimate(parts, parsed, options, names);
    });
  }

  /**
   * Tells every filter that a lease has ended, all at the same time: a filter that hangs or fails does not affect the others. With
   * `dryRun`, filters that record leases or messages in the ledger are left out.
   */
  onEnd(
    request: EndRequest,
    options: Pick<CheckOptions, 'signal' | 'deadline' | 'requestId' | 'dryRun'> = {},
  ): Promise<EndReport> {
    return this.#calls.run(async () => {
      const parsed = parseEndRequest(request);
      return withNames<EndReport>(this.names, parsed.context, options, async (names) => {
        const end = endRequest(parsed, options, names);
        const members = options.dryRun
          ? this.#chain.filter(({ name, filter }) => !isLedgerFilter(filter) && !this.#outbox.isSender(name))
          : this.#chain;
        const outcomes = await Promise.all(members.map((member) => callOnEnd(member, end, this.#logger)));
        const warnings = outcomes.flatMap(({ message }) => message ?? []);
        return { operation: 'end', failed: warnings.length > 0, warnings, outcomes };
      });
    });
  }

  /**
   * Waits until every running call has been answered, then closes the filters and the ledger. A filter that never answers blocks
   * it, unless its call has a `deadline` or a `signal`. May be called more than once.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#calls.close();
    await this.#commits?.settled();
    await this.notifications?.settle();
    await this.#outbox.close();
    await this.notifications?.close();
    await closeChain(this.#chain, this.#logger);
    await this.#ledger.close();
    await this.keystone?.close();
  }

  #check(
    lease: CreateRequest | UpdateRequest,
    request: HookRequest,
    options: CheckOptions,
  ): Decision | Promise<Decision> {
    const records = this.#commitsChecks && options.dryRun !== true;
    // What is recorded is judged once, with the project locked.
    const left = records && options.explain !== true ? this.#judgedByCommit : this.#chain.length;
    if (this.#sharesLedger) {
      this.#ledger.remember(request.call);
    }
    const decision = this.#decide(lease.lease, request, options, left);
    if (!records) {
      return decision;
    }
    return decision instanceof Promise
      ? decision.then((decided) => this.#commit(decided, lease, request))
      : this.#commit(decision, lease, request);
  }

  #commitUnchecked(lease: CreateRequest | UpdateRequest, request: HookRequest): Promise<Decision> {
    const unchecked =
      this.#exemptions.of(lease.lease, request) ?? accepted(request.operation, lease.lease, false, []);
    return this.#commit(unchecked, lease, request);
  }

  /** Records the lease of a decision that allows it. Any other decision is returned as it is. */
  async #commit(
    decision: Decision,
    lease: CreateRequest | UpdateRequest,
    request: HookRequest,
  ): Promise<Decision> {
    if (!decision.allowed || decision.exempt || this.#commits === undefined) {
      return decision;
    }
    const committed = await this.#commits.commit(decision, { ...lease, lease: decision.lease }, request);
    return committed.allowed ? committed : { ...committed, lease: lease.lease, changed: false };
  }

  #decide(
    lease: Lease,
    request: HookRequest,
    options: CheckOptions,
    left: number,
  ): Decision | Promise<Decision> {
    return (
      this.#exemptions.of(lease, request) ?? decide(this.#chain, lease, request, options, this.#logger, left)
    );
  }
}
