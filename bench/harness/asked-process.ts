import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** Enough of standard error to show the cause of a failure. */
const KEPT_CHARACTERS = 20_000;

/** A process for one request at a time: it reports when it is ready, and replies to each message with one. */
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
   * Resolves when it is ready. Rejects if it ends before: the cause is on standard error, or with `quiet` in
   * the error's `cause`, here and in `ask`.
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

  /** Several calls may wait for the end. */
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
        once(this.#child, 'exit', { signal }).then(async ([code, ending]) => {
          await this.#allErrors();
          throw new Error(`${this.#name}: its process ended with ${code ?? ending}`, { cause: this.#errors });
        }),
      ]);
      return message;
    } finally {
      settled.abort();
    }
  }

  /** Child processes may keep the pipe open: waits for them at most a second. */
  async #allErrors(): Promise<void> {
    if (this.#child.stderr !== null && !this.#child.stderr.readableEnded) {
      await Promise.race([once(this.#child.stderr, 'end'), pause(1000, undefined, { ref: false })]);
    }
  }
}
