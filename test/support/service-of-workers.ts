/** `serve` with several workers, in processes of their own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type Agent, type IncomingMessage, request } from 'node:http';
import { text as wholeText } from 'node:stream/consumers';
import { onTestFinished, vi } from 'vitest';
import { confFile } from './files.ts';
import { COMMAND, scrubbedEnvironment } from './run-command.ts';

/** How long it is waited for what must come, of a machine that is busy elsewhere. */
export const SOON = { timeout: 60_000, interval: 50 };

export interface WorkerService {
  readonly process: ChildProcess;
  readonly conf: string;
  /** Resolves when it answers. */
  readonly listening: Promise<string>;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** The process ids of its workers; those of a primary that is gone are not found. */
  workers(): number[];
  /** Its standard error. */
  log(): string;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: IncomingMessage['headers'];
}

/** Gone with all its workers when the test is over. `sections`: the text of `blazar.conf`, without `port`, which is added to `[service]`. */
export function launchWorkers(sections: string, ...flags: string[]): WorkerService {
  const conf = confFile(sections.replace('[service]\n', '[service]\nport = 0\n'));
  const child = spawn(process.execPath, [COMMAND, 'serve', '--config-file', conf, ...flags], {
    env: scrubbedEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
    // So that all of them can be ended together, whatever a test does to the primary.
    detached: true,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const closed = once(child, 'close');
  const ended = once(child, 'exit').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
  }));
  onTestFinished(async () => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {
      // They are gone already.
    }
    await closed;
  });
  const listening = new Promise<string>((resolve, reject) => {
    child.stdout.on('data', () => {
      const [, url] = /^Listening on (https?:\S+)\n/m.exec(stdout) ?? [];
      if (url !== undefined) {
        resolve(url);
      }
    });
    child.once('exit', (code) => reject(new Error(`the service has ended with ${code}: ${stdout}${stderr}`)));
  });
  // Whoever waits for the end does not wait for it to listen.
  listening.catch(() => {});
  return { process: child, conf, listening, ended, workers: () => childrenOf(child.pid), log: () => stderr };
}

/** The processes that a process has started. */
export function childrenOf(pid = 0): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return children.split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Whether a process is there, and no zombie. */
export function isThere(pid: number): boolean {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** One request on a connection of its own, or of an agent; `undefined` = there was no answer. */
export async function askOn(
  url: string,
  {
    method = 'GET',
    body,
    headers = {},
    agent = false,
  }: {
    readonly method?: string;
    readonly body?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly agent?: Agent | false;
  } = {},
): Promise<Answer | undefined> {
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
      request(url, { method, agent, headers: { ...length, ...headers } })
        .on('response', resolve)
        .on('error', reject)
        .end(body);
    });
    return { status: answer.statusCode ?? 0, text: await wholeText(answer), headers: answer.headers };
  } catch {
    return undefined;
  }
}

/** Waits until the log of a service has so many lines that match. */
export function logged(service: WorkerService, pattern: RegExp, times = 1): Promise<void> {
  return vi.waitFor(() => {
    const found = service.log().match(new RegExp(pattern, 'g'))?.length ?? 0;
    if (found < times) {
      throw new Error(`expected ${pattern} ${times} times, got ${found}: ${service.log()}`);
    }
  }, SOON);
}
