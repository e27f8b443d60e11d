/** The chain of policies: load, review, close. Everything that is refused or let through is decided in this file. */
import { isDeepStrictEqual } from 'node:util';
import type { Call } from '../base-filter.ts';
import { isMapping, type Mapping, plainCopy } from '../config/tree.ts';
import { type Configuration, sectionOf } from '../configuration.ts';
import { type Deadline, inTime } from '../deadline.ts';
import { ConfigurationError, errorText } from '../errors.ts';
import { createLogger, type Logger } from '../logger.ts';
import { createSharedServices, type EnforcementServices } from '../services.ts';
import { type AdminPolicy, isRejection } from './admin-policy.ts';
import { Config } from './config.ts';
import { skypilotOptions, skypilotSection } from './options.ts';
import { loadPolicies } from './policy-loader.ts';
import type { Task, UserRequest } from './user-request.ts';
import { encodeAnswer, type ReceivedRequest } from './wire.ts';

/** Why not, and whether that is because something broke. */
interface Refusal {
  readonly message: string;
  readonly failed: boolean;
}

const FAILED: Refusal = {
  message: 'The request could not be checked. Please try again later, or ask the operator.',
  failed: true,
};

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
  /** What SkyPilot is to be answered; `null` when it was refused. */
  readonly answer: string | null;
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
    const policyServices = createSharedServices({ ...services, logger });
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
    for (const link of this.#chain) {
      const started = performance.now();
      const answer = await this.#ask(link, state, request, deadline, requestId);
      const milliseconds = performance.now() - started;
      const { name: policy } = link;
      if ('message' in answer) {
        outcomes.push({ policy, ...answer, allowed: false, changed: false, milliseconds });
        return refused(original, outcomes, policy, answer);
      }
      const changed = !isSame(answer, state);
      outcomes.push({ policy, allowed: true, message: null, failed: false, changed, milliseconds });
      state = answer;
    }
    // One policy may take back what another one did.
    const changed = outcomes.some((outcome) => outcome.changed) && !isSame(state, original);
    try {
      const answer = encodeAnswer(request, state);
      return {
        ...state,
        allowed: true,
        changed,
        message: null,
        policy: null,
        failed: false,
        answer,
        outcomes,
      };
    } catch (thrown) {
      // More, or deeper, than SkyPilot could be expected to read.
      const guilty = outcomes.findLast((outcome) => outcome.changed)?.policy ?? null;
      this.#logFailure(guilty, thrown, requestId);
      const failures = outcomes.map((outcome) =>
        outcome.policy === guilty ? { ...outcome, ...FAILED, allowed: false, changed: false } : outcome,
      );
      return refused(original, failures, guilty, FAILED);
    }
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
  ): Promise<State | Refusal> {
    try {
      deadline.throwIfOver();
      const call: Call = deadline;
      const answer: unknown = policy.validateAndMutate(copyFor(state, request), call);
      // Copied in the moment in which it is there: what the policy does to it afterwards is no part of it.
      const answered = isPromise(answer)
        ? ((await inTime(Promise.resolve(answer).then(stateOf), deadline)) as State)
        : stateOf(answer);
      deadline.throwIfOver();
      return answered;
    } catch (thrown) {
      if (isRejection(thrown) && typeof thrown.message === 'string' && thrown.message !== '') {
        return { message: thrown.message, failed: false };
      }
      this.#logFailure(name, thrown, requestId);
      return FAILED;
    }
  }

  /** Nothing of the request stands here: its configuration holds tokens and the names of others. */
  #logFailure(policy: string | null, thrown: unknown, requestId: string | undefined): void {
    const known = requestId === undefined ? {} : { request_id: requestId };
    this.#logger.error({ ...known, policy, error: causeOf(thrown) }, 'policy failed');
    if (thrown instanceof Error) {
      this.#logger.debug({ ...known, policy, stack: thrown.stack }, 'policy failed');
    }
  }
}

function refused(
  original: State,
  outcomes: readonly PolicyOutcome[],
  policy: string | null,
  refusal: Refusal,
): Review {
  return { ...original, ...refusal, allowed: false, changed: false, policy, answer: null, outcomes };
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

/** What a policy has returned, copied: of this copy of the package, of another, or made by hand. Throws for anything else. */
function stateOf(answer: unknown): State {
  if (!isMapping(answer)) {
    throw new TypeError('expected a MutatedUserRequest as the answer');
  }
  const { task, skypilotConfig } = answer;
  return {
    task: mappingCopy('task', task),
    skypilotConfig: Config.fromDict(mappingCopy('skypilotConfig', dictOf(skypilotConfig))),
  };
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return isMapping(value) && typeof value.then === 'function';
}

function dictOf(config: unknown): unknown {
  return isMapping(config) && typeof config.toDict === 'function' ? config.toDict() : config;
}

function mappingCopy(name: keyof State, value: unknown): Mapping {
  if (!isMapping(value)) {
    throw new TypeError(`expected a mapping as ${name} of the answer`);
  }
  return plainCopy(value);
}

/** Anything can be thrown, and not all of it has a text. */
function causeOf(thrown: unknown): string {
  try {
    return errorText(thrown);
  } catch {
    return 'what was thrown has no text';
  }
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
