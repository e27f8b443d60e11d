/**
 * The primary of a service of several processes. It judges nothing: it accepts connections and hands them to workers, replaces workers that die or
 * hang, writes the decision log, and sees to it that reloads and the stop concern all workers.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { systemErrorText } from '../../config/read-file.ts';
import type { DecisionLog } from '../../decisions/log.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import { ConfigurationError, errorText, type Problem } from '../../errors.ts';
import { createLogger, type Logger } from '../../logger.ts';
import { openDecisionLog } from '../decision-recorder.ts';
import { listen, urlOf } from '../listener.ts';
import type { UncaughtKind } from '../metrics.ts';
import type { OpenedDoor } from '../opened-doors.ts';
import type { ServiceOptions } from '../options.ts';
import { Agreements } from './agreement.ts';
import { ConnectionLine } from './connection-line.ts';
import { Heartbeats } from './heartbeats.ts';
import type { CallSeen, Question, Ready, Topic } from './messages.ts';
import { Pauses } from './pauses.ts';
import { readLines } from './read-lines.ts';
import { workerCount } from './share.ts';
import { WholeMetrics } from './whole-metrics.ts';
import { type WorkerEnd, type WorkerObserver, WorkerProcess } from './worker-process.ts';

/** How long the answers of workers are waited for, in milliseconds. */
const PATIENCE_MS = 5000;
/** Workers that end before they can answer, one after the other, while none can: then the service ends. */
const MAX_FAILED_STARTS = 5;
/** How long a worker may take to end after its grace, in milliseconds. */
const SLACK_MS = 3000;
/** The part of `shutdown_grace` that is kept for the decision log, as in a single process. */
const LAST_PART = 0.05;

/** A worker did not start. It has said why itself. */
export class WorkerStartError extends Error {
  override readonly name = 'WorkerStartError';
  /** The exit code of the worker, if it had one. */
  readonly code: number | null;

  constructor(message: string, code: number | null) {
    super(message);
    this.code = code;
  }
}

export interface PrimarySettings {
  /** Whether workers watch the files of the configuration. */
  readonly watch: boolean;
  /** Ends the process if it does not stop in time. */
  readonly watchdog?: { endIn(milliseconds: number): void };
}

export class Primary implements WorkerObserver {
  readonly url: string;
  readonly warnings: readonly Problem[];
  readonly writesToStandardOutput: boolean;
  /** Resolves to why the service has ended by itself: no worker can be started any more. */
  readonly broken: Promise<WorkerStartError>;
  doors: readonly OpenedDoor[] = [];
  tokenForLeases = false;
  readonly #options: ServiceOptions;
  readonly #settings: PrimarySettings;
  readonly #logger: Logger;
  readonly #server: Server;
  readonly #folder: string;
  readonly #count: number;
  readonly #workers = new Set<WorkerProcess>();
  readonly #connections: ConnectionLine;
  readonly #metrics: WholeMetrics;
  readonly #log: DecisionLog | undefined;
  readonly #agreements = new Agreements();
  readonly #pauses = new Map<number, Pauses>();
  readonly #heartbeats: Heartbeats<WorkerProcess>;
  readonly #reading = new Set<Promise<void>>();
  readonly #awaited = new Map<WorkerProcess, (end: WorkerEnd | undefined) => void>();
  #desk: WorkerProcess | undefined;
  #generation = 1;
  /** Of the files that all workers use. */
  #digest: string | undefined;
  /** Whether the configuration that was read last is refused. */
  #isRefused = false;
  #rounds: Promise<unknown> = Promise.resolve();
  #waitingRounds = new Set<Topic>();
  #failedStarts = 0;
  #isStarted = false;
  #closing: Promise<void> | undefined;
  #break: (error: WorkerStartError) => void = () => {};

  private constructor(
    server: Server,
    connections: ConnectionLine,
    configuration: Configuration,
    options: ServiceOptions,
    settings: PrimarySettings,
  ) {
    this.#server = server;
    this.#connections = connections;
    this.#options = options;
    this.#settings = settings;
    this.#count = workerCount(options.workers);
    this.#logger = createLogger(options.log_level, options.log_format);
    this.#metrics = new WholeMetrics(this.#count, () => this.#running().length);
    this.#log = openDecisionLog(configuration, options, this.#logger, this.#metrics);
    this.#folder = newFolder();
    this.url = urlOf(server, options.tls_cert_file !== undefined);
    this.warnings = configuration.problems;
    this.writesToStandardOutput = options.decision_log === '-';
    this.broken = new Promise((broken) => {
      this.#break = broken;
    });
    // As in the watchdog of a worker.
    const held = Math.min(options.hang_timeout, Math.max(1, options.shutdown_grace));
    this.#heartbeats = new Heartbeats(
      held,
      () => this.#workers,
      (worker, milliseconds) => {
        this.#logger.error(
          { worker: worker.number, pid: worker.pid },
          `a worker hangs: it has not run for ${milliseconds / 1000} s and is killed`,
        );
        worker.kill('hung');
      },
    );
  }

  /**
   * Listens and starts the workers: the first one alone, so that a mistake is told once. @throws ConfigurationError if the address cannot
   * be used, WorkerStartError if one of the workers does not start
   */
  static async start(
    configuration: Configuration,
    options: ServiceOptions,
    settings: PrimarySettings,
  ): Promise<Primary> {
    const connections = new ConnectionLine();
    const server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => connections.add(socket));
    await listen(server, options.host, options.port);
    let primary: Primary | undefined;
    try {
      primary = new Primary(server, connections, configuration, options, settings);
      await primary.#startAll();
      return primary;
    } catch (thrown) {
      server.close();
      await primary?.close();
      throw thrown;
    }
  }

  async #startAll(): Promise<void> {
    await this.#startFirst(1);
    const others = Array.from({ length: this.#count - 1 }, (_, index) => index + 2);
    await Promise.all(others.map((number) => this.#startFirst(number)));
    this.#isStarted = true;
  }

  /** Resolves when it can answer. */
  async #startFirst(number: number): Promise<void> {
    const end = await new Promise<WorkerEnd | undefined>((settled) => {
      this.#awaited.set(this.#fork(number), settled);
    });
    if (end !== undefined) {
      throw new WorkerStartError(`worker ${number} did not start: ${endText(end)}`, end.code);
    }
  }

  #fork(number: number): WorkerProcess {
    const { url } = this;
    const place = {
      ...{ number, of: this.#count, generation: this.#generation, url, folder: this.#folder },
    };
    const worker = new WorkerProcess({ place, writesToStandardError: this.writesToStandardOutput }, this);
    this.#workers.add(worker);
    const reading = readLines(worker.log, (lines, count) => this.#log?.writeLines(lines, count)).finally(() =>
      this.#reading.delete(reading),
    );
    this.#reading.add(reading);
    return worker;
  }

  ready(worker: WorkerProcess, { digest, generation, doors, tokenForLeases }: Ready): void {
    if (this.#digest === undefined) {
      [this.#digest, this.doors, this.tokenForLeases] = [digest, doors, tokenForLeases];
    }
    if (generation !== this.#generation) {
      // There was a reload meanwhile, of which it knows nothing.
      worker.kill('outdated');
      return;
    }
    if (digest !== this.#digest) {
      // The files have changed since the others have read them.
      this.#logger.warn(
        { worker: worker.number },
        'the configuration has changed since it was read: all workers read it again',
      );
      void this.#agree('configuration').then((applied) => this.#join(worker, applied));
      return;
    }
    // Files with credentials may have changed, too.
    if (this.#isStarted) {
      void this.#agree('credentials');
    }
    this.#join(worker, true);
  }

  /** It answers requests from now on, if it has what all have. */
  #join(worker: WorkerProcess, hasSame: boolean): void {
    if (worker.isGone || worker.isLeaving) {
      return;
    }
    if (!hasSame) {
      worker.kill('other configuration');
      return;
    }
    this.#failedStarts = 0;
    if (this.#isStarted) {
      this.#logger.info({ worker: worker.number, pid: worker.pid }, 'a worker has started');
    }
    this.#connections.join(worker);
    this.#joined.add(worker);
    this.#chooseDesk();
    if (this.#desk !== undefined && this.#desk !== worker) {
      worker.tell({ kind: 'desk', number: this.#desk.number, path: this.#desk.path });
    }
    this.#awaited.get(worker)?.(undefined);
    this.#awaited.delete(worker);
  }

  /** Those that have what all have. */
  readonly #joined = new WeakSet<WorkerProcess>();

  accepted(worker: WorkerProcess, id: number): void {
    this.#connections.confirmed(worker, id);
  }

  /** Another one takes its place while it finishes what is under way. */
  leaving(worker: WorkerProcess): void {
    this.#connections.leave(worker, false);
    this.#chooseDesk();
    this.#replace(worker, 0);
  }

  changed(topic: Topic): void {
    void (topic === 'configuration' ? this.reload() : this.credentialsChanged());
  }

  called(by: WorkerProcess, call: CallSeen): void {
    for (const worker of this.#workers) {
      if (worker !== by) {
        worker.tell(call);
      }
    }
  }

  async asked(question: Question, by: WorkerProcess): Promise<string> {
    const workers = [...this.#workers].filter(({ isReady }) => isReady);
    if (question === 'metrics') {
      await Promise.all(
        workers.map(async (worker) => this.#metrics.heard(worker, await worker.ask('metrics', PATIENCE_MS))),
      );
      return this.#metrics.text([...this.#workers]);
    }
    const others = workers.filter((worker) => worker !== by);
    const answers = await Promise.all(others.map((worker) => worker.ask('recent', PATIENCE_MS)));
    return JSON.stringify(answers.filter((answer) => answer !== undefined));
  }

  ended(worker: WorkerProcess, end: WorkerEnd): void {
    this.#workers.delete(worker);
    void this.#metrics.gone(worker);
    this.#connections.gone(worker);
    rmSync(worker.path, { force: true });
    this.#chooseDesk();
    const isJoined = this.#joined.has(worker);
    const awaited = this.#awaited.get(worker);
    this.#awaited.delete(worker);
    if (this.#closing !== undefined) {
      return;
    }
    if (awaited !== undefined) {
      awaited(end);
      return;
    }
    if (worker.killedFor === 'outdated') {
      this.#fork(worker.number);
      return;
    }
    const reason = worker.killedFor === 'hung' ? 'hung' : isJoined ? 'died' : 'not started';
    this.#metrics.ended(reason);
    this.#logger.error(
      { worker: worker.number, pid: worker.pid, reason, code: end.code, signal: end.signal },
      worker.isLeaving
        ? 'a worker has ended after an uncaught error'
        : isJoined
          ? 'a worker has ended: requests that it was answering are lost'
          : 'a worker has ended before it could answer requests',
    );
    if (!isJoined) {
      this.#failedStarts += 1;
      if (this.#failedStarts >= MAX_FAILED_STARTS && this.#running().length === 0) {
        this.#break(new WorkerStartError(`no worker can be started: ${endText(end)}`, end.code));
        return;
      }
    }
    if (!worker.isLeaving) {
      this.#replace(worker, end.livedMs);
    }
  }

  #replace({ number }: WorkerProcess, livedMs: number): void {
    if (this.#closing !== undefined) {
      return;
    }
    const pauses = this.#pauses.get(number) ?? new Pauses();
    this.#pauses.set(number, pauses);
    const milliseconds = pauses.after(livedMs);
    this.#logger.warn({ worker: number, pause_ms: milliseconds }, 'a worker is started again after a pause');
    setTimeout(() => {
      if (this.#closing === undefined) {
        this.#fork(number);
      }
    }, milliseconds);
  }

  /** Those that answer requests. */
  #running(): WorkerProcess[] {
    return [...this.#workers].filter((worker) => this.#joined.has(worker) && !worker.isLeaving);
  }

  /** The first that runs stays it as long as it runs. */
  #chooseDesk(): void {
    const running = this.#running().sort((one, other) => one.number - other.number);
    if (this.#desk !== undefined && running.includes(this.#desk)) {
      return;
    }
    this.#desk = running[0];
    if (this.#desk !== undefined) {
      const { number, path } = this.#desk;
      for (const worker of running) {
        worker.tell({ kind: 'desk', number, path });
      }
    }
  }

  /** Reads the configuration and the files with credentials again. Resolves to whether all workers use the new configuration. */
  async reload(): Promise<boolean> {
    this.#log?.reopen();
    const applied = await this.#agree('configuration');
    await this.#agree('credentials');
    return applied;
  }

  /** Reads the files with credentials again; and the configuration too, if its mistakes may have been in these files. */
  async credentialsChanged(): Promise<void> {
    await this.#agree('credentials');
    if (this.#isRefused) {
      await this.reload();
    }
  }

  /** One round after the other. All that is wanted during a round is one more after it. */
  #agree(topic: Topic): Promise<boolean> {
    if (this.#waitingRounds.has(topic)) {
      return this.#rounds.then(() => !this.#isRefused);
    }
    this.#waitingRounds.add(topic);
    const round = this.#rounds.then(async () => {
      this.#waitingRounds.delete(topic);
      if (this.#closing !== undefined) {
        return false;
      }
      const desk = this.#desk;
      const parties = [...this.#workers]
        .filter((worker) => worker.isReady && !worker.isLeaving && !worker.isGone)
        // Mistakes are told by the worker that serves people.
        .sort((one, other) => Number(other === desk) - Number(one === desk));
      const { digest } = await this.#agreements.agree(topic, parties);
      if (topic === 'configuration') {
        this.#isRefused = digest === undefined;
        if (digest !== undefined) {
          this.#digest = digest;
          this.#generation += 1;
        }
      }
      return digest !== undefined;
    });
    this.#rounds = round.catch((thrown: unknown) => {
      this.#logger.error({ error: errorText(thrown) }, 'the workers could not be told to read files again');
    });
    return round;
  }

  /** An error of the primary itself. */
  reportUncaught(kind: UncaughtKind, thrown: unknown): void {
    const stack = thrown instanceof Error ? thrown.stack : undefined;
    this.#logger.error({ kind, error: errorText(thrown), stack }, 'uncaught error in the primary');
  }

  /** Stops accepting, lets all workers finish what is under way, and writes the decision log, within `shutdown_grace`. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const graceMs = this.#options.shutdown_grace * 1000;
    this.#settings.watchdog?.endIn(graceMs + SLACK_MS);
    this.#heartbeats.close();
    this.#server.close();
    this.#connections.close();
    for (const worker of this.#workers) {
      worker.tell({ kind: 'stop' });
    }
    const late = new AbortController();
    const ended = Promise.all([...this.#reading]);
    await Promise.race([
      ended,
      pause(graceMs + SLACK_MS, undefined, { signal: late.signal }).catch(() => {}),
    ]);
    late.abort();
    this.killAll();
    await ended;
    await this.#log?.close(Math.max(1000, graceMs * LAST_PART));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** At once. */
  killAll(): void {
    for (const worker of this.#workers) {
      worker.kill('stopped');
    }
  }
}

/** For the sockets between workers. @throws ConfigurationError */
function newFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'blazar-enforcement-workers-'));
  } catch (thrown) {
    const message = `expected a folder for temporary files that can be written, got ${tmpdir()} (${systemErrorText(thrown)}); TMPDIR names another one`;
    throw new ConfigurationError([{ severity: 'error', section: 'service', option: 'workers', message }]);
  }
}

function endText({ code, signal }: WorkerEnd): string {
  return signal === null ? `it ended with exit code ${code}` : `${signal} has ended it`;
}
