/** Configurations and credentials of all workers: which one they use, and how they come to use another. */
import { type Agreed, Agreements, type Party } from './agreement.ts';
import type { Topic } from './messages.ts';

export interface ReloadsOptions {
  /** Those that take part in a round; the first one tells mistakes. */
  readonly parties: () => readonly Party[];
  /** Called before a configuration is read again. */
  readonly reopen: () => void;
  /** A round has ended in an error of its own. */
  readonly failed: (thrown: unknown) => void;
}

export class Reloads {
  readonly #options: ReloadsOptions;
  readonly #agreements = new Agreements();
  readonly #waiting = new Set<Topic>();
  #rounds: Promise<unknown> = Promise.resolve();
  #generation = 1;
  #digest: string | undefined;
  /** Whether the configuration that was read last is refused. */
  #isRefused = false;
  #isClosed = false;

  constructor(options: ReloadsOptions) {
    this.#options = options;
  }

  /** The number of the configuration that all use. */
  get generation(): number {
    return this.#generation;
  }

  /** Of the files that all use; `undefined` = nobody has read any. */
  get digest(): string | undefined {
    return this.#digest;
  }

  /** What the first worker of all has read. */
  begin(digest: string): void {
    this.#digest ??= digest;
  }

  /** Reads the configuration and the files with credentials again. Resolves to whether all workers use the new configuration. */
  async reload(): Promise<boolean> {
    this.#options.reopen();
    const applied = await this.agree('configuration');
    await this.agree('credentials');
    return applied;
  }

  /** Reads the files with credentials again; and the configuration too, if its mistakes may have been in these files. */
  async credentialsChanged(): Promise<void> {
    await this.agree('credentials');
    if (this.#isRefused) {
      await this.reload();
    }
  }

  /** One round after the other. All that is wanted during a round is one more after it. */
  agree(topic: Topic): Promise<boolean> {
    if (this.#waiting.has(topic)) {
      return this.#rounds.then(() => !this.#isRefused);
    }
    this.#waiting.add(topic);
    const round = this.#rounds.then(async () => {
      this.#waiting.delete(topic);
      if (this.#isClosed) {
        return false;
      }
      const agreed = await this.#agreements.agree(topic, this.#options.parties());
      if (topic === 'configuration') {
        this.#use(agreed);
      }
      return agreed.digest !== undefined;
    });
    this.#rounds = round.catch(this.#options.failed);
    return round;
  }

  /** Later rounds do nothing. */
  close(): void {
    this.#isClosed = true;
  }

  #use({ digest }: Agreed): void {
    this.#isRefused = digest === undefined;
    if (digest !== undefined) {
      this.#digest = digest;
      this.#generation += 1;
    }
  }
}
