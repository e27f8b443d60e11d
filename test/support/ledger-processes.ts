/** Services that share a ledger, in separate processes, and clients that call them like Blazar. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, vi } from 'vitest';
import { UNAVAILABLE_MESSAGE } from '../../src/enforcement/chain/messages.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { confFile, projectFile } from './files.ts';
import { giveBudget, ledgerAt, upgraded } from './ledgers.ts';
import { PROJECT } from './requests.ts';
import { COMMAND, scrubbedEnvironment, watched } from './run-command.ts';

interface ServiceSetup {
  readonly connection: string;
  /** `[service] deadline`, in seconds. Default: 60, longer than any test waits. */
  readonly deadline?: number;
  /** `[ledger] timeout`, in seconds. Default: 60. */
  readonly timeout?: number;
  /** `[ledger] pool_size`. Default: 4. */
  readonly poolSize?: number;
  /** `[ledger] doubt_folder`. Default: none. */
  readonly doubtFolder?: string;
  /** Default: the filters on the ledger. */
  readonly enabled?: string;
  /** Further lines of `[enforcement]`. */
  readonly enforcement?: string;
  /** Further sections. */
  readonly sections?: string;
  /** Further lines of `[service]`. */
  readonly service?: string;
  /** A lease service that embeds the library, instead of the policy service. */
  readonly isEmbedded?: boolean;
  /** Further variables of the environment. */
  readonly environment?: Readonly<Record<string, string>>;
}

export interface ServiceProcess {
  readonly url: string;
  readonly process: ChildProcess;
  /** The text of its configuration is replaced, and read again. */
  reload(change: (text: string) => string): void;
  /** The log so far. */
  log(): string;
  /** The number of responses so far. */
  answers(): number;
  /** `kill -9`; resolves when the process is gone. */
  kill(): Promise<void>;
  /** One request; `undefined` = the service is not reachable, or ended without a response. */
  ask(path: string, body: object, key?: string): Promise<ServiceAnswer | undefined>;
}

export interface ServiceAnswer {
  readonly status: number;
  readonly message: string | undefined;
  /** The times of request and response, in milliseconds of `performance.now()`. */
  readonly asked: number;
  readonly answered: number;
}

const LEASE_SERVICE = projectFile('test/support/lease-service.js');

/** A starting process, which may end without ever listening. */
export function launchService(setup: ServiceSetup) {
  const { connection, deadline = 60, timeout = 60, poolSize = 4, doubtFolder = '', enforcement = '' } = setup;
  const { sections = '' } = setup;
  const { enabled = 'MaxLeasesFilter, UsageBudgetFilter' } = setup;
  const conf = confFile(`[enforcement]
enabled_filters = ${enabled}
${enforcement}
[ledger]
connection = ${connection}
timeout = ${timeout}
pool_size = ${poolSize}
doubt_folder = ${doubtFolder}
[service]
port = 0
deadline = ${deadline}
${setup.service ?? ''}
${sections}
`);
  const program = setup.isEmbedded ? [LEASE_SERVICE, conf] : [COMMAND, 'serve', '--config-file', conf];
  const child = spawn(process.execPath, program, {
    env: { ...scrubbedEnvironment(), ...setup.environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const running = watched(child);
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await running.ended;
  });
  return { ...running, conf };
}

/** A listening service. It is killed after the test. */
export async function startService(setup: ServiceSetup): Promise<ServiceProcess> {
  const { process: child, printed, ended, output, conf } = launchService(setup);
  const [, url = ''] = await printed(/^Listening on (http:\S+)\n/m);
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  let answers = 0;
  return {
    url,
    process: child,
    reload(change) {
      writeFileSync(conf, change(readFileSync(conf, 'utf8')));
      child.kill('SIGHUP');
    },
    log: () => output().stderr,
    answers: () => answers,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
    async ask(path, body, key) {
      const answer = await ask(`${url}/${path}`, agent, body, key);
      answers += answer === undefined ? 0 : 1;
      return answer;
    },
  };
}

/** The response to every lease while the ledger fails. */
export const REFUSED = { status: 403, message: UNAVAILABLE_MESSAGE };

/** `[service] deadline` for tests of a failing ledger, in seconds: long enough for a busy machine. */
export const DEADLINE = 5;
/** How late a response may be after its deadline on a busy machine, in seconds. */
export const MARGIN = 100;

export async function isHealthy({ url }: ServiceProcess): Promise<boolean> {
  return (await fetch(`${url}/healthz`)).ok;
}

/** The slowest response time, in seconds. */
export function slowest(answers: readonly ServiceAnswer[]): number {
  return Math.max(...answers.map(({ asked, answered }) => (answered - asked) / 1000));
}

export function startServices(count: number, setup: ServiceSetup): Promise<ServiceProcess[]> {
  return Promise.all(Array.from({ length: count }, () => startService(setup)));
}

/** Repeats a request until a service allows a lease; throws after a while. */
export async function untilAllowed(ask: () => Promise<unknown>): Promise<void> {
  await vi.waitFor(async () => expect(await ask()).toMatchObject({ status: 204 }), SOON);
}

/** Timeout for expected events, for a busy machine. */
export const SOON = { timeout: 240_000, interval: 50 };

/** The multiple of the work in `npm test`. */
export const SCALE = Number(process.env.LEDGER_PROOFS ?? 1);

/** The ledger at a connection, with a budget for the clients' project. Close it. */
export async function withBudget(connection: string, amount: string): Promise<Ledger> {
  const ledger = await ledgerAt(connection);
  await giveBudget(ledger, { projectId: PROJECT, amount, from: '2020-01-01', until: '2200-01-01' });
  return ledger;
}

/** Creates the tables, and a budget larger than any test uses. Returns the connection. */
export async function preparedLedger(connection: string): Promise<string> {
  await (await withBudget(await upgraded(connection), '1000000')).close();
  return connection;
}

async function ask(
  url: string,
  agent: Agent,
  body: object,
  key: string | undefined,
): Promise<ServiceAnswer | undefined> {
  const sent = JSON.stringify(body);
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(sent),
    'X-Openstack-Request-Id': `req-${randomUUID()}`,
    ...(key === undefined ? {} : { 'Idempotency-Key': key }),
  };
  const asked = performance.now();
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request(url, { method: 'POST', agent, headers }).on('response', resolve).on('error', reject).end(sent);
    });
    const said = await text(answer);
    return {
      status: answer.statusCode ?? 0,
      message: said === '' ? undefined : (JSON.parse(said) as { message?: string }).message,
      asked,
      answered: performance.now(),
    };
  } catch {
    return undefined;
  }
}
