import { extname } from 'node:path';
import { AskedProcess } from './asked-process.ts';
import type { SubjectMessage, Turn, TurnRequest } from './subject-main.ts';
import type { Suite } from './suite.ts';

/** The folder of the compiled bench, with a trailing slash. */
const HERE = new URL('..', import.meta.url).href;

const MAIN = new URL(`./subject-main${extname(import.meta.url)}`, import.meta.url);

/** A subject in its process. Measure only one at a time while the others are idle. */
export class SubjectProcess {
  readonly name: string;
  readonly #process: AskedProcess;

  private constructor(name: string, process: AskedProcess) {
    this.name = name;
    this.#process = process;
  }

  /** Resolves when the subject is set up. Rejects if that fails; the cause is on standard error. */
  static async start(file: string, name: string): Promise<SubjectProcess> {
    return new SubjectProcess(name, await AskedProcess.start(name, MAIN, [file, name]));
  }

  /** All subjects of a suite in one process, sufficient to verify that they work. */
  static async startTogether({ file, name, subjects }: Suite): Promise<SubjectProcess[]> {
    const process = await AskedProcess.start(name, MAIN, [file]);
    return Object.keys(subjects).map((subject) => new SubjectProcess(subject, process));
  }

  /** The same subject in another copy of the bench. Quiet: see `AskedProcess.start`. */
  static async startIn(bench: string, file: string, name: string): Promise<SubjectProcess> {
    const main = new URL('harness/subject-main.js', bench);
    const parameters = [inCopy(bench, file), name];
    return new SubjectProcess(name, await AskedProcess.start(name, main, parameters, { quiet: true }));
  }

  async takeTurn(milliseconds: number): Promise<Turn> {
    const request: TurnRequest = { name: this.name, milliseconds };
    const { turn } = (await this.#process.ask(request)) as SubjectMessage;
    if (turn === undefined) {
      throw new Error(`${this.name}: a turn without a time`);
    }
    return turn;
  }

  async stop(): Promise<void> {
    await this.#process.stop();
  }
}

/** The URL of a file of this bench in another copy of it. */
export function inCopy(bench: string, file: string): string {
  return new URL(file.slice(HERE.length), bench).href;
}
