import { type Deadline, withinDeadline } from '../deadline.ts';
import { type Configuration, sectionOf } from '../enforcement/configuration.ts';
import { UsageEnforcement } from '../enforcement/enforcement.ts';
import type { WatchedServices } from '../enforcement/services.ts';
import { kubernetesSection, policyOptions } from '../kubernetes/options.ts';
import type { PodAdmission } from '../kubernetes/pod-admission.ts';
import { type SkypilotOptions, skypilotSection } from '../skypilot/options.ts';
import { PolicyChain } from '../skypilot/policy-chain.ts';
import { Admission } from './admission.ts';
import { readTokens } from './credentials.ts';
import type { DoorTokens } from './doors.ts';
import { type ServiceOptions, serviceSection } from './options.ts';
import { tokenOptionsOf } from './sections.ts';

/** How SkyPilot is served. */
export interface SkypilotParts {
  readonly options: SkypilotOptions;
  readonly policies: PolicyChain;
}

/** How Kubernetes is served. */
export interface KubernetesParts {
  readonly podAdmission: PodAdmission;
  /** Why a scheduling policy would not be read; `null` where it would be. */
  readonly policyMistake: (document: unknown) => string | null;
}

/** One configuration at work: a request decides with the one that it has found, to its end. */
export class Generation {
  readonly number: number;
  readonly configuration: Configuration;
  readonly options: ServiceOptions;
  readonly enforcement: UsageEnforcement;
  readonly admission: Admission;
  /** Those of each `tokens` and `tokens_file`, as they were when this was loaded. */
  readonly tokens: DoorTokens;
  readonly skypilot: SkypilotParts;
  /** `undefined` = there are no scheduling policies, and it is not served. */
  readonly kubernetes: KubernetesParts | undefined;
  #requests = 0;
  #unused: (() => void) | undefined;

  constructor(
    parts: Pick<
      Generation,
      'number' | 'configuration' | 'options' | 'tokens' | 'enforcement' | 'skypilot' | 'kubernetes'
    >,
  ) {
    this.number = parts.number;
    this.configuration = parts.configuration;
    this.options = parts.options;
    this.tokens = parts.tokens;
    this.enforcement = parts.enforcement;
    this.skypilot = parts.skypilot;
    this.kubernetes = parts.kubernetes;
    this.admission = new Admission(this.options.max_concurrent, this.options.max_queued);
  }

  /** Constructs the filters. @throws ConfigurationError */
  static async create(
    number: number,
    configuration: Configuration,
    services: WatchedServices,
  ): Promise<Generation> {
    const options = sectionOf(configuration, serviceSection);
    const tokens = readDoorTokens(configuration);
    const enforcement = await UsageEnforcement.fromConfiguration(configuration, services);
    try {
      const kubernetes = await kubernetesParts(configuration);
      const policies = await PolicyChain.fromConfiguration(configuration, services);
      const skypilot = { options: sectionOf(configuration, skypilotSection), policies };
      return new Generation({ number, configuration, options, tokens, enforcement, skypilot, kubernetes });
    } catch (thrown) {
      await enforcement.close();
      throw thrown;
    }
  }

  /** A request begins. */
  enter(): void {
    this.#requests += 1;
  }

  /** It has ended. */
  leave(): void {
    this.#requests -= 1;
    if (this.#requests === 0) {
      this.#unused?.();
    }
  }

  /** Does something when there is room for it, in the time of a decision, in seconds. @throws OverloadedError */
  inTurn<Result>(
    work: (deadline: Deadline) => Promise<Result>,
    seconds: number = this.options.deadline,
  ): Promise<Result> {
    return withinDeadline(seconds, async (deadline) => {
      const turn = this.admission.enter(deadline);
      // Waiting for nothing would cost as much as most of what is done here.
      if (turn !== undefined) {
        await turn;
      }
      try {
        return await work(deadline);
      } finally {
        this.admission.leave();
      }
    });
  }

  /** Lets the filters go when the last request has left. No request may enter any more. */
  async retire(): Promise<void> {
    if (this.#requests > 0) {
      await new Promise<void>((unused) => {
        this.#unused = unused;
      });
    }
    await Promise.all([this.enforcement.close(), this.skypilot.policies.close()]);
  }
}

/** The tokens that a configuration and its files name now. @throws CredentialError */
export function readDoorTokens(configuration: Configuration): DoorTokens {
  const { blazar, skypilot, kubernetes } = tokenOptionsOf(configuration);
  return { blazar: readTokens(blazar), skypilot: readTokens(skypilot), kubernetes: readTokens(kubernetes) };
}

/** Reading policies takes a while to load: only where there are some. */
async function kubernetesParts(configuration: Configuration): Promise<KubernetesParts | undefined> {
  const options = sectionOf(configuration, kubernetesSection);
  const { scheduling_policies, audit, schedulers } = options;
  if (scheduling_policies.length === 0) {
    return undefined;
  }
  const { SchedulingPolicies } = await import('../kubernetes/scheduling-policies.ts');
  const { PodAdmission: Reviewer } = await import('../kubernetes/pod-admission.ts');
  const { policies } = SchedulingPolicies.read(scheduling_policies, policyOptions(options));
  const { policyMistake } = await import('../kubernetes/policy-review.ts');
  return { podAdmission: new Reviewer(policies, { audit, schedulers }), policyMistake };
}
