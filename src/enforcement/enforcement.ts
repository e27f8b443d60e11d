/**
 * The chain: load, create, update, commit, end, close. Whether a lease is allowed is decided in this file.
 */

import { isDeepStrictEqual } from 'node:util';
import type { ConfigSources } from '../config/sources.ts';
import type { Wait } from '../deadline.ts';
import { EnforcementClosedError, formatProblem } from '../errors.ts';
import { AccountList, accountText, projectOf } from '../filter/account-limits.ts';
import { isLedgerFilter } from '../filter/ledger-filter.ts';
import type { Decision, EndReport, Outcome } from '../filter/verdict.ts';
import type { Context, CreateRequest, EndRequest, Lease, UpdateRequest } from '../lease/lease.ts';
import { parseCreateRequest, parseEndRequest, parseUpdateRequest } from '../lease/parse-request.ts';
import { readOnly } from '../lease/read-only.ts';
import type { Claimant } from '../ledger/claimant.ts';
import { ledgerSection } from '../ledger/options.ts';
import { ChainOutbox } from '../ledger/outbox/chain-outbox.ts';
import { ChainLedger } from '../ledger/service.ts';
import { createLogger, type Logger } from '../logger.ts';
import type { Keystone } from '../openstack/contract.ts';
import type { Names } from '../openstack/names.ts';
import { NO_KEYSTONE } from '../openstack/no-keystone.ts';
import { keystoneSection } from '../openstack/options.ts';
import { callHook, callOnEnd } from './call-hook.ts';
import { type ChainedFilter, closeChain, openChain } from './chain.ts';
import type { CheckOptions } from './check-options.ts';
import type { Commits } from './commit.ts';
import { type Configuration, requireConfiguration, sectionOf } from './configuration.ts';
import { accepted, refused } from './decision.ts';
import { FAILED_MESSAGE } from './failure.ts';
import { createRequest, endRequest, type HookRequest, updateRequest } from './hook-request.ts';
import { keystoneOf, namesOf, projectIdsOf } from './keystone.ts';
import { describeChanges } from './lease-changes.ts';
import { logAudit } from './log-lines.ts';
import { withNames } from './named-request.ts';
import { Occupation } from './occupation.ts';
import { afterRound, outcomeOf } from './outcomes.ts';
import { createSharedServices, type EnforcementServices, type WatchedServices } from './services.ts';

/** If filters still change the lease in this round, they contradict each other. */
const MAX_ROUNDS = 5;

interface Parts {
  readonly chain: readonly ChainedFilter[];
  readonly ledger: ChainLedger;
  readonly keystone: Keystone | undefined;
  readonly names: Names | undefined;
  readonly outbox: ChainOutbox;
  readonly logger: Logger;
  readonly exemptProjects: readonly string[];
  /** `undefined` = no filter records leases. */
  readonly commits: Commits | undefined;
  /** Whether a check records the lease that it allows. */
  readonly commitsChecks: boolean;
}

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
  readonly #chain: readonly ChainedFilter[];
  readonly #exemptProjects: AccountList;
  readonly #exemptNames: readonly string[];
  readonly #logger: Logger;
  readonly #ledger: ChainLedger;
  readonly #outbox: ChainOutbox;
  readonly #commits: Commits | undefined;
  readonly #commitsChecks: boolean;
  #callsUnderWay = 0;
  #lastCallEnded: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  private constructor(parts: Parts) {
    this.keystone = parts.keystone;
    this.names = parts.names;
    this.#chain = parts.chain;
    this.#exemptProjects = new AccountList(parts.exemptProjects);
    this.#exemptNames = parts.exemptProjects;
    this.#logger = parts.logger;
    this.#ledger = parts.ledger;
    this.#outbox = parts.outbox;
    this.#commits = parts.commits;
    this.#commitsChecks = parts.commitsChecks;
  }

  /** For views of the ledger. `undefined` = no filter uses it. */
  get ledger(): ChainLedger | undefined {
    return this.#chain.some(({ filter }) => isLedgerFilter(filter)) ? this.#ledger : undefined;
  }

  /** The ledger with messages that filters have to deliver. `undefined` = no filter has any. */
  get outbox(): ChainLedger | undefined {
    return this.#outbox.isUsed ? this.#ledger : undefined;
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
    return projectIdsOf(this.#exemptNames, this.names && this.keystone);
  }

  /**
   * Reads the configuration and constructs its filters. Throws `ConfigurationError` with every mistake; logs warnings.
   */
  static async load(
    sources: ConfigSources = {},
    services: EnforcementServices = {},
  ): Promise<UsageEnforcement> {
    const configuration = await requireConfiguration(sources, [ledgerSection, keystoneSection]);
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
    const shared = createSharedServices(services);
    const { logger, clock } = shared;
    const ledgerOptions = sectionOf(configuration, ledgerSection);
    const keystone = await keystoneOf(configuration, shared);
    const names = await namesOf(configuration, keystone, { logger, clock, observer: services.namesObserver });
    const { ledgerObserver: observer } = services;
    const ledger = new ChainLedger(ledgerOptions, { logger, clock, observer });
    const outbox = new ChainOutbox({ ledger, logger, observer });
    const chain = await openChain(
      configuration,
      { ...shared, ledger, outbox, keystone: keystone ?? NO_KEYSTONE },
      services.occupation ?? new Occupation(),
    ).catch(async (thrown: unknown) => {
      await ledger.close();
      await keystone?.close();
      throw thrown;
    });
    const commits = chain.some(recordsLeases)
      ? new (await import('./commit.ts')).Commits({ chain, ledger, outbox, logger })
      : undefined;
    const { exemptProjects } = configuration;
    const commitsChecks = ledgerOptions.commit === 'check' && commits !== undefined;
    return new UsageEnforcement({
      ...{ chain, ledger, outbox, keystone, names, logger, exemptProjects, commits, commitsChecks },
    });
  }

  /**
   * Judges a lease that is about to be created. Records it if every filter allows it (`[ledger] commit`). Resolves to a
   * decision whatever a filter does. Throws `InvalidRequestError` if the request is malformed.
   */
  checkCreate(request: CreateRequest, options: CheckOptions = {}): Promise<Decision> {
    return this.#run(() => {
      const parsed = parseCreateRequest(request);
      return withNames(this.names, parsed.context, options, (names) =>
        this.#check(parsed, createRequest(parsed, 'create', options, names), options),
      );
    });
  }

  /** Like `checkCreate`, for a change of a lease. `currentLease` may also be called `current_lease`, as on the wire. */
  checkUpdate(request: UpdateRequest, options: CheckOptions = {}): Promise<Decision> {
    return this.#run(() => {
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
    return this.#run(() => {
      const parsed = parseCreateRequest(request);
      return withNames(this.names, parsed.context, options, (names) =>
        this.#commitUnchecked(parsed, createRequest(parsed, 'commit-create', options, names)),
      );
    });
  }

  /** Like `commitCreate`, for a change of a lease. */
  commitUpdate(request: UpdateRequest, options: CheckOptions = {}): Promise<Decision> {
    return this.#run(() => {
      const parsed = parseUpdateRequest(request);
      return withNames(this.names, parsed.context, options, (names) =>
        this.#commitUnchecked(parsed, updateRequest(parsed, 'commit-update', options, names)),
      );
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
    return this.#run(async () => {
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
    if (this.#callsUnderWay > 0) {
      await new Promise<void>((resolve) => {
        this.#lastCallEnded = resolve;
      });
    }
    await this.#commits?.settled();
    await this.#outbox.close();
    await closeChain(this.#chain, this.#logger);
    await this.#ledger.close();
    await this.keystone?.close();
  }

  async #run<Result>(call: () => Promise<Result>): Promise<Result> {
    if (this.#closing !== undefined) {
      throw new EnforcementClosedError();
    }
    this.#callsUnderWay += 1;
    try {
      return await call();
    } finally {
      this.#callsUnderWay -= 1;
      if (this.#callsUnderWay === 0) {
        this.#lastCallEnded?.();
      }
    }
  }

  #check(
    lease: CreateRequest | UpdateRequest,
    request: HookRequest,
    options: CheckOptions,
  ): Promise<Decision> {
    const decision = this.#decide(lease.lease, request, options);
    return this.#commitsChecks && options.dryRun !== true
      ? decision.then((decided) => this.#commit(decided, lease, request))
      : decision;
  }

  #commitUnchecked(lease: CreateRequest | UpdateRequest, request: HookRequest): Promise<Decision> {
    const unchecked =
      this.#exemption(lease.lease, request) ?? accepted(request.operation, lease.lease, false, []);
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

  /**
   * Asks the filters in order. If one changed the lease, asks all of them again about the result, until a round changes
   * nothing: every filter has then accepted exactly the lease that is returned.
   */
  async #decide(
    original: Lease,
    request: HookRequest,
    { explain = false, acceptsChanges = true }: CheckOptions,
  ): Promise<Decision> {
    const { operation } = request;
    const exemption = this.#exemption(original, request);
    if (exemption !== undefined) {
      return exemption;
    }

    const outcomes: Outcome[] = [];
    let lease = original;
    let view = readOnly(lease);
    let rejection: Outcome | undefined;
    let lastChange: Outcome | undefined;
    for (let round = 1; rejection === undefined; round += 1) {
      let changed = false;
      for (let position = 0; position < this.#chain.length; position += 1) {
        const member = this.#chain[position] as ChainedFilter;
        // After a rejection only audited filters are asked, while there is time: the operator wants to see what they would refuse.
        if (rejection !== undefined && !explain && (!member.audit || isOver(request.wait))) {
          continue;
        }
        const started = performance.now();
        const called = callHook(member, view, request, this.#logger);
        // Most filters answer at once, and `await` costs more than such a filter.
        const result = called instanceof Promise ? await called : called;
        const { verdict } = result;
        const proposal = verdict.allowed && !isSame(verdict.lease, lease) ? verdict.lease : undefined;
        const latest = outcomeOf(member, result, performance.now() - started, proposal !== undefined);
        const outcome = afterRound(outcomes[position], latest);
        outcomes[position] = outcome;
        if (member.audit) {
          logAudit(this.#logger, request, outcome);
        } else if (!outcome.allowed) {
          rejection ??= outcome;
        } else if (proposal !== undefined) {
          lease = proposal;
          view = readOnly(lease);
          lastChange = outcome;
          changed = true;
        }
      }
      if (!changed) {
        break;
      }
      if (round === MAX_ROUNDS && rejection === undefined && lastChange !== undefined) {
        const { filter } = lastChange;
        this.#logger.error({ operation, filter }, `filters kept changing the lease for ${MAX_ROUNDS} rounds`);
        rejection = { ...lastChange, allowed: false, failed: true, message: FAILED_MESSAGE };
      }
    }

    if (rejection !== undefined) {
      // The array has holes for filters that were not asked: `Object.values` skips them.
      return refused(operation, original, rejection, Object.values(outcomes));
    }
    if (lastChange !== undefined && !acceptsChanges) {
      const message = `The lease would be allowed with other values: ${describeChanges(original, lease)}.`;
      return refused(operation, original, { ...lastChange, message }, outcomes);
    }
    return accepted(operation, lease, lastChange !== undefined, outcomes);
  }

  #exemption(lease: Lease, { operation, context, call }: HookRequest): Decision | undefined {
    const project = projectOf(context, call.names);
    if (!this.#exemptProjects.has(project)) {
      return undefined;
    }
    const { project_id }: Context = context;
    const warning = `${capitalized(accountText(project))} is in exempt_projects: no filter was asked.`;
    this.#logger.info({ operation, project_id }, warning);
    return { ...accepted(operation, lease, false, []), exempt: true, warnings: [warning] };
  }
}

function capitalized(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

function isOver(wait: Wait): boolean {
  try {
    wait.throwIfOver();
    return false;
  } catch {
    return true;
  }
}

function recordsLeases({ filter }: ChainedFilter): boolean {
  return isLedgerFilter(filter) || filter.commitCreate !== undefined || filter.commitUpdate !== undefined;
}

/** Whether a filter has left the lease unchanged. An equal copy counts as unchanged. */
function isSame(answered: Lease | undefined, lease: Lease): boolean {
  return answered === undefined || isDeepStrictEqual(answered, lease);
}
