/** The policies of a configuration: constructs them, calls them for each request, and closes them. */
import { isDeepStrictEqual } from 'node:util';
import { inTime } from '../../base/deadline.ts';
import { ConfigurationError, type Problem } from '../../base/errors.ts';
import { LimitedLogger } from '../../base/limited-logger.ts';
import { createLogger } from '../../base/logger.ts';
import { mistakesAt } from '../../config/option-groups.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import type { OpenLaunchLedger } from '../charging/open-launch-ledger.ts';
import { ConfigValidation, VALIDATION } from '../config/config-validation.ts';
import { skypilotOptions } from '../options.ts';
import { encodeTexts, type ReceivedRequest } from '../request/wire.ts';
import {
  FAILED,
  originalOf,
  type PolicyOutcome,
  type RefusedBy,
  type Review,
  refusedOutcome,
  reviewOf,
  type State,
} from '../review.ts';
import { SecretValues } from '../secrets.ts';
import { skypilotSection } from '../section.ts';
import { causeText } from './call-policy.ts';
import { changesOf, joinedChanges } from './changes.ts';
import { Exemptions } from './exemptions.ts';
import {
  type Call,
  type ChainedPolicy,
  known,
  PolicyEvaluation,
  type ReviewOptions,
} from './policy-evaluation.ts';
import { loadPolicies, type NamedPolicy } from './policy-loader.ts';
import { type PolicyRunnerServices, startPolicy } from './policy-runner.ts';

export type { PolicyOutcome, Review } from '../review.ts';

/** The policies of a configuration, in order. Safe for concurrent calls. */
export class PolicyChain {
  readonly #chain: readonly ChainedPolicy[];
  readonly #exemptions: Exemptions;
  readonly #validation: ConfigValidation;
  readonly #asking: PolicyEvaluation;
  /** Limited for each policy: users cause its lines. */
  readonly #logger: LimitedLogger;
  /** Charges launches; `undefined` = no policy charges any. Closed by `close()`. */
  readonly launches: OpenLaunchLedger | undefined;

  private constructor(
    chain: readonly ChainedPolicy[],
    exemptions: Exemptions,
    validation: ConfigValidation,
    logger: LimitedLogger,
    launches?: OpenLaunchLedger,
  ) {
    this.#chain = chain;
    this.#exemptions = exemptions;
    this.#validation = validation;
    this.#asking = new PolicyEvaluation(validation, launches, logger);
    this.#logger = logger;
    this.launches = launches;
  }

  /**
   * Constructs the policies of a valid configuration. `recordsLaunches`: charge launches in the ledger; not
   * for a process that only tries policies. Default: no. @throws ConfigurationError
   */
  static async fromConfiguration(
    configuration: Configuration,
    services: PolicyRunnerServices & { readonly recordsLaunches?: boolean } = {},
  ): Promise<PolicyChain> {
    const options = sectionOf(configuration, skypilotSection);
    const { policies: named, problems } = await loadPolicies(
      options.admin_policies,
      skypilotSection.section,
      Object.keys(skypilotOptions.shape),
    );
    if (problems.length > 0) {
      throw mistakesAt(problems.map(mistake), configuration.settings);
    }
    const logger = services.logger ?? createLogger();
    const limited = new LimitedLogger(logger, 'policy');
    const charges = ({ policyClass }: NamedPolicy) => policyClass.needs?.includes('ledger') === true;
    // Launches are charged as the other policies leave them.
    const policies = [...named.filter((one) => !charges(one)), ...named.filter(charges)];
    const audited = new Set(options.audit_policies);
    const launches = policies.some(charges)
      ? await (await import('../charging/open-launch-ledger.ts')).openLaunchLedger(configuration, {
          ...services,
          logger,
        })
      : undefined;
    const started = await Promise.allSettled(
      policies.map((policy) =>
        startPolicy(policy, configuration, {
          ...services,
          logger: limited,
          launches: audited.has(policy.policyClass.name) ? launches?.tried : launches,
        }),
      ),
    );
    const chain = started.flatMap((one, index): ChainedPolicy | [] => {
      const policy = policies[index];
      return one.status === 'fulfilled' && policy !== undefined
        ? {
            runner: one.value,
            audit: audited.has(one.value.name),
            charges: charges(policy),
            isAskedOnce: policy.policyClass.askedOnce === true,
          }
        : [];
    });
    const wrong = started.flatMap((one, index): readonly Problem[] => {
      if (one.status === 'fulfilled') {
        return [];
      }
      const cause: unknown = one.reason;
      return cause instanceof ConfigurationError
        ? cause.problems
        : [mistake(`${policies[index]?.policyClass.name} could not be set up: ${causeText(cause)}`)];
    });
    const validation = await ConfigValidation.of(options);
    const made = new PolicyChain(chain, new Exemptions(options), validation, limited, launches);
    if (wrong.length > 0) {
      await made.close();
      throw mistakesAt(wrong, configuration.settings);
    }
    return made;
  }

  get isEmpty(): boolean {
    return this.#chain.length === 0;
  }

  /** Calls policies in order, each with the previous result, until all agree. Throws no error of a policy. */
  async review(request: ReceivedRequest, options: ReviewOptions): Promise<Review> {
    const original = originalOf(request);
    const call: Call = {
      ...options,
      request,
      state: original,
      refusal: undefined,
      outcomes: new Map(),
      steps: [],
      notes: [],
      mismatches: [],
    };
    const { notes, mismatches } = call;
    const exemption = this.#exemptions.of(request, original);
    if (exemption !== undefined) {
      notes.push(exemption.reason);
      const fields = { ...known(call), user_id: request.user?.id };
      this.#logger[exemption.isExempt ? 'info' : 'warn'](fields, exemption.reason);
    }
    if (exemption?.isExempt === true) {
      const verdict = { changed: false, answer: answerText(request, original, original) };
      return { ...reviewOf(original, verdict, [], notes), mismatches, exempt: true };
    }

    const invalid = this.#validation.ofRequest(request, original, options.places);
    if (invalid !== undefined) {
      mismatches.push(VALIDATION);
      this.#asking.logMismatch(VALIDATION, invalid, call);
      if (invalid.isEnforced) {
        const message = invalid.message.replace(/^t/, 'T');
        const refusal = { message, failed: false, policy: VALIDATION };
        return { ...reviewOf(original, refusal, [], notes), mismatches };
      }
      notes.push(invalid.message);
    }
    // Launches are charged as the other policies leave them.
    for (const charges of [false, true]) {
      const policies = this.#chain.filter((one) => one.charges === charges);
      await this.#asking.untilAgreed(policies, call);
    }
    const outcomes = withChanges(await Promise.all(call.outcomes.values()), call, original);
    const review =
      call.refusal === undefined
        ? await this.#charged(this.#accept(original, outcomes, call), original, call)
        : reviewOf(original, call.refusal, outcomes, notes);
    return { ...review, mismatches };
  }

  /** Charges an accepted launch, and refuses it if that fails: a refused launch costs nothing. */
  async #charged(review: Unmatched, original: State, call: Call): Promise<Unmatched> {
    const { launches } = this;
    if (launches === undefined || !review.allowed) {
      return review;
    }
    const { deadline, notes } = call;
    const refused = (by: RefusedBy) =>
      reviewOf(
        original,
        by,
        review.outcomes.map((one) =>
          one.policy === by.policy && !one.audit ? refusedOutcome(one, by) : one,
        ),
        notes,
      );
    const { policy, binds } = launches.chargingPolicyOf(deadline);
    try {
      deadline.throwIfOver();
      const overtaken = await inTime(launches.charge(deadline), deadline);
      return overtaken === undefined ? review : refused({ ...overtaken, failed: false });
    } catch (thrown) {
      this.#asking.logFailure(policy, thrown, original, call);
      // Otherwise only policies that are not enforced would have charged it.
      return binds ? refused({ ...FAILED, policy }) : review;
    }
  }

  async close(): Promise<void> {
    await Promise.all(
      this.#chain.map(async ({ runner }) => {
        try {
          await runner.close();
        } catch (thrown) {
          this.#logger.error({ policy: runner.name, error: causeText(thrown) }, 'policy could not be closed');
        }
      }),
    );
    await this.launches?.close();
    this.#logger.close();
  }

  #accept(original: State, outcomes: readonly PolicyOutcome[], call: Call): Unmatched {
    const { request, state, notes } = call;
    const changing = outcomes.filter(({ changed, audit }) => changed && !audit);
    // A policy may revert changes of another one.
    const changed = changing.length > 0 && !isDeepStrictEqual(state, original);
    try {
      const answer = answerText(request, original, changed ? state : original);
      return reviewOf(state, { changed, answer }, outcomes, notes);
    } catch (thrown) {
      // The result is probably too large or too deep for SkyPilot.
      const failing = changing.at(-1)?.policy ?? null;
      this.#asking.logFailure(failing, thrown, state, call);
      const failures = outcomes.map((one) =>
        one.policy === failing ? { ...refusedOutcome(one, FAILED), changes: undefined } : one,
      );
      return reviewOf(original, { ...FAILED, policy: failing }, failures, notes);
    }
  }
}

type Unmatched = Omit<Review, 'mismatches'>;

/** The outcomes with the changes of each policy. Costs nothing if there are none. */
function withChanges(
  outcomes: readonly PolicyOutcome[],
  { steps }: Call,
  { task, skypilotConfig }: State,
): readonly PolicyOutcome[] {
  if (steps.length === 0) {
    return outcomes;
  }
  // Every later secret is in a change.
  const all = changesOf(
    steps.map(({ before, after }) => ({ before: onTheWire(before), after: onTheWire(after) })),
    SecretValues.of(task, skypilotConfig),
  );
  return outcomes.map((outcome) => {
    const own = all.filter((_, index) => steps[index]?.policy === outcome.policy);
    return outcome.changed && own.length > 0 ? { ...outcome, changes: joinedChanges(own) } : outcome;
  });
}

/** The parts of a request by their names in the protocol. */
function onTheWire({ task, skypilotConfig }: State) {
  return { task, skypilot_config: skypilotConfig };
}

/** The response to SkyPilot. Serializes only changed parts: that costs more than all policies. */
function answerText(request: ReceivedRequest, original: State, state: State): string {
  return encodeTexts(
    state.task === original.task ? request.task : request.task.with(state.task),
    state.skypilotConfig === original.skypilotConfig
      ? request.skypilotConfig
      : request.skypilotConfig.with(state.skypilotConfig),
  );
}

function mistake(message: string): Problem {
  return { severity: 'error', section: skypilotSection.section, option: 'admin_policies', message };
}
