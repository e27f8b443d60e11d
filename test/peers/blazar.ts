/** A real Blazar in a process of its own, asked as its users ask it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { projectFile } from '../support/files.ts';
import { skipAloud } from '../support/peers.ts';

/** What Blazar has really allocated, from its database. */
export interface TrueReservation {
  readonly lease_id: string;
  readonly reservation_id: string;
  readonly resource_type: string;
  readonly start_date: string;
  readonly end_date: string;
  readonly status: string;
  readonly project_id: string;
  readonly resources: number;
}

export interface BlazarLease {
  readonly id: string;
  readonly name: string;
  readonly start_date: string;
  readonly end_date: string;
  readonly reservations: readonly { readonly id: string; readonly resource_type: string }[];
}

export interface BlazarAnswer {
  readonly status: number;
  readonly lease: BlazarLease | undefined;
  readonly text: string;
}

export class RealBlazar {
  readonly #child: ChildProcess;
  readonly url: string;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** `environment`: further variables. Rejects with what it has said where it does not start. */
  static async start(
    program: string,
    policyUrl: string,
    options: readonly string[] = [],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<RealBlazar> {
    const inUse = projectFile('test/peers/busy-blazar.py');
    const child = spawn('/usr/bin/python3', [inUse, program, '--policy-url', policyUrl, ...options], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    });
    let said = '';
    child.stderr.on('data', (data: Buffer) => {
      said = `${said}${data}`.slice(-2000);
    });
    const lines = createInterface({ input: child.stdout });
    const url = await new Promise<string>((resolve, reject) => {
      const late = setTimeout(() => {
        child.kill('SIGKILL');
        reject(new Error(`it does not listen after ten minutes: ${said}`));
      }, 600_000);
      child.once('error', reject);
      child.once('exit', () => reject(new Error(said.trim().split('\n').at(-1) ?? 'it has ended')));
      lines.on('line', (line) => {
        const listening = /^Listening on (\S+)$/.exec(line)?.[1];
        if (listening !== undefined) {
          clearTimeout(late);
          resolve(listening);
        }
      });
    });
    return new RealBlazar(child, url);
  }

  /** With so many hosts, and asking the policy service at `url`. `undefined` = it does not start, and that was said. */
  static startOrSkip(
    program: string,
    url: string,
    hosts: number,
    options: readonly string[] = [],
  ): Promise<RealBlazar | undefined> {
    const all = ['--hosts', String(hosts), ...options];
    return RealBlazar.start(program, `${url}/v1/`, all).catch((thrown: unknown) => {
      skipAloud('BLAZAR_PEER', `it does not start: ${String(thrown)}`);
      return undefined;
    });
  }

  /** `who`: `project/user`. */
  async ask(method: string, path: string, who: string, body?: unknown): Promise<BlazarAnswer> {
    const answer = await fetch(`${this.url}${path}`, {
      method,
      headers: { 'X-Auth-Token': who, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    const lease =
      answer.ok && text.startsWith('{') ? (JSON.parse(text) as { lease?: BlazarLease }).lease : undefined;
    return { status: answer.status, lease, text };
  }

  async truth(): Promise<TrueReservation[]> {
    return JSON.parse((await this.ask('GET', '/_truth', 'admin')).text) as TrueReservation[];
  }

  /** Runs the events that are due. */
  async tick(): Promise<void> {
    await this.ask('POST', '/_tick', 'admin', {});
  }

  /** So many hosts fail, and Blazar replaces them where it can. Returns what has changed in which reservations, as JSON. */
  async heal(hosts: number): Promise<string> {
    return (await this.ask('POST', '/_heal', 'admin', { hosts })).text;
  }

  async failNova(nova: boolean): Promise<void> {
    await this.ask('POST', '/_fail', 'admin', { nova });
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) {
      return;
    }
    const gone = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill();
    await gone;
  }
}

export function hostReservation(min: number, max: number): object {
  return { resource_type: 'physical:host', min, max, hypervisor_properties: '', resource_properties: '' };
}
