/**
 * The chain: load, create, update, end. Everything that is refused or let through is decided in this file.
 */
import { isDeepStrictEqual } from 'node:util';
import type { BaseFilter, Call, Clock, FilterServices } from './base-filter.ts';
import type { ConfigSources } from './config/sources.ts';
import { type Configuration, requireConfiguration } from './configuration.ts';
import { type Deadline, inTime, type Wait, waitFor } from './deadline.ts';
import { accepted, auditWarning, describeChanges, refused } from './decision.ts';
import { ConfigurationError, errorText, formatProblem } from './errors.ts';
import { createHttpClient, type HttpClientOptions, type HttpObserver } from './http/client.ts';
import {
  type Context,
  type CreateRequest,
  type EndRequest,
  type Lease,
  parseCreateRequest,
  parseEndRequest,
  parseUpdateRequest,
  type UpdateRequest,
} from './lease.ts';
import { createLogger, type Logger } from './logger.ts';
import { readOnly, withoutViews } from './read-only.ts';
import { type Decision, type EndReport, isVerdict, type Outcome, reject, type Verdict } from './verdict.ts';

/** After so many rounds filters that keep changing a lease are taken to contradict each other. */
const MAX_ROUNDS = 5;

const FAILED_MESSAGE = 'The lease could not be checked. Please try again later, or ask the operator.';

/** How a request is to be judged. */
export interface CheckOptions {
  /** Ends the wait: what has not answered by then has failed. Handed to every filter. */
  readonly signal?: AbortSignal | undefined;
  /** In place of a signal: one that is made only if something waits for it. */
  readonly deadline?: Deadline | undefined;
  /** Ask all filters, also behind the first rejection. Default false. */
  readonly explain?: boolean;
  /**
   * Whether the caller can go on with another lease than it sent. Where it can't, a change is a rejection that names
   * the values to set. Default true.
   */
  readonly acceptsChanges?: boolean;
  /** Stands in the log of what fails. */
  readonly requestId?: string | undefined;
}

/** What the chain needs from outside, each with a default. */
export interface EnforcementServices {
  /** Default: JSON lines on standard error, warnings and errors. */
  readonly logger?: Logger;
  /** Default: the system's clock. */
  readonly clock?: Clock;
  /** Is told of every call that filters make to other services. Default: nobody is. */
  readonly httpObserver?: HttpObserver | undefined;
}

/** What filters, and policies, are given. */
export function createFilterServices({ logger, clock, httpObserver }: EnforcementServices): FilterServices {
  return {
    logger: logger ?? createLogger(),
    clock: clock ?? { now: () => new Date() },
    http: { createClient: (options: HttpClientOptions) => createHttpClient(options, httpObserver) },
  };
}

interface Link {
  readonly name: string;
  readonly filter: BaseFilter;
  readonly audit: boolean;
}

/** What the filters are asked, one by one. */
interface Question {
  readonly operation: Decision['operation'];
  readonly context: Context;
  readonly requestId: string | undefined;
  readonly wait: Wait;
  readonly ask: (filter: BaseFilter, lease: Lease, call: Call) => unknown;
  /** Throws if a lease, as a filter has changed it, can't be judged. */
  readonly verify: (changed: Lease) => unknown;
}

/** The enabled filters, in order, ready to judge leases. Safe to share between any number of concurrent calls. */
export class UsageEnforcement {
  readonly #chain: readonly Link[];
  readonly #exemptProjects: ReadonlySet<string>;
  readonly #logger: Logger;

  private constructor(chain: readonly Link[], exemptProjects: readonly string[], logger: Logger) {
    this.#chain = chain;
    this.#exemptProjects = new Set(exemptProjects);
    this.#logger = logger;
  }

  /**
   * Reads the configuration and constructs its filters. Throws `ConfigurationError` with every mistake; logs what is
   * only a warning.
   */
  static async load(
    sources: ConfigSources = {},
    services: EnforcementServices = {},
  ): Promise<UsageEnforcement> {
    const configuration = await requireConfiguration(sources);
    const logger = services.logger ?? createLogger();
    for (const problem of configuration.problems) {
      logger.warn(formatProblem(problem));
    }
    return UsageEnforcement.fromConfiguration(configuration, { ...services, logger });
  }

  /** Constructs the filters of a configuration that `requireConfiguration` has returned. */
  static async fromConfiguration(
    configuration: Configuration,
    services: EnforcementServices = {},
  ): Promise<UsageEnforcement> {
    const filterServices = createFilterServices(services);
    const { logger } = filterServices;
    const chain: Link[] = [];
    for (const { installed, options, audit } of configuration.filters) {
      const { name, filterClass } = installed;
      try {
        const filter = new filterClass(options as never, filterServices);
        chain.push({ name, audit, filter });
        await filter.open();
      } catch (thrown) {
        await closeAll(chain, logger);
        if (thrown instanceof ConfigurationError) {
          throw thrown;
        }
        throw new ConfigurationError([
          {
            severity: 'error',
            section: 'enforcement',
            option: 'enabled_filters',
            message: `${name} could not be set up: ${errorText(thrown)}`,
          },
        ]);
      }
    }
    return new UsageEnforcement(chain, configuration.exemptProjects, logger);
  }

  /**
   * Judges a lease that is about to be created. Whatever a filter does, a decision comes back; only a request that
   * is none throws (`InvalidRequestError`).
   */
  async checkCreate(request: CreateRequest, options: CheckOptions = {}): Promise<Decision> {
    const { context, lease } = parseCreateRequest(request);
    const seen = readOnly(context);
    return this.#decide(lease, options, {
      operation: 'create',
      context,
      requestId: options.requestId,
      wait: options.deadline ?? waitFor(options.signal),
      ask: (filter, proposed, call) => filter.checkCreate(seen, proposed, call),
      verify: (changed) => parseCreateRequest({ context, lease: changed }),
    });
  }

  /** Judges a change of a lease. `currentLease` may also be called `current_lease`, as on the wire. */
  async checkUpdate(request: UpdateRequest, options: CheckOptions = {}): Promise<Decision> {
    const { context, currentLease, lease } = parseUpdateRequest(request);
    const seen = readOnly(context);
    const current = readOnly(currentLease);
    return this.#decide(lease, options, {
      operation: 'update',
      context,
      requestId: options.requestId,
      wait: options.deadline ?? waitFor(options.signal),
      ask: (filter, proposed, call) => filter.checkUpdate(seen, current, proposed, call),
      verify: (changed) => parseUpdateRequest({ context, currentLease, lease: changed }),
    });
  }

  /** Tells every filter that a lease has ended, all at the same time: none can keep another from hearing it. */
  async onEnd(
    request: EndRequest,
    options: Pick<CheckOptions, 'signal' | 'deadline' | 'requestId'> = {},
  ): Promise<EndReport> {
    const { context, lease } = parseEndRequest(request);
    const wait = options.deadline ?? waitFor(options.signal);
    const seen = readOnly(context);
    const ended = readOnly(lease);
    const outcomes = await Promise.all(
      this.#chain.map(async (link): Promise<Outcome> => {
        const started = performance.now();
        let failed = false;
        try {
          const told = link.filter.onEnd(seen, ended, wait);
          if (isThenable(told)) {
            await inTime(told, wait);
          }
        } catch (thrown) {
          failed = true;
          const { requestId } = options;
          this.#logFailure(link, { operation: 'end', context, requestId }, thrown);
        }
        const message = failed ? `${link.name} could not be told that the lease has ended.` : null;
        const milliseconds = performance.now() - started;
        return {
          filter: link.name,
          allowed: !failed,
          message,
          failed,
          onError: false,
          audit: link.audit,
          changed: false,
          milliseconds,
        };
      }),
    );
    const warnings = outcomes.flatMap(({ message }) => message ?? []);
    return { operation: 'end', failed: warnings.length > 0, warnings, outcomes };
  }

  /** Lets every filter release what it holds. The chain must not be asked afterwards. */
  async close(): Promise<void> {
    await closeAll(this.#chain, this.#logger);
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
    if (this.#exemptProjects.has(context.project_id)) {
      const warning = `Project ${context.project_id} is in exempt_projects: no filter was asked.`;
      this.#logger.info({ operation, project_id: context.project_id }, warning);
      return { ...accepted(operation, original, false, []), exempt: true, warnings: [warning] };
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
        const started = performance.now();
        const asked = this.#ask(link, seen, question);
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
          this.#logAudit(question, outcome);
          continue;
        }
        if (!outcome.allowed) {
          rejection ??= outcome;
          if (!explain) {
            break;
          }
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
      return refused(operation, original, rejection, outcomes);
    }
    if (lastChange !== undefined && !acceptsChanges) {
      const message = `The lease would be allowed with other values: ${await describeChanges(original, lease)}.`;
      return refused(operation, original, { ...lastChange, message }, outcomes);
    }
    return accepted(operation, lease, lastChange !== undefined, outcomes);
  }

  /** One filter's verdict on a lease. Whatever goes wrong is a failure, and a failure is a rejection. */
  #ask(link: Link, lease: Lease, question: Question): Answer | Promise<Answer> {
    const { wait, ask, verify } = question;
    const failure = (thrown: unknown): Answer => {
      this.#logFailure(link, question, thrown);
      return { verdict: reject(FAILED_MESSAGE), failed: true };
    };
    try {
      wait.throwIfOver();
      const answer = ask(link.filter, lease, wait);
      if (isThenable(answer)) {
        return inTime(answer, wait)
          .then((late) => verified(late, verify))
          .catch(failure);
      }
      wait.throwIfOver();
      return verified(answer, verify);
    } catch (thrown) {
      return failure(thrown);
    }
  }

  #logAudit({ operation, context }: Question, outcome: Outcome): void {
    for (const warning of auditWarning(outcome)) {
      this.#logger.warn({ operation, filter: outcome.filter, project_id: context.project_id }, warning);
    }
  }

  #logFailure(
    { name }: Link,
    { operation, context, requestId }: Pick<Question, 'context' | 'requestId'> & { operation: string },
    thrown: unknown,
  ): void {
    const { project_id, user_id } = context;
    const request = requestId === undefined ? {} : { request_id: requestId };
    const error = errorText(thrown);
    this.#logger.error({ ...request, operation, filter: name, project_id, user_id, error }, 'filter failed');
    if (thrown instanceof Error) {
      this.#logger.debug({ filter: name, stack: thrown.stack }, 'filter failed');
    }
  }
}

/** One filter's verdict; `failed` when it is ours, since the filter had none. */
interface Answer {
  readonly verdict: Verdict;
  readonly failed: boolean;
}

/** What a hook returned, as a verdict on a lease that can be judged. Throws for anything else. */
function verified(answer: unknown, verify: Question['verify']): Answer {
  if (!isVerdict(answer)) {
    throw new TypeError('expected allow(), allow(lease) or reject(message) as the answer');
  }
  if (!answer.allowed || answer.lease === undefined) {
    return { verdict: answer, failed: false };
  }
  const lease = withoutViews(answer.lease);
  verify(lease);
  return { verdict: { ...answer, lease }, failed: false };
}

/** Whether a filter has left the lease as it was; one that returns an equal lease has. */
function isSame(answered: Lease | undefined, lease: Lease): boolean {
  return answered === undefined || isDeepStrictEqual(answered, lease);
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

async function closeAll(chain: readonly Link[], logger: Logger): Promise<void> {
  await Promise.all(
    chain.map(async ({ name, filter }) => {
      try {
        await filter.close();
      } catch (thrown) {
        logger.error({ filter: name, error: errorText(thrown) }, 'filter could not be closed');
      }
    }),
  );
}
