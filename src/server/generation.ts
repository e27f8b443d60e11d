import { Admission } from '../admission.ts';
import { type Deadline, withinDeadline } from '../deadline.ts';
import { type Configuration, sectionOf } from '../enforcement/configuration.ts';
import { UsageEnforcement } from '../enforcement/enforcement.ts';
import type { WatchedServices } from '../enforcement/services.ts';
import { kubernetesSection, policyOptions } from '../kubernetes/options.ts';
import type { PodAdmission } from '../kubernetes/pod-admission.ts';
import { keystoneSection } from '../openstack/options.ts';
import { type SkypilotOptions, skypilotSection } from '../skypilot/options.ts';
import { PolicyChain } from '../skypilot/policy-chain.ts';
import type { DecisionStores, HeldDecisions } from './decision-stores.ts';
import type { DoorTokens } from './doors.ts';
import type { HeldGate, KeystoneGates } from './keystone-gates.ts';
import { type ServiceOptions, serviceSection } from './options.ts';
import { readDoorTokens } from './sections.ts';

export interface SkypilotParts {
  readonly options: SkypilotOptions;
  readonly policies: PolicyChain;
}

export interface KubernetesParts {
  readonly podAdmission: PodAdmission;
  /** Why a scheduling policy would be refused; `null` = it would be accepted. */
  readonly policyMistake: (document: unknown) => string | null;
}

/** A configuration that is loaded. Each request keeps the one that was current when it arrived. */
export class Generation {
  readonly number: number;
  readonly configuration: Configuration;
  readonly options: ServiceOptions;
  readonly enforcement: UsageEnforcement;
  readonly admission: Admission;
  /** The tokens of each protocol, as of loading. */
  readonly tokens: DoorTokens;
  /** For tokens of Keystone. `undefined` = `keystone_auth` is off. */
  readonly keystone: HeldGate | undefined;
  /** What all replicas have decided. `undefined` = decisions are not stored. */
  readonly decisions: HeldDecisions | undefined;
  readonly skypilot: SkypilotParts;
  /** `undefined` = no scheduling policies: Kubernetes is not served. */
  readonly kubernetes: KubernetesParts | undefined;
  #requests = 0;
  #unused: (() => void) | undefined;

  constructor(
    parts: Pick<
      Generation,
      'number' | 'configuration' | 'options' | 'tokens' | 'enforcement' | 'skypilot' | 'kubernetes'
    > & { readonly keystone?: HeldGate | undefined; readonly decisions?: HeldDecisions | undefined },
  ) {
    this.number = parts.number;
    this.configuration = parts.configuration;
    this.options = parts.options;
    this.tokens = parts.tokens;
    this.keystone = parts.keystone;
    this.decisions = parts.decisions;
    this.enforcement = parts.enforcement;
    this.skypilot = parts.skypilot;
    this.kubernetes = parts.kubernetes;
    this.admission = new Admission(this.options.max_concurrent, this.options.max_queued);
  }

  /** Constructs the filters. @throws ConfigurationError */
  static async create(
    number: number,
    configuration: Configuration,
    services: WatchedServices & { readonly gates?: KeystoneGates; readonly stores?: DecisionStores },
  ): Promise<Generation> {
    const options = sectionOf(configuration, serviceSection);
    const tokens = readDoorTokens(configuration);
    const enforcement = await UsageEnforcement.fromConfiguration(configuration, services);
    let keystone: HeldGate | undefined;
    let decisions: HeldDecisions | undefined;
    try {
      decisions = await services.stores?.open(configuration);
      keystone = await services.gates?.open(number, options, sectionOf(configuration, keystoneSection));
      const kubernetes = await kubernetesParts(configuration);
      const policies = await PolicyChain.fromConfiguration(configuration, services);
      const skypilot = { options: sectionOf(configuration, skypilotSection), policies };
      return new Generation({
        ...{ number, configuration, options, tokens, keystone },
        ...{ enforcement, skypilot, kubernetes, decisions },
      });
    } catch (thrown) {
      await Promise.all([enforcement.close(), keystone?.release(), decisions?.release()]);
      throw thrown;
    }
  }

  /** Counts a request that begins. */
  enter(): void {
    this.#requests += 1;
  }

  /** Counts a request that has ended. */
  leave(): void {
    this.#requests -= 1;
    if (this.#requests === 0) {
      this.#unused?.();
    }
  }

  /** Runs `work` when it is its turn, within `seconds`, waiting included. @throws OverloadedError */
  inTurn<Result>(
    work: (deadline: Deadline) => Promise<Result>,
    seconds: number = this.options.deadline,
  ): Promise<Result> {
    return withinDeadline(seconds, async (deadline) => {
      const turn = this.admission.enter(deadline);
      // Awaiting `undefined` would cost as much as most of this.
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

  /** Closes the filters when the last request has ended. No request may enter after this call. */
  async retire(): Promise<void> {
    // The next one delivers with its own URLs and credentials.
    const stopped = this.enforcement.stopDelivering();
    if (this.#requests > 0) {
      await new Promise<void>((unused) => {
        this.#unused = unused;
      });
    }
    await Promise.all([
      stopped,
      this.enforcement.close(),
      this.skypilot.policies.close(),
      this.keystone?.release(),
      this.decisions?.release(),
    ]);
  }
}

/** Loading the code for policies takes time, so it is loaded only if there are policies. */
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
