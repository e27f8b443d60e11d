import { type Configuration, sectionOf } from '../configuration.ts';
import { type Deadline, withinDeadline } from '../deadline.ts';
import { type EnforcementServices, UsageEnforcement } from '../enforcement.ts';
import { Admission } from './admission.ts';
import { readTokens } from './credentials.ts';
import { type ServiceOptions, serviceSection } from './options.ts';

/** One configuration at work: a request decides with the one that it has found, to its end. */
export class Generation {
  readonly number: number;
  readonly configuration: Configuration;
  readonly options: ServiceOptions;
  readonly enforcement: UsageEnforcement;
  readonly admission: Admission;
  /** Those of `tokens` and `tokens_file`, as they were when this was loaded. */
  readonly tokens: readonly string[];
  #requests = 0;
  #unused: (() => void) | undefined;

  constructor(parts: Pick<Generation, 'number' | 'configuration' | 'options' | 'tokens' | 'enforcement'>) {
    this.number = parts.number;
    this.configuration = parts.configuration;
    this.options = parts.options;
    this.tokens = parts.tokens;
    this.enforcement = parts.enforcement;
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
    return new Generation({ number, configuration, options, tokens, enforcement });
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

  /** Does something when there is room for it, in the time of a decision. @throws OverloadedError */
  inTurn<Result>(work: (deadline: Deadline) => Promise<Result>): Promise<Result> {
    return withinDeadline(this.options.deadline, async (deadline) => {
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
    await this.enforcement.close();
  }
}
