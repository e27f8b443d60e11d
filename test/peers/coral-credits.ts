/** A real coral-credits in a process of its own, and what it has charged. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { skipAloud } from '../support/peers.ts';
import { unusedPort } from '../support/unused-port.ts';

/** What coral-credits has in its database. */
export interface CoralTruth {
  /** Hours by resource class; if several allocations have one, of the last. */
  readonly left: Readonly<Record<string, number>>;
  readonly consumers: readonly {
    readonly ref: string;
    readonly uuid: string;
    readonly start: string;
    readonly end: string;
  }[];
}

export class RealCoralCredits {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly url: string;
  readonly token: string;

  private constructor(child: ChildProcess, folder: string, url: string) {
    this.#child = child;
    this.#folder = folder;
    this.url = url;
    this.token = readFileSync(this.tokenFile, 'utf8');
  }

  get tokenFile(): string {
    return join(this.#folder, 'token');
  }

  /** With one project, whose allocation has these hours. `undefined` = it does not start, and that was said. */
  static async startOrSkip(
    program: string,
    project: string,
    credits: Readonly<Record<string, number>>,
  ): Promise<RealCoralCredits | undefined> {
    const folder = mkdtempSync(join(tmpdir(), 'coral-credits-'));
    const port = await unusedPort();
    const hours = Object.entries(credits).flatMap(([name, amount]) => ['--credits', `${name}=${amount}`]);
    const args = [program, folder, String(port), '--project', project, ...hours];
    const child = spawn('/usr/bin/python3', args, { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (data: Buffer) => {
      said = `${said}${data}`.slice(-2000);
    });
    child.once('error', (error) => {
      said = error.message;
    });
    const url = `http://127.0.0.1:${port}`;
    while (child.exitCode === null && child.pid !== undefined) {
      if (
        await fetch(`${url}/_truth`).then(
          ({ ok }) => ok,
          () => false,
        )
      ) {
        return new RealCoralCredits(child, folder, url);
      }
      await pause(50);
    }
    rmSync(folder, { recursive: true, force: true });
    skipAloud('CORAL_CREDITS_PEER', `it does not start: ${said.trim().split('\n').at(-1)}`);
    return undefined;
  }

  async truth(): Promise<CoralTruth> {
    return (await (await fetch(`${this.url}/_truth`)).json()) as CoralTruth;
  }

  /** As its operator, or as Blazar. The path of what was made, in the answer to a creation. */
  async post(path: string, body: object): Promise<{ readonly status: number; readonly made: string }> {
    const headers = { Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json' };
    const answer = await fetch(`${this.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    const text = await answer.text();
    const { url } = answer.status === 201 ? (JSON.parse(text) as { url?: string }) : {};
    return { status: answer.status, made: url ?? '' };
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null) {
      const gone = once(this.#child, 'exit');
      this.#child.kill();
      await gone;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
