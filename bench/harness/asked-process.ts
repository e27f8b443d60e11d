import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** Enough of standard error for the cause of a failure. */
const KEPT_CHARACTERS = 20_000;

/** A process with one question at a time: it tells when it is ready, and answers each message with one. */
export class AskedProcess {
  readonly #name: string;
  readonly #child: ChildProcess;
  #errors = '';
  /** What it has told first. */
  ready: unknown;
  #stopped: Promise<void> | undefined;

  private constructor(name: string, child: ChildProcess) {
    this.#name = name;
    this.#child = child;
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-KEPT_CHARACTERS);
    });
  }

  /**
   * Resolves when it is ready. Rejects if it ends before: the cause is on standard error, or with `quiet` in the `cause` of
   * the error, here and in `ask`.
   */
  static async start(
    name: string,
    main: URL,
    parameters: readonly string[],
    { quiet = false } = {},
  ): Promise<AskedProcess> {
    const child = fork(fileURLToPath(main), parameters, {
      stdio: ['ignore', quiet ? 'ignore' : 2, quiet ? 'pipe' : 2, 'ipc'],
    });
    const asked = new AskedProcess(name, child);
    asked.ready = await asked.#message();
    return asked;
  }

  async ask(question: object | string): Promise<unknown> {
    this.#child.send(question);
    return await this.#message();
  }

  /** Of several calls each waits for the end. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const exited = once(this.#child, 'exit');
      this.#child.disconnect();
      await exited;
    }
  }

  async #message(): Promise<unknown> {
    const settled = new AbortController();
    const { signal } = settled;
    try {
      const [message] = await Promise.race([
        once(this.#child, 'message', { signal }),
        once(this.#child, 'exit', { signal }).then(async ([code]) => {
          await this.#allErrors();
          throw new Error(`${this.#name}: its process ended with ${code}`, { cause: this.#errors });
        }),
      ]);
      return message;
    } finally {
      settled.abort();
    }
  }

  /** Processes that it has started may write on to the same pipe: no longer than a second is waited for these. */
  async #allErrors(): Promise<void> {
    if (this.#child.stderr !== null && !this.#child.stderr.readableEnded) {
      await Promise.race([once(this.#child.stderr, 'end'), pause(1000, undefined, { ref: false })]);
    }
  }
}
