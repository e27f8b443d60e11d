/**
 * The primary of a service of several processes. It judges nothing: it accepts connections and hands them to workers, writes the decision log, and
 * sees to it that reloads and the stop concern all workers.
 */
import { createServer, type Server } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { DecisionLog } from '../../decisions/log.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import { errorText, type Problem } from '../../errors.ts';
import { FailuresInARow } from '../../http/failures-in-a-row.ts';
import { createLogger, type Logger } from '../../logger.ts';
import { openDecisionLog } from '../decision-recorder.ts';
import { listen, urlOf } from '../listener.ts';
import type { UncaughtKind } from '../metrics/metrics.ts';
import type { OpenedDoor } from '../opened-doors.ts';
import type { ServiceOptions } from '../options.ts';
import { ConnectionLine } from './connection-line.ts';
import { Crew, type WorkerStartError } from './crew.ts';
import type { CallSeen, Question, Ready, Topic } from './messages.ts';
import { Reloads } from './reloads.ts';
import { workerCount } from './share.ts';
import { removeAbandonedFolders, SocketFolder } from './socket-folder.ts';
import { WholeMetrics } from './whole-metrics.ts';
import type { WorkerProcess } from './worker-process.ts';

/** How long the answers of workers are waited for, in milliseconds. */
const PATIENCE_MS = 5000;
/** The same for readiness: less than the second that Kubernetes waits for a probe. */
const READINESS_MS = 800;
/** How long a worker may take to end after its grace, in milliseconds. */
const SLACK_MS = 3000;
/** The part of `shutdown_grace` that is kept for the decision log, as in a single process. */
const LAST_PART = 0.05;

export interface PrimarySettings {
  /** Ends the process if it does not stop in time. */
  readonly watchdog?: { endIn(milliseconds: number): void };
}

export class Primary {
  readonly url: string;
  readonly warnings: readonly Problem[];
  readonly writesToStandardOutput: boolean;
  /** Resolves to why the service has ended by itself: no worker can be started any more. */
  readonly broken: Promise<WorkerStartError>;
  readonly #options: ServiceOptions;
  readonly #settings: PrimarySettings;
  readonly #logger: Logger;
  readonly #server: Server;
  readonly #folder: SocketFolder;
  readonly #crew: Crew;
  readonly #connections: ConnectionLine;
  readonly #metrics: WholeMetrics;
  readonly #log: DecisionLog | undefined;
  readonly #reloads: Reloads;
  readonly #reading = new Set<Promise<void>>();
  /** For workers that are started later. */
  readonly #failures = new FailuresInARow();
  /** As the first worker has told it. */
  #first: Pick<Ready, 'doors' | 'tokenForLeases'> | undefined;
  #closing: Promise<void> | undefined;

  private constructor(
    server: Server,
    connections: ConnectionLine,
    configuration: Configuration,
    options: ServiceOptions,
    settings: PrimarySettings,
    folder: SocketFolder,
  ) {
    this.#server = server;
    this.#connections = connections;
    this.#options = options;
    this.#settings = settings;
    const count = workerCount(options.workers);
    const logger = createLogger(options.log_level, options.log_format);
    this.#logger = logger;
    this.#metrics = new WholeMetrics(count, () => this.#crew.running.length);
    this.#log = openDecisionLog(configuration, options, logger, this.#metrics);
    this.#folder = folder;
    this.url = urlOf(server, options.tls_cert_file !== undefined);
    this.warnings = configuration.problems;
    this.writesToStandardOutput = options.decision_log === '-';
    this.#reloads = new Reloads({
      parties: () => this.#crew.parties,
      reopen: () => this.#log?.reopen(),
      failed: (thrown) =>
        logger.error({ error: errorText(thrown) }, 'the workers could not be told to read files again'),
    });
    let broken: (error: WorkerStartError) => void = () => {};
    this.broken = new Promise((resolve) => {
      broken = resolve;
    });
    this.#crew = new Crew({
      ...{ count, url: this.url, folder: folder.path, options, reloads: this.#reloads, logger },
      writesToStandardError: this.writesToStandardOutput,
      observer: {
        joined: (worker) => connections.join(worker),
        left: (worker) => connections.leave(worker, false),
        gone: (worker) => {
          void this.#metrics.gone(worker);
          connections.gone(worker);
        },
        ended: (reason) => this.#metrics.ended(reason),
        broken,
      },
      started: (worker) => this.#read(worker),
      failed: () => this.#failures.all,
      hears: {
        ready: (_, { doors, tokenForLeases }) => {
          this.#first ??= { doors, tokenForLeases };
        },
        accepted: (worker, id) => connections.confirmed(worker, id),
        changed: (topic) => this.#changed(topic),
        called: (by, call) => this.#tellOthers(by, call),
        asked: (question, by) => this.#asked(question, by),
      },
    });
  }

  /** The protocols that are served, and what they ask for, as of the start. */
  get doors(): readonly OpenedDoor[] {
    return this.#first?.doors ?? [];
  }

  /** Whether requests about leases need a token, as of the start. */
  get tokenForLeases(): boolean {
    return this.#first?.tokenForLeases ?? false;
  }

  /** Listens and starts the workers. @throws ConfigurationError if the address cannot be used, WorkerStartError if one of the workers does not start */
  static async start(
    configuration: Configuration,
    options: ServiceOptions,
    settings: PrimarySettings,
  ): Promise<Primary> {
    const connections = new ConnectionLine();
    const server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => connections.add(socket));
    await listen(server, options.host, options.port);
    let folder: SocketFolder | undefined;
    let primary: Primary | undefined;
    try {
      folder = await SocketFolder.open();
      primary = new Primary(server, connections, configuration, options, settings, folder);
      await primary.#crew.start();
      void removeAbandonedFolders();
      return primary;
    } catch (thrown) {
      server.close();
      await primary?.close();
      folder?.close();
      throw thrown;
    }
  }

  /** Reads the configuration and the files with credentials again. Resolves to whether all workers use the new configuration. */
  reload(): Promise<boolean> {
    return this.#reloads.reload();
  }

  /** Writes the decisions that it sends. */
  #read(worker: WorkerProcess): void {
    const reading = worker.log
      .read((lines, count) => this.#log?.writeLines(lines, count))
      .finally(() => this.#reading.delete(reading));
    this.#reading.add(reading);
  }

  #changed(topic: Topic): void {
    void (topic === 'configuration' ? this.#reloads.reload() : this.#reloads.credentialsChanged());
  }

  #tellOthers(by: WorkerProcess, message: CallSeen): void {
    this.#failures.seen(message.key, message.event);
    for (const worker of this.#crew.all) {
      if (worker !== by) {
        worker.tell(message);
      }
    }
  }

  async #asked(question: Question, by: WorkerProcess): Promise<string> {
    const workers = this.#crew.all.filter(({ isReady }) => isReady);
    if (question === 'metrics') {
      await Promise.all(
        workers.map(async (worker) => this.#metrics.heard(worker, await worker.ask('metrics', PATIENCE_MS))),
      );
      return this.#metrics.text(this.#crew.all);
    }
    if (question === 'readiness') {
      return this.#readiness(by);
    }
    const others = workers.filter((worker) => worker !== by);
    const answers = await Promise.all(others.map((worker) => worker.ask('recent', PATIENCE_MS)));
    return JSON.stringify(answers.filter((answer) => answer !== undefined));
  }

  /** Of all workers that there should be, but `by`: number and answer of each, `null` for one that gives none. */
  async #readiness(by: WorkerProcess): Promise<string> {
    const numbers = Array.from({ length: this.#crew.count }, (_, index) => index + 1);
    const answers = numbers
      .filter((number) => number !== by.number)
      .map(async (number) => {
        const worker = this.#crew.running.find((one) => one.number === number);
        return [number, (await worker?.ask('readiness', READINESS_MS)) ?? null];
      });
    return JSON.stringify(await Promise.all(answers));
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
    this.#reloads.close();
    this.#server.close();
    this.#connections.close();
    const late = new AbortController();
    const ended = Promise.all([this.#crew.stop(), ...this.#reading]);
    await Promise.race([
      ended,
      pause(graceMs + SLACK_MS, undefined, { signal: late.signal }).catch(() => {}),
    ]);
    late.abort();
    this.killAll();
    await ended;
    await this.#log?.close(Math.max(1000, graceMs * LAST_PART));
    this.#folder.close();
  }

  /** At once. */
  killAll(): void {
    this.#crew.killAll();
  }
}
