/** Loads the policies, reviews requests and closes the policies. Every decision is made in this file. */
import { isDeepStrictEqual } from 'node:util';
import { type Deadline, inTime } from '../deadline.ts';
import { type Configuration, sectionOf } from '../enforcement/configuration.ts';
import type { EnforcementServices } from '../enforcement/services.ts';
import { ConfigurationError, errorText } from '../errors.ts';
import { createLogger, type Logger } from '../logger.ts';
import type { Mapping } from '../yaml/tree.ts';
import type { Answer, Question } from './call-policy.ts';
import { Config } from './config.ts';
import { skypilotOptions, skypilotSection } from './options.ts';
import { loadPolicies } from './policy-loader.ts';
import { type PolicyRunner, startPolicy } from './policy-runner.ts';
import { SecretValues } from './secrets.ts';
import type { Task } from './user-request.ts';
import { encodeAnswer, type ReceivedRequest } from './wire.ts';

/** The message for the user, and whether something failed. */
interface Refusal {
  readonly message: string;
  readonly failed: boolean;
}

const FAILED: Refusal = {
  message: 'The request could not be checked. Please try again later, or ask the operator.',
  failed: true,
};

/** Maximum length of a reason or a cause, in characters: it is searched for secrets. */
const MAX_TEXT = 8000;

/** The result of one policy. */
export interface PolicyOutcome {
  readonly policy: string;
  readonly allowed: boolean;
  /** The reason for a rejection, a generic sentence for a failure, otherwise `null`. */
  readonly message: string | null;
  /** The policy threw another error, took too long or returned an invalid answer. The cause is in the log. */
  readonly failed: boolean;
  readonly changed: boolean;
  readonly milliseconds: number;
}

/** The result of all policies. */
export interface Review {
  readonly allowed: boolean;
  /** As the last policy returned it; if refused, the original. */
  readonly task: Task;
  readonly skypilotConfig: Config;
  /** Whether task or configuration differ from the original. */
  readonly changed: boolean;
  /** The message for the user; `null` when allowed. */
  readonly message: string | null;
  /** The policy that rejected or failed; `null` when allowed. */
  readonly policy: string | null;
  readonly failed: boolean;
  /** The response to SkyPilot; `null` when refused. */
  readonly answer: string | null;
  /** One for each policy that was called, in order. */
  readonly outcomes: readonly PolicyOutcome[];
}

/** Context of a call. */
export interface ReviewOptions {
  readonly deadline: Deadline;
  /** Added to the log line of a failure. */
  readonly requestId?: string | undefined;
}

/** The request as one policy passes it to the next. */
type State = Exclude<Answer, { rejected: string }>;

/** The policies of a configuration, in order. Safe for concurrent calls. */
export class PolicyChain {
  readonly #chain: readonly PolicyRunner[];
  readonly #logger: Logger;

  private constructor(chain: readonly PolicyRunner[], logger: Logger) {
    this.#chain = chain;
    this.#logger = logger;
  }

  /** Constructs the policies of a valid configuration. @throws ConfigurationError */
  static async fromConfiguration(
    configuration: Configuration,
    services: EnforcementServices = {},
  ): Promise<PolicyChain> {
    const { admin_policies } = sectionOf(configuration, skypilotSection);
    const { policies, problems } = await loadPolicies(
      admin_policies,
      skypilotSection.section,
      Object.keys(skypilotOptions.shape),
    );
    if (problems.length > 0) {
      throw mistakes(problems);
    }
    const logger = services.logger ?? createLogger();
    const started = await Promise.allSettled(
      policies.map((policy) => startPolicy(policy, configuration, { ...services, logger })),
    );
    const chain = started.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    const wrong = started.flatMap((one, index) => {
      const name = policies[index]?.policyClass.name;
      return one.status === 'rejected' ? `${name} could not be set up: ${causeOf(one.reason)}` : [];
    });
    const made = new PolicyChain(chain, logger);
    if (wrong.length > 0) {
      await made.close();
      throw mistakes(wrong);
    }
    return made;
  }

  /** Whether there are no policies. */
  get isEmpty(): boolean {
    return this.#chain.length === 0;
  }

  /** Calls the policies in order, each with the result of the previous one. Never throws because of a policy. */
  async review(request: ReceivedRequest, options: ReviewOptions): Promise<Review> {
    const original: State = {
      task: request.task.value as Task,
      skypilotConfig: request.skypilotConfig.value as Mapping,
    };
    const outcomes: PolicyOutcome[] = [];
    let state = original;
    for (const runner of this.#chain) {
      const started = performance.now();
      const answer = await this.#ask(runner, questionOf(state, request), request, options);
      const milliseconds = performance.now() - started;
      const { name: policy } = runner;
      if ('message' in answer) {
        outcomes.push({ policy, ...answer, allowed: false, changed: false, milliseconds });
        return refused(original, outcomes, policy, answer);
      }
      const changed = !isSame(answer, state);
      outcomes.push({ policy, allowed: true, message: null, failed: false, changed, milliseconds });
      state = answer;
    }
    // A policy may revert what another one changed.
    const changed = outcomes.some((outcome) => outcome.changed) && !isSame(state, original);
    try {
      const reviewed = withConfig(state);
      const answer = encodeAnswer(request, reviewed);
      return {
        ...reviewed,
        allowed: true,
        changed,
        message: null,
        policy: null,
        failed: false,
        answer,
        outcomes,
      };
    } catch (thrown) {
      // The result is larger or deeper than SkyPilot can be expected to read.
      const guilty = outcomes.findLast((outcome) => outcome.changed)?.policy ?? null;
      this.#logFailure(guilty, thrown, options.requestId, (text) => hideIn(text, state, request));
      const failures = outcomes.map((outcome) =>
        outcome.policy === guilty ? { ...outcome, ...FAILED, allowed: false, changed: false } : outcome,
      );
      return refused(original, failures, guilty, FAILED);
    }
  }

  /** Closes all policies. */
  async close(): Promise<void> {
    await Promise.all(
      this.#chain.map(async (runner) => {
        try {
          await runner.close();
        } catch (thrown) {
          this.#logger.error({ policy: runner.name, error: causeOf(thrown) }, 'policy could not be closed');
        }
      }),
    );
  }

  async #ask(
    runner: PolicyRunner,
    question: Question,
    request: ReceivedRequest,
    { deadline, requestId }: ReviewOptions,
  ): Promise<State | Refusal> {
    try {
      deadline.throwIfOver();
      const asked = runner.ask(question, deadline);
      const answer = asked instanceof Promise ? await inTime(asked, deadline) : asked;
      deadline.throwIfOver();
      return 'rejected' in answer
        ? { message: hideIn(answer.rejected, question, request), failed: false }
        : answer;
    } catch (thrown) {
      this.#logFailure(runner.name, thrown, requestId, (text) => hideIn(text, question, request));
      return FAILED;
    }
  }

  /** Logs only what the policy itself says about the request, without secrets. */
  #logFailure(
    policy: string | null,
    thrown: unknown,
    requestId: string | undefined,
    hide: (text: string) => string,
  ): void {
    const known = requestId === undefined ? {} : { request_id: requestId };
    this.#logger.error({ ...known, policy, error: hide(causeOf(thrown)) }, 'policy failed');
    if (thrown instanceof Error) {
      this.#logger.debug({ ...known, policy, stack: hide(String(thrown.stack)) }, 'policy failed');
    }
  }
}

function refused(
  original: State,
  outcomes: readonly PolicyOutcome[],
  policy: string | null,
  refusal: Refusal,
): Review {
  return {
    ...withConfig(original),
    ...refusal,
    allowed: false,
    changed: false,
    policy,
    answer: null,
    outcomes,
  };
}

function withConfig({ task, skypilotConfig }: State): Pick<Review, 'task' | 'skypilotConfig'> {
  return { task, skypilotConfig: Config.fromDict(skypilotConfig) };
}

function questionOf(state: State, request: ReceivedRequest): Question {
  const { requestName, requestOptions, atClientSide, user, clientApiVersion, clientVersion } = request;
  return { ...state, requestName, requestOptions, atClientSide, user, clientApiVersion, clientVersion };
}

/** Hides secrets in a policy's text: those of the request and those that policies added. */
function hideIn(text: string, { task, skypilotConfig }: State, request: ReceivedRequest): string {
  const asked = [request.task.value, request.skypilotConfig.value];
  return SecretValues.of(...asked, task, skypilotConfig).hideIn(text.slice(0, MAX_TEXT));
}

/** Anything can be thrown, including values without a string form. */
function causeOf(thrown: unknown): string {
  try {
    return errorText(thrown);
  } catch {
    return 'the error has no text';
  }
}

function isSame(a: State, b: State): boolean {
  return isDeepStrictEqual(a.task, b.task) && isDeepStrictEqual(a.skypilotConfig, b.skypilotConfig);
}

function mistakes(messages: readonly string[]): ConfigurationError {
  const { section } = skypilotSection;
  return new ConfigurationError(
    messages.map((message) => ({ severity: 'error', section, option: 'admin_policies', message })),
  );
}
