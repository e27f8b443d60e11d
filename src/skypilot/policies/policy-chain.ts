/** The policies of a configuration: constructed, asked about each request, and closed. */
import { isDeepStrictEqual } from 'node:util';
import { type Deadline, inTime } from '../../base/deadline.ts';
import { ConfigurationError, type Problem } from '../../base/errors.ts';
import { createLogger, type Logger } from '../../base/logger.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import type { OpenLaunchLedger } from '../charging/open-launch-ledger.ts';
import { ConfigValidation, VALIDATION } from '../config/config-validation.ts';
import { skypilotOptions } from '../options.ts';
import { encodeTexts, type ReceivedRequest } from '../request/wire.ts';
import {
  accepted,
  FAILED,
  originalOf,
  type PolicyOutcome,
  type Refusal,
  type Review,
  refused,
  type State,
} from '../review.ts';
import { skypilotSection } from '../section.ts';
import { askUntilAgreed, type ChainedPolicy, type Passed } from './ask-until-agreed.ts';
import { causeText } from './call-policy.ts';
import { Exemptions } from './exemptions.ts';
import { type Call, known, PolicyAsking, type ReviewOptions } from './policy-asking.ts';
import { loadPolicies, type NamedPolicy } from './policy-loader.ts';
import { type PolicyRunnerServices, startPolicy } from './policy-runner.ts';
import { RecordedChanges } from './recorded-changes.ts';

export type { PolicyOutcome, Review } from '../review.ts';

/** The policies of a configuration, in order. Safe for concurrent calls. */
export class PolicyChain {
  readonly #chain: readonly ChainedPolicy[];
  readonly #exemptions: Exemptions;
  readonly #validation: ConfigValidation;
  readonly #asking: PolicyAsking;
  readonly #logger: Logger;
  /** Where launches are charged; `undefined` = no policy charges any. Closed by `close()`. */
  readonly launches: OpenLaunchLedger | undefined;

  private constructor(
    chain: readonly ChainedPolicy[],
    exemptions: Exemptions,
    validation: ConfigValidation,
    logger: Logger,
    launches?: OpenLaunchLedger,
  ) {
    this.#chain = chain;
    this.#exemptions = exemptions;
    this.#validation = validation;
    this.#asking = new PolicyAsking(validation, launches, logger);
    this.#logger = logger;
    this.launches = launches;
  }

  /**
   * Constructs the policies of a valid configuration. `recordsLaunches`: whether launches are charged in the ledger; a process that only
   * tries policies must not. Default: no. @throws ConfigurationError
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
      throw new ConfigurationError(problems.map(mistake));
    }
    const logger = services.logger ?? createLogger();
    const charges = ({ policyClass }: NamedPolicy) => policyClass.needs?.includes('ledger') === true;
    // What is charged is the launch as the other policies leave it.
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
          ...{ ...services, logger },
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
    const made = new PolicyChain(chain, new Exemptions(options), validation, logger, launches);
    if (wrong.length > 0) {
      await made.close();
      throw new ConfigurationError(wrong);
    }
    return made;
  }

  /** Whether there are no policies. */
  get isEmpty(): boolean {
    return this.#chain.length === 0;
  }

  /**
   * Calls the policies in order, each with the result of the previous one, until all agree with the answer. Never throws because of a policy.
   */
  async review(request: ReceivedRequest, options: ReviewOptions): Promise<Review> {
    const call: Call = { ...options, request, changes: new RecordedChanges() };
    const original = originalOf(request);
    const exemption = this.#exemptions.of(request, original);
    const notes = exemption === undefined ? [] : [exemption.reason];
    const mismatches: string[] = [];
    if (exemption !== undefined) {
      const fields = { ...known(call), user_id: request.user?.id };
      this.#logger[exemption.isExempt ? 'info' : 'warn'](fields, exemption.reason);
    }
    if (exemption?.isExempt === true) {
      return {
        ...accepted(original, false, answerText(request, original, original), [], notes),
        exempt: true,
      };
    }

    const invalid = this.#validation.ofRequest(request, original, options.places);
    if (invalid !== undefined) {
      mismatches.push(VALIDATION);
      this.#asking.logMismatch(VALIDATION, invalid, call);
      if (invalid.isEnforced) {
        const refusal = { message: invalid.message.replace(/^t/, 'T'), failed: false };
        return { ...refused(original, [], VALIDATION, refusal, notes), mismatches };
      }
      notes.push(invalid.message);
    }
    const passed: Passed = { state: original, refusal: undefined, outcomes: new Map(), notes, mismatches };
    // What is charged is the launch as the other policies leave it.
    for (const charges of [false, true]) {
      const policies = this.#chain.filter((one) => one.charges === charges);
      await askUntilAgreed(this.#asking, policies, passed, call);
    }
    const { state, refusal } = passed;
    const reports = call.changes.describe(await Promise.all(passed.outcomes.values()), original);
    const review =
      refusal === undefined
        ? this.#accept(original, state, reports, notes, call)
        : refused(
            original,
            reports,
            refusal.policy,
            { message: refusal.message, failed: refusal.failed },
            notes,
          );
    return { ...(await this.#charged(review, original, notes, call)), mismatches };
  }

  /** An accepted launch is charged, and refused if that fails: one that is refused costs nothing. */
  async #charged(review: Review, original: State, notes: readonly string[], call: Call): Promise<Review> {
    if (this.launches === undefined || !review.allowed) {
      return review;
    }
    const failure = await chargeAccepted(this.launches, call.deadline);
    if (failure === undefined) {
      return review;
    }
    const { policy, refusal, thrown } = failure;
    if (thrown !== undefined) {
      this.#asking.logFailure(policy, thrown, original, call);
    }
    return refusal === undefined
      ? review
      : refused(original, withRefusal(review.outcomes, policy, refusal), policy, refusal, notes);
  }

  /** Closes all policies. */
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
  }

  #accept(
    original: State,
    state: State,
    outcomes: readonly PolicyOutcome[],
    notes: readonly string[],
    call: Call,
  ): Review {
    const changing = outcomes.filter(({ changed, audit }) => changed && !audit);
    // A policy may revert what another one changed.
    const changed = changing.length > 0 && !isSame(state, original);
    try {
      const answer = answerText(call.request, original, changed ? state : original);
      return accepted(state, changed, answer, outcomes, notes);
    } catch (thrown) {
      // The result is larger or deeper than SkyPilot can be expected to read.
      const guilty = changing.at(-1)?.policy ?? null;
      this.#asking.logFailure(guilty, thrown, state, call);
      const failures = outcomes.map((outcome) =>
        outcome.policy === guilty
          ? { ...outcome, ...FAILED, allowed: false, changed: false, changes: undefined }
          : outcome,
      );
      return refused(original, failures, guilty, FAILED, notes);
    }
  }
}

/** The response to SkyPilot. Writes only what has changed: that costs more than all policies. */
function answerText(request: ReceivedRequest, original: State, state: State): string {
  return encodeTexts(
    state.task === original.task ? request.task : request.task.with(state.task),
    state.skypilotConfig === original.skypilotConfig
      ? request.skypilotConfig
      : request.skypilotConfig.with(state.skypilotConfig),
  );
}

function isSame(a: State, b: State): boolean {
  return isDeepStrictEqual(a.task, b.task) && isDeepStrictEqual(a.skypilotConfig, b.skypilotConfig);
}

function mistake(message: string): Problem {
  return { severity: 'error', section: skypilotSection.section, option: 'admin_policies', message };
}

/** Why a launch is refused although all policies have accepted it. */
interface NotCharged {
  readonly policy: string | null;
  /** `undefined` = none, because only policies that are not enforced would have charged it. */
  readonly refusal: Refusal | undefined;
  /** What the ledger could not do. */
  readonly thrown?: unknown;
}

/** Resolves to `undefined` if the launch is charged, or costs nothing. Never rejects. */
async function chargeAccepted(
  launches: OpenLaunchLedger,
  deadline: Deadline,
): Promise<NotCharged | undefined> {
  const { policy, binds } = launches.stakeOf(deadline);
  try {
    deadline.throwIfOver();
    const overtaken = await inTime(launches.charge(deadline), deadline);
    return overtaken && { policy: overtaken.policy, refusal: { message: overtaken.message, failed: false } };
  } catch (thrown) {
    return { policy, refusal: binds ? FAILED : undefined, thrown };
  }
}

/** The outcomes, of which that of the policy is the refusal now. */
function withRefusal(
  outcomes: readonly PolicyOutcome[],
  policy: string | null,
  refusal: Refusal,
): PolicyOutcome[] {
  return outcomes.map((outcome) =>
    outcome.policy === policy && !outcome.audit
      ? { ...outcome, ...refusal, allowed: false, changed: false }
      : outcome,
  );
}
