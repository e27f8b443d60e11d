/**
 * A request to the library: validated, checked by the chain, recorded, and answered. The filters are called
 * in `chain/chain.ts`.
 */

import { EnforcementClosedError, formatProblem } from '../base/errors.ts';
import { createLogger } from '../base/logger.ts';
import { nearestName } from '../config/nearest.ts';
import type { ConfigSources } from '../config/sources.ts';
import { isLedgerFilter, isOnlyOfTheLedger } from '../filter/base-filter.ts';
import type { Clock } from '../filter/services.ts';
import type { Decision, EndReport } from '../filter/verdict.ts';
import { toInstant } from '../lease/dates.ts';
import { type CreateRequest, type EndRequest, IS_CHANGING, type UpdateRequest } from '../lease/lease.ts';
import { parseCreateRequest, parseEndRequest, parseUpdateRequest } from '../lease/request.ts';
import type { Claimant } from '../ledger/ledger-request.ts';
import { ledgerSection } from '../ledger/options.ts';
import type { ChainLedger } from '../ledger/service.ts';
import type { Keystone } from '../openstack/contract.ts';
import type { Names } from '../openstack/names.ts';
import { keystoneSection } from '../openstack/options.ts';
import { accepted, decide, refused, tellEnd } from './chain/chain.ts';
import { type CheckOptions, checkRequest, endRequest, type HookRequest } from './chain/hook.ts';
import { type Configuration, requireConfiguration } from './configuration.ts';
import type { EstimateOptions } from './estimate/trial.ts';
import type { Estimate } from './estimate/ways.ts';
import { projectIdsOf } from './keystone.ts';
import { closeChain, openParts, type Parts } from './loading/parts.ts';
import type { Notifications } from './notifications/notifications.ts';
import { notificationsSection } from './notifications/options.ts';
import type { EnforcementServices, WatchedServices } from './services.ts';

/** So many leases in a row are not built by a Blazar that has not committed one. */
const MANY_UNCOMMITTED = 20;

/**
 * The enabled filters, in order, ready to check leases. Calls may run concurrently.
 *
 * After `close()` every call rejects with an `EnforcementClosedError`.
 */
export class UsageEnforcement {
  /** `undefined` = `[keystone]` is not set. Closed by `close()`. */
  readonly keystone: Keystone | undefined;
  /** `undefined` = `[keystone] resolve_names` is false. */
  readonly names: Names | undefined;
  readonly clock: Clock;
  /** `undefined` = `[notifications]` is not set. Closed by `close()`. */
  readonly notifications: Notifications | undefined;
  readonly #parts: Parts;
  /** From this position on, a commit checks all that these filters' checks would. */
  readonly #judgedByCommit: number;
  /** Whether several filters use the ledger: it is read once for all of them. */
  readonly #sharesLedger: boolean;
  /** How many leases were allowed before the first commit. */
  #uncommitted = 0;
  /** Calls that are not answered yet: closing waits for them. */
  #calls = 0;
  #lastEnded: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  private constructor(parts: Parts) {
    this.keystone = parts.keystone;
    this.names = parts.names;
    this.clock = parts.clock;
    this.notifications = parts.notifications;
    this.#parts = parts;
    this.#judgedByCommit = parts.chain.findLastIndex(({ filter }) => !isOnlyOfTheLedger(filter)) + 1;
    this.#sharesLedger = parts.chain.filter(({ filter }) => isLedgerFilter(filter)).length > 1;
  }

  /** For views of the ledger. `undefined` = no filter uses it. */
  get ledger(): ChainLedger | undefined {
    return this.#parts.chain.some(({ filter }) => isLedgerFilter(filter)) ? this.#parts.ledger : undefined;
  }

  /** The ledger with messages of filters and `[notifications]` to deliver. `undefined` = no senders. */
  get outbox(): ChainLedger | undefined {
    return this.#parts.outbox.isUsed ? this.#parts.ledger : undefined;
  }

  /** Whether this process delivers messages of this sender. */
  delivers(sender: string): boolean {
    return this.#parts.outbox.isSender(sender);
  }

  /** Starts delivering the outbox. `load` calls it; a process that only reads leases must not. */
  deliver(): void {
    this.#parts.ledger.verifyStored();
    this.#parts.outbox.deliver();
  }

  /** Leaves the rest of the outbox to a successor. `onEnd` may still be called. Never rejects. */
  stopDelivering(): Promise<void> {
    return this.#parts.outbox.stop();
  }

  /** The filters with shared limits: for recording leases that were granted without them. */
  get claimants(): readonly Claimant[] {
    return this.#parts.commits?.claimants ?? [];
  }

  /** The ids of the projects in `exempt_projects`. Throws if Keystone does not resolve a name. */
  exemptProjectIds(): Promise<readonly string[]> {
    return projectIdsOf(this.#parts.exemptions.projects, this.names && this.keystone);
  }

  /**
   * Reads the configuration and constructs its filters. Throws `ConfigurationError` with every mistake; logs
   * warnings.
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

  /** Constructs the filters of a configuration from `requireConfiguration`. */
  static async fromConfiguration(
    configuration: Configuration,
    services: WatchedServices = {},
  ): Promise<UsageEnforcement> {
    return new UsageEnforcement(await openParts(configuration, services));
  }

  /**
   * Checks a lease that is about to be created, and records it if every filter allows it (`[ledger] commit`).
   * Resolves to a decision whatever a filter does. Throws `InvalidRequestError` if the request is malformed.
   */
  checkCreate(request: CreateRequest, options: CheckOptions = {}): Promise<Decision> {
    return this.#judge('create', request, options);
  }

  /** Like `checkCreate`, for a change of a lease. `currentLease` may also be `current_lease`, as in HTTP requests. */
  checkUpdate(request: UpdateRequest, options: CheckOptions = {}): Promise<Decision> {
    return this.#judge('update', request, options);
  }

  /**
   * Records a lease that a check has allowed, if checks do not record (`[ledger] commit = request`). Verifies
   * shared limits again; does not call other filters again. Changes nothing if the lease is already recorded.
   */
  commitCreate(request: CreateRequest, options: CheckOptions = {}): Promise<Decision> {
    return this.#judge('commit-create', request, options);
  }

  /** Like `commitCreate`, for a change of a lease. */
  commitUpdate(request: UpdateRequest, options: CheckOptions = {}): Promise<Decision> {
    return this.#judge('commit-update', request, options);
  }

  /** Where checks record nothing, limits that leases share count only what is committed: stock Blazar commits nothing. */
  #watchCommits(isCheck: boolean, { allowed, exempt }: Decision): void {
    if (!isCheck) {
      this.#uncommitted = Number.NEGATIVE_INFINITY;
    } else if (allowed && !exempt && this.#parts.commits !== undefined) {
      this.#uncommitted += 1;
      if (this.#uncommitted === MANY_UNCOMMITTED) {
        this.#parts.logger.error(
          { leases: MANY_UNCOMMITTED },
          'leases are allowed and none is committed: limits that leases share do not count them; for a Blazar that sends no commits, remove [ledger] commit = request',
        );
      }
    }
  }

  /** One request, from its parts as they came to the decision. */
  async #judge(operation: Decision['operation'], input: unknown, options: CheckOptions): Promise<Decision> {
    this.#begin(options);
    try {
      const isNew = operation === 'create' || operation === 'commit-create';
      const isCheck = operation === 'create' || operation === 'update';
      const change = isNew ? undefined : parseUpdateRequest(input);
      const parsed = change ?? parseCreateRequest(input);
      const names = this.names && (await this.names.of(parsed.context, options.deadline));
      const request = checkRequest(operation, parsed, options, names);
      const records = !isCheck || (this.#parts.commitsChecks && options.dryRun !== true);
      if (isCheck && this.#sharesLedger) {
        this.#parts.ledger.remember(request.call);
      }
      // Recorded leases are checked once, with the project locked.
      const { explain, acceptsChanges } = options;
      const askedUpTo = records && explain !== true ? this.#judgedByCommit : this.#parts.chain.length;
      const how = { explain, acceptsChanges, askedUpTo };
      const judged =
        this.#parts.exemptions.of(parsed.lease, request) ??
        (isCheck
          ? await decide(this.#parts.chain, parsed.lease, request, how, this.#parts.logger)
          : accepted(operation, parsed.lease, false, []));
      const checked = change && isCheck && !options.dryRun ? this.#unlessChanging(judged, change) : judged;
      const decision = records ? await this.#commit(checked, parsed, request) : checked;
      if (change && checked.allowed && !decision.allowed) {
        this.#parts.changes?.forget(change);
      }
      if (!this.#parts.commitsChecks && options.dryRun !== true) {
        this.#watchCommits(isCheck, decision);
      }
      return names === undefined ? decision : { ...decision, names };
    } finally {
      this.#end();
    }
  }

  /** Refuses a change that an enforced filter has allowed, if Blazar may be making another one of the lease. */
  #unlessChanging(decision: Decision, change: UpdateRequest): Decision {
    const { operation, allowed, exempt, lease, outcomes } = decision;
    const enforced = outcomes.find(({ audit }) => !audit);
    const now = toInstant(this.clock.now()) ?? 0n;
    const isChecked = allowed && !exempt && enforced !== undefined;
    if (!isChecked || this.#parts.changes?.admits({ ...change, lease }, now) !== false) {
      return decision;
    }
    const refusing = { ...enforced, allowed: false, message: IS_CHANGING };
    const others = outcomes.map((outcome) => (outcome === enforced ? refusing : outcome));
    return refused(operation, change.lease, refusing, others);
  }

  /** Records the lease of a decision that allows it. Any other decision is returned unchanged. */
  async #commit(
    decision: Decision,
    lease: CreateRequest | UpdateRequest,
    request: HookRequest,
  ): Promise<Decision> {
    if (!decision.allowed || decision.exempt || this.#parts.commits === undefined) {
      return decision;
    }
    const committed = await this.#parts.commits.commit(
      decision,
      { ...lease, lease: decision.lease },
      request,
    );
    return committed.allowed ? committed : { ...committed, lease: lease.lease, changed: false };
  }

  /**
   * What a new lease, or a change of one, would cost, and whether it would be allowed; if not, similar leases
   * that would be. Records nothing. Filters that call other services are called at most three times. Throws
   * `InvalidRequestError` if the request is malformed.
   */
  async estimate(request: CreateRequest | UpdateRequest, options: EstimateOptions = {}): Promise<Estimate> {
    this.#begin(options);
    try {
      const isChange = 'currentLease' in request || 'current_lease' in request;
      const parsed = isChange ? parseUpdateRequest(request) : parseCreateRequest(request);
      const names = await this.names?.of(parsed.context, options.deadline);
      // Checks do not need it.
      const { estimate } = await import('./estimate/estimate.ts');
      const parts = {
        chain: this.#parts.chain,
        exemptions: this.#parts.exemptions,
        ledger: this.#parts.ledger,
        claimants: this.claimants,
        logger: this.#parts.logger,
        now: toInstant(this.clock.now()) ?? 0n,
      };
      return await estimate(parts, parsed, options, names);
    } finally {
      this.#end();
    }
  }

  /**
   * Calls `onEnd` of every filter, concurrently: a filter that hangs or fails does not affect the others.
   * With `dryRun`, skips filters that record leases or messages in the ledger.
   */
  async onEnd(
    request: EndRequest,
    options: Pick<CheckOptions, 'signal' | 'deadline' | 'requestId' | 'dryRun'> = {},
  ): Promise<EndReport> {
    this.#begin(options);
    try {
      const parsed = parseEndRequest(request);
      const names = await this.names?.of(parsed.context, options.deadline);
      const members = options.dryRun
        ? this.#parts.chain.filter(
            ({ name, filter }) => !isLedgerFilter(filter) && !this.#parts.outbox.isSender(name),
          )
        : this.#parts.chain;
      const outcomes = await tellEnd(members, endRequest(parsed, options, names), this.#parts.logger);
      const warnings = outcomes.flatMap(({ message }) => message ?? []);
      const report: EndReport = { operation: 'end', failed: warnings.length > 0, warnings, outcomes };
      return names === undefined ? report : { ...report, names };
    } finally {
      this.#end();
    }
  }

  #begin(options: CheckOptions): void {
    if (this.#closing !== undefined) {
      throw new EnforcementClosedError();
    }
    requireCheckOptions(options);
    this.#calls += 1;
  }

  #end(): void {
    this.#calls -= 1;
    if (this.#calls === 0) {
      this.#lastEnded?.();
    }
  }

  /**
   * Waits until all calls in progress have been answered, then closes the filters and the ledger. A filter
   * that never answers blocks it, unless its call has a `deadline` or a `signal`. May be called more than
   * once.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#calls > 0) {
      await new Promise<void>((resolve) => {
        this.#lastEnded = resolve;
      });
    }
    await this.#parts.commits?.settled();
    await this.notifications?.settle();
    await this.#parts.outbox.close();
    await this.notifications?.close();
    await closeChain(this.#parts.chain, this.#parts.logger);
    await this.#parts.ledger.close();
    await this.keystone?.close();
    this.#parts.logger.close();
  }
}

const TYPES = new Map<string, 'boolean' | 'string' | 'object'>(
  Object.entries({
    signal: 'object',
    deadline: 'object',
    explain: 'boolean',
    acceptsChanges: 'boolean',
    dryRun: 'boolean',
    requestId: 'string',
    idempotencyKey: 'string',
  } as const satisfies Record<keyof CheckOptions, string>),
);

/**
 * From JavaScript: with `dry_run`, or `dryRun: 1`, the lease would be recorded. Unknown names are refused even if their
 * value is `undefined`: a mistyped name would otherwise show only once it has a value. @throws TypeError
 */
function requireCheckOptions(options: CheckOptions): void {
  for (const [name, value] of Object.entries(options)) {
    const type = TYPES.get(name);
    if (type === undefined) {
      throw new TypeError(`${name}: unknown option of a call${nearestName(name, [...TYPES.keys()])}`);
    }
    if (value !== undefined && (value === null || typeof value !== type)) {
      const expected = type === 'object' ? 'an object' : `a ${type}`;
      throw new TypeError(`${name}: expected ${expected}, got ${value === null ? 'null' : typeof value}`);
    }
  }
}
