/**
 * The chain: load, create, update, end. Everything that is refused or let through is decided in this file.
 */

import { isDeepStrictEqual } from 'node:util';
import type { ConfigSources } from '../config/sources.ts';
import { type Wait, waitFor } from '../deadline.ts';
import { formatProblem } from '../errors.ts';
import { isLedgerFilter } from '../filter/ledger-filter.ts';
import type { LeaseRequest } from '../filter/services.ts';
import type { Decision, EndReport, Outcome } from '../filter/verdict.ts';
import type { Context, CreateRequest, EndRequest, Lease, UpdateRequest } from '../lease/lease.ts';
import { parseCreateRequest, parseEndRequest, parseUpdateRequest } from '../lease/parse-request.ts';
import { readOnly } from '../lease/read-only.ts';
import { ledgerSection } from '../ledger/options.ts';
import type { Claimant } from '../ledger/prospect.ts';
import { ChainLedger } from '../ledger/service.ts';
import { createLogger, type Logger } from '../logger.ts';
import {
  askFilter,
  creating,
  FAILED_MESSAGE,
  logAudit,
  type Question,
  tellOfEnd,
  updating,
} from './ask-filter.ts';
import { closeChain, type Link, openChain } from './chain.ts';
import type { CheckOptions } from './check-options.ts';
import type { Commits } from './commit.ts';
import { type Configuration, requireConfiguration, sectionOf } from './configuration.ts';
import { accepted, describeChanges, refused } from './decision.ts';
import { Occupation } from './occupation.ts';
import { RequestCall } from './request-call.ts';
import { createSharedServices, type EnforcementServices, type WatchedServices } from './services.ts';

/** After so many rounds filters that keep changing a lease are taken to contradict each other. */
const MAX_ROUNDS = 5;

/** What a chain is made of. */
interface Parts {
  readonly chain: readonly Link[];
  readonly ledger: ChainLedger;
  readonly logger: Logger;
  readonly exemptProjects: readonly string[];
  /** `undefined` = nothing is kept of leases. */
  readonly commits: Commits | undefined;
  /** Whether a check records what it allows. */
  readonly commitsChecks: boolean;
}

/** The enabled filters, in order, ready to judge leases. Safe to share between any number of concurrent calls. */
export class UsageEnforcement {
  readonly #chain: readonly Link[];
  readonly #exemptProjects: ReadonlySet<string>;
  readonly #logger: Logger;
  readonly #ledger: ChainLedger;
  readonly #commits: Commits | undefined;
  readonly #commitsChecks: boolean;

  private constructor({ chain, ledger, logger, exemptProjects, commits, commitsChecks }: Parts) {
    this.#chain = chain;
    this.#exemptProjects = new Set(exemptProjects);
    this.#logger = logger;
    this.#ledger = ledger;
    this.#commits = commits;
    this.#commitsChecks = commitsChecks;
  }

  /** For those who show what it holds; `undefined` where no filter needs it. */
  get ledger(): ChainLedger | undefined {
    return this.#chain.some(({ filter }) => isLedgerFilter(filter)) ? this.#ledger : undefined;
  }

  /** The filters whose limits leases share: for those who record leases that were granted without them. */
  get claimants(): readonly Claimant[] {
    return this.#commits?.claimants ?? [];
  }

  /**
   * Reads the configuration and constructs its filters. Throws `ConfigurationError` with every mistake; logs what is
   * only a warning.
   */
  static async load(
    sources: ConfigSources = {},
    services: EnforcementServices = {},
  ): Promise<UsageEnforcement> {
    const configuration = await requireConfiguration(sources, [ledgerSection]);
    const logger = services.logger ?? createLogger();
    for (const problem of configuration.problems) {
      logger.warn(formatProblem(problem));
    }
    return UsageEnforcement.fromConfiguration(configuration, { ...services, logger });
  }

  /** Constructs the filters of a configuration that `requireConfiguration` has returned. */
  static async fromConfiguration(
    configuration: Configuration,
    services: WatchedServices = {},
  ): Promise<UsageEnforcement> {
    const shared = createSharedServices(services);
    const { logger, clock } = shared;
    const ledgerOptions = sectionOf(configuration, ledgerSection);
    const ledger = new ChainLedger(ledgerOptions, { logger, clock, observer: services.ledgerObserver });
    const chain = await openChain(
      configuration,
      { ...shared, ledger },
      services.occupation ?? new Occupation(),
    ).catch(async (thrown: unknown) => {
      await ledger.close();
      throw thrown;
    });
    const commits = chain.some(keepsSomething)
      ? new (await import('./commit.ts')).Commits({ chain, ledger, logger })
      : undefined;
    const { exemptProjects } = configuration;
    const commitsChecks = ledgerOptions.commit === 'check' && commits !== undefined;
    return new UsageEnforcement({ chain, ledger, logger, exemptProjects, commits, commitsChecks });
  }

  /**
   * Judges a lease that is about to be created, and records it when every filter has allowed it (`[ledger] commit`). Whatever
   * a filter does, a decision comes back; only a request that is none throws (`InvalidRequestError`).
   */
  async checkCreate(request: CreateRequest, options: CheckOptions = {}): Promise<Decision> {
    const parsed = parseCreateRequest(request);
    const question = creating(parsed, 'create', options);
    const decision = this.#decide(parsed.lease, options, question);
    return this.#commitsChecks && options.dryRun !== true
      ? this.#commit(await decision, parsed, question)
      : decision;
  }

  /** Judges a change of a lease, and records it as `checkCreate` does. `currentLease` may also be called `current_lease`, as on the wire. */
  async checkUpdate(request: UpdateRequest, options: CheckOptions = {}): Promise<Decision> {
    const parsed = parseUpdateRequest(request);
    const question = updating(parsed, 'update', options);
    const decision = this.#decide(parsed.lease, options, question);
    return this.#commitsChecks && options.dryRun !== true
      ? this.#commit(await decision, parsed, question)
      : decision;
  }

  /**
   * Records a lease that a check has allowed, where checks record nothing (`[ledger] commit = request`). Limits that leases
   * share are verified once more; the other filters are not asked again. What is recorded already stays as it is.
   */
  async commitCreate(request: CreateRequest, options: CheckOptions = {}): Promise<Decision> {
    const parsed = parseCreateRequest(request);
    const question = creating(parsed, 'commit-create', options);
    return this.#commit(this.#unasked(parsed, 'commit-create'), parsed, question);
  }

  /** As `commitCreate`, for a change of a lease. */
  async commitUpdate(request: UpdateRequest, options: CheckOptions = {}): Promise<Decision> {
    const parsed = parseUpdateRequest(request);
    const question = updating(parsed, 'commit-update', options);
    return this.#commit(this.#unasked(parsed, 'commit-update'), parsed, question);
  }

  /**
   * Tells every filter that a lease has ended, all at the same time: none can keep another from hearing it. With `dryRun` those
   * that keep it in the ledger are left out.
   */
  async onEnd(
    request: EndRequest,
    options: Pick<CheckOptions, 'signal' | 'deadline' | 'requestId' | 'dryRun'> = {},
  ): Promise<EndReport> {
    const { context, lease } = parseEndRequest(request);
    const { requestId } = options;
    const wait = options.deadline ?? waitFor(options.signal);
    const call = new RequestCall(wait, undefined, [context, lease]);
    const seen = readOnly(context);
    const ended = readOnly(lease);
    const told =
      options.dryRun === true ? this.#chain.filter(({ filter }) => !isLedgerFilter(filter)) : this.#chain;
    const outcomes = await Promise.all(
      told.map((link) =>
        tellOfEnd(link, { context: seen, lease: ended }, { requestId, wait, call }, this.#logger),
      ),
    );
    const warnings = outcomes.flatMap(({ message }) => message ?? []);
    return { operation: 'end', failed: warnings.length > 0, warnings, outcomes };
  }

  /** Lets every filter release what it holds, and then the ledger. The chain must not be asked afterwards. */
  async close(): Promise<void> {
    await this.#commits?.settled();
    await closeChain(this.#chain, this.#logger);
    await this.#ledger.close();
  }

  /**
   * Asks the filters in order, and once more on the result when one changed the lease, until a round changes nothing:
   * then every filter has accepted exactly the lease that is returned.
   */
  async #decide(
    original: Lease,
    { explain = false, acceptsChanges = true }: CheckOptions,
    question: Question,
  ): Promise<Decision> {
    const { operation, context } = question;
    const exemption = this.#exemption(operation, context, original);
    if (exemption !== undefined) {
      return exemption;
    }

    const outcomes: Outcome[] = [];
    let lease = original;
    let seen = readOnly(lease);
    let rejection: Outcome | undefined;
    let lastChange: Outcome | undefined;
    for (let round = 1; rejection === undefined; round += 1) {
      let changed = false;
      for (let position = 0; position < this.#chain.length; position += 1) {
        const link = this.#chain[position] as Link;
        // After a rejection only audited filters are asked, while there is time: the operator wants to see what they would refuse.
        if (rejection !== undefined && !explain && (!link.audit || isOver(question.wait))) {
          continue;
        }
        const started = performance.now();
        const asked = askFilter(link, seen, question, this.#logger);
        // Most filters answer at once, and waiting for what is there costs more than such a filter.
        const { verdict, failed } = asked instanceof Promise ? await asked : asked;
        const proposal = verdict.allowed && !isSame(verdict.lease, lease) ? verdict.lease : undefined;
        const before = outcomes[position];
        const outcome: Outcome = {
          filter: link.name,
          allowed: verdict.allowed,
          message: verdict.allowed ? null : verdict.message,
          failed,
          onError: (verdict.allowed && verdict.onError === true) || before?.onError === true,
          audit: link.audit,
          changed: proposal !== undefined || before?.changed === true,
          milliseconds: (before?.milliseconds ?? 0) + performance.now() - started,
        };
        outcomes[position] = outcome;
        if (link.audit) {
          logAudit(this.#logger, question, outcome);
          continue;
        }
        if (!outcome.allowed) {
          rejection ??= outcome;
        } else if (proposal !== undefined) {
          lease = proposal;
          seen = readOnly(lease);
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
      // Filters that were not asked have left holes.
      return refused(operation, original, rejection, Object.values(outcomes));
    }
    if (lastChange !== undefined && !acceptsChanges) {
      const message = `The lease would be allowed with other values: ${describeChanges(original, lease)}.`;
      return refused(operation, original, { ...lastChange, message }, outcomes);
    }
    return accepted(operation, lease, lastChange !== undefined, outcomes);
  }

  /** Records what is allowed; a refusal stays one. */
  async #commit(decision: Decision, request: LeaseRequest, question: Question): Promise<Decision> {
    if (!decision.allowed || decision.exempt || this.#commits === undefined) {
      return decision;
    }
    const committed = await this.#commits.commit(decision, { ...request, lease: decision.lease }, question);
    return committed.allowed ? committed : { ...committed, lease: request.lease, changed: false };
  }

  /** What there is to say of a lease before anything is recorded. */
  #unasked({ context, lease }: CreateRequest, operation: Decision['operation']): Decision {
    return this.#exemption(operation, context, lease) ?? accepted(operation, lease, false, []);
  }

  #exemption(operation: Decision['operation'], { project_id }: Context, lease: Lease): Decision | undefined {
    if (!this.#exemptProjects.has(project_id)) {
      return undefined;
    }
    const warning = `Project ${project_id} is in exempt_projects: no filter was asked.`;
    this.#logger.info({ operation, project_id }, warning);
    return { ...accepted(operation, lease, false, []), exempt: true, warnings: [warning] };
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

/** Whether a filter is told of what is allowed, and not only asked. */
function keepsSomething({ filter }: Link): boolean {
  return isLedgerFilter(filter) || filter.commitCreate !== undefined || filter.commitUpdate !== undefined;
}

/** Whether a filter has left the lease as it was; one that returns an equal lease has. */
function isSame(answered: Lease | undefined, lease: Lease): boolean {
  return answered === undefined || isDeepStrictEqual(answered, lease);
}
