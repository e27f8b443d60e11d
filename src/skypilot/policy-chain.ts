/** The chain of policies: load, review, close. Everything that is refused or let through is decided in this file. */
import { isDeepStrictEqual } from 'node:util';
import type { Call } from '../base-filter.ts';
import { plainCopy } from '../config/tree.ts';
import { type Configuration, sectionOf } from '../configuration.ts';
import { type Deadline, inTime } from '../deadline.ts';
import { createFilterServices, type EnforcementServices } from '../enforcement.ts';
import { ConfigurationError, errorText } from '../errors.ts';
import { createLogger, type Logger } from '../logger.ts';
import { type AdminPolicy, isRejection } from './admin-policy.ts';
import { Config } from './config.ts';
import { skypilotOptions, skypilotSection } from './options.ts';
import { loadPolicies } from './policy-loader.ts';
import { MutatedUserRequest, type Task, type UserRequest } from './user-request.ts';
import type { ReceivedRequest } from './wire.ts';

const FAILED_MESSAGE = 'The request could not be checked. Please try again later, or ask the operator.';

/** What one policy said. */
export interface PolicyOutcome {
  readonly policy: string;
  readonly allowed: boolean;
  /** The reason of a rejection, the generic sentence of a failure, else `null`. */
  readonly message: string | null;
  /** The policy threw something else, took too long or answered nonsense. The cause is in the log. */
  readonly failed: boolean;
  readonly changed: boolean;
  readonly milliseconds: number;
}

/** The answer of the chain. */
export interface Review {
  readonly allowed: boolean;
  /** The request as the last policy returned it; when it was refused, as it came. */
  readonly task: Task;
  readonly skypilotConfig: Config;
  /** Whether it is another one than came. */
  readonly changed: boolean;
  /** Of the rejection or failure, for the user; `null` when allowed. */
  readonly message: string | null;
  /** The policy that rejected or failed; `null` when allowed. */
  readonly policy: string | null;
  readonly failed: boolean;
  /** One a policy that was asked, in order. */
  readonly outcomes: readonly PolicyOutcome[];
}

/** What is known of a call besides the request. */
export interface ReviewOptions {
  readonly deadline: Deadline;
  /** Stands in the log of what fails. */
  readonly requestId?: string | undefined;
}

interface Link {
  readonly name: string;
  readonly policy: AdminPolicy;
}

/** The request as one policy leaves it to the next. */
type State = Pick<Review, 'task' | 'skypilotConfig'>;

/** The policies of a configuration, in order. Safe to share between any number of concurrent calls. */
export class PolicyChain {
  readonly #chain: readonly Link[];
  readonly #logger: Logger;

  private constructor(chain: readonly Link[], logger: Logger) {
    this.#chain = chain;
    this.#logger = logger;
  }

  /** Constructs the policies of a configuration that is without mistakes. @throws ConfigurationError */
  static async fromConfiguration(
    configuration: Configuration,
    services: EnforcementServices = {},
  ): Promise<PolicyChain> {
    const { admin_policies } = sectionOf(configuration, skypilotSection);
    const { section } = skypilotSection;
    const { policies, problems } = await loadPolicies(
      admin_policies,
      section,
      Object.keys(skypilotOptions.shape),
    );
    if (problems.length > 0) {
      throw mistakes(problems);
    }
    const logger = services.logger ?? createLogger();
    const policyServices = createFilterServices({ ...services, logger });
    const chain: Link[] = [];
    for (const { policyClass } of policies) {
      const options = sectionOf(configuration, { section, schema: policyClass.options });
      try {
        chain.push({ name: policyClass.name, policy: new policyClass(options as never, policyServices) });
      } catch (thrown) {
        await new PolicyChain(chain, logger).close();
        throw mistakes([`${policyClass.name} could not be set up: ${errorText(thrown)}`]);
      }
    }
    return new PolicyChain(chain, logger);
  }

  /** Whether there is a policy at all. */
  get isEmpty(): boolean {
    return this.#chain.length === 0;
  }

  /**
   * Asks the policies in order, each about what the one before has made of the request. Whatever a policy does, a review
   * comes back.
   */
  async review(request: ReceivedRequest, { deadline, requestId }: ReviewOptions): Promise<Review> {
    const original: State = {
      task: request.task.value as Task,
      skypilotConfig: Config.fromDict(request.skypilotConfig.value as Task),
    };
    const outcomes: PolicyOutcome[] = [];
    let state = original;
    let changed = false;
    for (const link of this.#chain) {
      const started = performance.now();
      const answer = await this.#ask(link, state, request, deadline, requestId);
      const milliseconds = performance.now() - started;
      const { name: policy } = link;
      if ('message' in answer) {
        const { message, failed } = answer;
        outcomes.push({ policy, allowed: false, message, failed, changed: false, milliseconds });
        return { ...original, allowed: false, changed: false, message, policy, failed, outcomes };
      }
      const differs = !isSame(answer, state);
      changed ||= differs;
      outcomes.push({ policy, allowed: true, message: null, failed: false, changed: differs, milliseconds });
      state = answer;
    }
    return { ...state, allowed: true, changed, message: null, policy: null, failed: false, outcomes };
  }

  /** Lets every policy release what it holds. */
  async close(): Promise<void> {
    await Promise.all(
      this.#chain.map(async ({ name, policy }) => {
        try {
          await policy.close();
        } catch (thrown) {
          this.#logger.error({ policy: name, error: errorText(thrown) }, 'policy could not be closed');
        }
      }),
    );
  }

  async #ask(
    { name, policy }: Link,
    state: State,
    request: ReceivedRequest,
    deadline: Deadline,
    requestId: string | undefined,
  ): Promise<State | { message: string; failed: boolean }> {
    try {
      deadline.throwIfOver();
      const call: Call = deadline;
      const answer = policy.validateAndMutate(copyFor(state, request), call);
      const answered = await inTime(Promise.resolve(answer), deadline);
      deadline.throwIfOver();
      return stateOf(answered);
    } catch (thrown) {
      if (isRejection(thrown) && thrown.message !== '') {
        return { message: thrown.message, failed: false };
      }
      // Nothing of the request stands here: its configuration holds tokens and the names of others.
      const known = requestId === undefined ? {} : { request_id: requestId };
      this.#logger.error({ ...known, policy: name, error: errorText(thrown) }, 'policy failed');
      if (thrown instanceof Error) {
        this.#logger.debug({ policy: name, stack: thrown.stack }, 'policy failed');
      }
      return { message: FAILED_MESSAGE, failed: true };
    }
  }
}

/** Its own copy for each policy: what it keeps and changes later reaches nobody. */
function copyFor({ task, skypilotConfig }: State, request: ReceivedRequest): UserRequest {
  const { requestOptions, user } = request;
  return {
    task: plainCopy(task),
    skypilotConfig: Config.fromDict(skypilotConfig.toDict()),
    requestName: request.requestName,
    requestOptions: requestOptions && { ...requestOptions },
    atClientSide: request.atClientSide,
    user: user && { ...user },
    clientApiVersion: request.clientApiVersion,
    clientVersion: request.clientVersion,
  };
}

/** What a policy has returned, copied. Throws a `TypeError` for anything else. */
function stateOf(answer: unknown): State {
  if (!(answer instanceof MutatedUserRequest) && !isLike(answer)) {
    throw new TypeError('expected a MutatedUserRequest as the answer');
  }
  const { task, skypilotConfig } = answer;
  const config = 'toDict' in skypilotConfig && typeof skypilotConfig.toDict === 'function';
  return {
    task: plainCopy(task),
    skypilotConfig: Config.fromDict(config ? (skypilotConfig as Config).toDict() : (skypilotConfig as Task)),
  };
}

/** One that was made by another copy of the package, or by hand. */
function isLike(answer: unknown): answer is MutatedUserRequest {
  return (
    isObject(answer) &&
    'task' in answer &&
    isObject(answer.task) &&
    'skypilotConfig' in answer &&
    isObject(answer.skypilotConfig)
  );
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSame(a: State, b: State): boolean {
  return (
    isDeepStrictEqual(a.task, b.task) &&
    isDeepStrictEqual(a.skypilotConfig.toDict(), b.skypilotConfig.toDict())
  );
}

function mistakes(messages: readonly string[]): ConfigurationError {
  const { section } = skypilotSection;
  return new ConfigurationError(
    messages.map((message) => ({ severity: 'error', section, option: 'admin_policies', message })),
  );
}
