import { type Configuration, sectionOf } from '../configuration.ts';
import { type Deadline, withinDeadline } from '../deadline.ts';
import { type EnforcementServices, UsageEnforcement } from '../enforcement.ts';
import { type SkypilotOptions, skypilotSection } from '../skypilot/options.ts';
import { PolicyChain } from '../skypilot/policy-chain.ts';
import { Admission } from './admission.ts';
import { AcceptedTokens, readTokens } from './credentials.ts';
import { type ServiceOptions, serviceSection } from './options.ts';

/** How SkyPilot is served. */
export interface SkypilotParts {
  readonly options: SkypilotOptions;
  readonly policies: PolicyChain;
  readonly tokens: AcceptedTokens;
}

/** One configuration at work: a request decides with the one that it has found, to its end. */
export class Generation {
  readonly number: number;
  readonly configuration: Configuration;
  readonly options: ServiceOptions;
  readonly enforcement: UsageEnforcement;
  readonly admission: Admission;
  /** Those of `tokens` and `tokens_file`, as they were when this was loaded. */
  readonly tokens: readonly string[];
  readonly skypilot: SkypilotParts;
  #requests = 0;
  #unused: (() => void) | undefined;

  constructor(
    parts: Pick<Generation, 'number' | 'configuration' | 'options' | 'tokens' | 'enforcement' | 'skypilot'>,
  ) {
    this.number = parts.number;
    this.configuration = parts.configuration;
    this.options = parts.options;
    this.tokens = parts.tokens;
    this.enforcement = parts.enforcement;
    this.skypilot = parts.skypilot;
    this.admission = new Admission(this.options.max_concurrent, this.options.max_queued);
  }

  /** Constructs the filters. @throws ConfigurationError */
  static async create(
    number: number,
    configuration: Configuration,
    services: EnforcementServices,
  ): Promise<Generation> {
    const options = sectionOf(configuration, serviceSection);
    const tokens = readTokens(options);
    const enforcement = await UsageEnforcement.fromConfiguration(configuration, services);
    try {
      const policies = await PolicyChain.fromConfiguration(configuration, services);
      const forSkypilot = sectionOf(configuration, skypilotSection);
      const skypilot = { options: forSkypilot, policies, tokens: new AcceptedTokens(forSkypilot.tokens) };
      return new Generation({ number, configuration, options, tokens, enforcement, skypilot });
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
