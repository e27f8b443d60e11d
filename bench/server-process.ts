import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import {
  ADMISSION_PATH,
  clusterDocuments,
  LEASE_DOCUMENTS,
  policyFile,
  reviewText,
  USED,
} from './admission-reviews.ts';
import { AskedProcess } from './harness/asked-process.ts';
import { capturedRequests, withLease } from './requests.ts';
import { LEASE_POLICIES, LOG, POLICIES } from './server-files.ts';
import type { ServerMessage, ServerQuestion } from './server-main.ts';
import { FIXED_TOKEN, KEYSTONE_TOKEN } from './tokens.ts';
import type { Observed } from './worst-case/observed.ts';

export type ServerKind =
  | 'node:http'
  | 'Koa'
  | 'Koa, co-body'
  | 'service'
  /** The default: metrics are always on. */
  | 'service, decision log'
  /** The same with tracing replaced by empty functions; and loaded the same way, with tracing. */
  | 'service, no tracing'
  | 'service, tracing'
  /** Requires a token: a fixed one, or one validated by a small Keystone in its process. */
  | 'service, tokens'
  /**
   * With the ledger of the environment; its kind: with filters on it or not, with stored decisions or not.
   */
  | LedgerKind
  | `${LedgerKind}, decisions`
  /** Parses pod reviews, and allows all. */
  | 'node:http, reviews'
  /** Judges them by policies, and logs the decisions. */
  | 'service, reviews'
  /** The same, with policies and rights from a small API server in its process. */
  | 'service, live reviews'
  /** With everything enabled. */
  | 'service, all of it';

type LedgerKind = 'service, ledger' | 'service, beside a ledger';

/** Maximum time until a decision is in the log. */
const LOGGED_WITHIN_MS = 5000;

/** A server in its own process. */
export class ServerProcess {
  readonly url: string;
  readonly #process: AskedProcess;
  readonly #folder: string;

  private constructor(process: AskedProcess, url: string, folder: string) {
    this.#process = process;
    this.url = url;
    this.#folder = folder;
  }

  /** Resolves after verifying that it does the measured work. */
  static async start(kind: ServerKind): Promise<ServerProcess> {
    const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-bench-'));
    const isOfReviews = kind.endsWith('reviews');
    if (isOfReviews || kind.endsWith('all of it')) {
      writeFileSync(join(folder, POLICIES), policyFile(clusterDocuments(USED)));
      writeFileSync(join(folder, LEASE_POLICIES), policyFile(LEASE_DOCUMENTS));
    }
    const main = new URL(`./server-main${extname(import.meta.url)}`, import.meta.url);
    const process = await AskedProcess.start(kind, main, [kind, folder]);
    try {
      const { url } = process.ready as ServerMessage;
      if (url === undefined) {
        throw new Error(`${kind}: expected a URL`);
      }
      const isOurs = kind.startsWith('service');
      await (isOfReviews ? proveReviews(url, isOurs) : proveAnswers(url, isOurs, kind));
      if (isOurs && (isOfReviews || kind === 'service, decision log' || kind === 'service, all of it')) {
        await proveLogged(join(folder, LOG));
      }
      return new ServerProcess(process, url, folder);
    } catch (thrown) {
      await process.stop();
      throw thrown;
    }
  }

  /** Processor nanoseconds used since its start. */
  async processor(): Promise<number> {
    return required((await this.#ask('processor')).processor);
  }

  /** Bytes, after garbage collection. */
  async memory(): Promise<{ readonly resident: number; readonly heap: number }> {
    return required((await this.#ask('memory')).memory);
  }

  /** Starts to observe the effects of requests. */
  async observe(): Promise<void> {
    await this.#ask('observe');
  }

  /** The effects since then. */
  async observed(): Promise<Observed> {
    return required((await this.#ask('observed')).observed);
  }

  async reload(): Promise<void> {
    if (!(await this.#ask('reload')).reloaded) {
      throw new Error('the configuration was not reloaded');
    }
  }

  async stop(): Promise<void> {
    await this.#process.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #ask(question: ServerQuestion): Promise<ServerMessage> {
    return this.#process.ask(question) as Promise<ServerMessage>;
  }
}

function required<Value>(value: Value | undefined): Value {
  if (value === undefined) {
    throw new Error('the server gave another answer than was asked for');
  }
  return value;
}

/** Verifies that the lease is allowed, and that a longer one is rejected if there is a limit. */
async function proveAnswers(url: string, hasLimit: boolean, kind: ServerKind): Promise<void> {
  const tokens = kind === 'service, tokens' ? [FIXED_TOKEN, KEYSTONE_TOKEN] : [''];
  for (const token of tokens) {
    await proveWith(url, hasLimit, token);
  }
}

async function proveWith(url: string, hasLimit: boolean, token: string): Promise<void> {
  const [request] = capturedRequests();
  if (request === undefined) {
    throw new Error('there is no request');
  }
  const tooLong = withLease(request, { end_date: '2099-01-01T00:00:00' });
  for (const [body, status] of [[request, 204] as const, ...(hasLimit ? [[tooLong, 403] as const] : [])]) {
    const answer = await fetch(`${url}/check-create`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...(token !== '' && { 'X-Auth-Token': token }) },
      body: JSON.stringify(body),
    });
    if (answer.status !== status) {
      throw new Error(`expected ${status}, got ${answer.status} ${await answer.text()}`);
    }
  }
}

/** Verifies that a valid pod is allowed, and that an invalid one is rejected if pods are reviewed. */
async function proveReviews(url: string, isJudged: boolean): Promise<void> {
  for (const [disk, expected] of [['ssd', true] as const, ['tape', !isJudged] as const]) {
    const answer = await fetch(url + ADMISSION_PATH, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: reviewText(0, disk),
    });
    const { response } = (await answer.json()) as { response?: { allowed?: boolean } };
    if (response?.allowed !== expected) {
      throw new Error(`expected ${expected} for ${disk}, got ${answer.status} ${JSON.stringify(response)}`);
    }
  }
}

async function proveLogged(log: string): Promise<void> {
  for (const end = Date.now() + LOGGED_WITHIN_MS; Date.now() < end; await pause(10)) {
    if (existsSync(log) && readFileSync(log, 'utf8').split('\n').length > 2) {
      return;
    }
  }
  throw new Error(`expected two decisions in ${log}`);
}
