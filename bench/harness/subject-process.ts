import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SubjectMessage, Turn, TurnRequest } from './subject-main.ts';
import type { Suite } from './suite.ts';

/** A subject in its process. Measure only one at a time: the others wait idle. */
export class SubjectProcess {
  readonly name: string;
  readonly #child: ChildProcess;

  private constructor(name: string, child: ChildProcess) {
    this.name = name;
    this.#child = child;
  }

  /** Resolves when the subject is set up. Rejects if that fails; the cause is on standard error. */
  static async start(suite: Suite, name: string): Promise<SubjectProcess> {
    const main = new URL(`./subject-main${extname(import.meta.url)}`, import.meta.url);
    const child = fork(fileURLToPath(main), [suite.file, name], { stdio: ['ignore', 2, 2, 'ipc'] });
    const subject = new SubjectProcess(name, child);
    await subject.#message();
    return subject;
  }

  async takeTurn(milliseconds: number): Promise<Turn> {
    const request: TurnRequest = { milliseconds };
    this.#child.send(request);
    const { turn } = await this.#message();
    if (turn === undefined) {
      throw new Error(`${this.name}: a turn without a time`);
    }
    return turn;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const exited = once(this.#child, 'exit');
      this.#child.disconnect();
      await exited;
    }
  }

  async #message(): Promise<SubjectMessage> {
    const settled = new AbortController();
    const { signal } = settled;
    try {
      const [message] = (await Promise.race([
        once(this.#child, 'message', { signal }),
        once(this.#child, 'exit', { signal }).then(([code]) => {
          throw new Error(`${this.name}: its process ended with ${code}`);
        }),
      ])) as [SubjectMessage];
      return message;
    } finally {
      settled.abort();
    }
  }
}
