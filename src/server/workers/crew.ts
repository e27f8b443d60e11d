/** The workers of a service: starts them, replaces those that die or hang, and chooses the one that serves people. */
import { rmSync } from 'node:fs';
import { errorText } from '../../errors.ts';
import type { Logger } from '../../logger.ts';
import type { ServiceOptions } from '../options.ts';
import type { Party } from './agreement.ts';
import { Heartbeats } from './heartbeats.ts';
import { LogPipe } from './log-pipe.ts';
import type { Place, Ready } from './messages.ts';
import { Pauses } from './pauses.ts';
import type { Reloads } from './reloads.ts';
import type { EndKind } from './whole-metrics.ts';
import { type WorkerEnd, type WorkerObserver, WorkerProcess } from './worker-process.ts';

/** Workers that end before they can answer, one after the other, while none can: then the service ends. */
const MAX_FAILED_STARTS = 5;

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

/** Is told of workers. */
export interface CrewObserver {
  /** It answers requests from now on. */
  joined(worker: WorkerProcess): void;
  /** It answers no further ones, and finishes those under way. */
  left(worker: WorkerProcess): void;
  /** Its process has ended. */
  gone(worker: WorkerProcess): void;
  /** Nobody has told it to end. */
  ended(reason: EndKind): void;
  /** No worker can be started any more. */
  broken(error: WorkerStartError): void;
}

export interface CrewOptions {
  readonly count: number;
  /** Of the port that the primary listens on. */
  readonly url: string;
  /** For the sockets between workers. */
  readonly folder: string;
  readonly writesToStandardError: boolean;
  readonly options: Pick<ServiceOptions, 'hang_timeout' | 'shutdown_grace'>;
  readonly reloads: Reloads;
  readonly observer: CrewObserver;
  readonly logger: Logger;
  /** Hears what workers say; of `ready`, before the crew. */
  readonly hears: Omit<WorkerObserver, 'leaving' | 'ended'>;
  /** A worker's process is there. */
  readonly started: (worker: WorkerProcess) => void;
  /** Calls that workers have seen fail. */
  readonly failed: () => Place['failed'];
}

export class Crew {
  readonly #parts: CrewOptions;
  readonly #workers = new Set<WorkerProcess>();
  /** Those that have what all have. */
  readonly #joined = new WeakSet<WorkerProcess>();
  readonly #pauses = new Map<number, Pauses>();
  readonly #heartbeats: Heartbeats<WorkerProcess>;
  readonly #awaited = new Map<WorkerProcess, (end: WorkerEnd | undefined) => void>();
  #desk: WorkerProcess | undefined;
  #failedStarts = 0;
  /** How many have been opened. */
  #pipes = 0;
  #isStarted = false;
  #isClosing = false;
  #allGone = (): void => {};

  constructor(parts: CrewOptions) {
    this.#parts = parts;
    const { options, logger } = parts;
    // As in the watchdog of a worker.
    const held = Math.min(options.hang_timeout, Math.max(1, options.shutdown_grace));
    this.#heartbeats = new Heartbeats(
      held,
      () => this.#workers,
      (worker, milliseconds) => {
        logger.error(
          { worker: worker.number, pid: worker.pid },
          `a worker hangs: it has not run for ${milliseconds / 1000} s and is killed`,
        );
        worker.kill('hung');
      },
    );
  }

  /** How many there should be. */
  get count(): number {
    return this.#parts.count;
  }

  /** All processes that there are. */
  get all(): readonly WorkerProcess[] {
    return [...this.#workers];
  }

  /** Those that answer requests. */
  get running(): readonly WorkerProcess[] {
    return this.all.filter((worker) => this.#joined.has(worker) && !worker.isLeaving);
  }

  /** Those that take part in what all use or none. Mistakes are told by the worker that serves people. */
  get parties(): readonly Party[] {
    const desk = this.#desk;
    return this.all
      .filter((worker) => worker.isReady && !worker.isLeaving && !worker.isGone)
      .sort((one, other) => Number(other === desk) - Number(one === desk));
  }

  /** The first one alone, so that a mistake is told once. @throws WorkerStartError if one of them does not start */
  async start(): Promise<void> {
    await this.#startFirst(1);
    const others = Array.from({ length: this.#parts.count - 1 }, (_, index) => index + 2);
    await Promise.all(others.map((number) => this.#startFirst(number)));
    this.#isStarted = true;
  }

  /** Replaces nobody from now on, and tells all to finish what is under way. Resolves when all processes have ended. */
  stop(): Promise<void> {
    this.#isClosing = true;
    this.#heartbeats.close();
    for (const worker of this.#workers) {
      worker.tell({ kind: 'stop' });
    }
    return new Promise((resolve) => {
      this.#allGone = resolve;
      this.#tellIfAllGone();
    });
  }

  #tellIfAllGone(): void {
    if (this.#workers.size === 0) {
      this.#allGone();
    }
  }

  /** At once. */
  killAll(): void {
    for (const worker of this.#workers) {
      worker.kill('stopped');
    }
  }

  /** Resolves when it can answer. */
  async #startFirst(number: number): Promise<void> {
    const worker = await this.#fork(number).catch((thrown: unknown) => {
      throw new WorkerStartError(`worker ${number} did not start: ${errorText(thrown)}`, null);
    });
    const end = await new Promise<WorkerEnd | undefined>((settled) => {
      if (worker === undefined) {
        settled(undefined);
      } else {
        this.#awaited.set(worker, settled);
      }
    });
    if (end !== undefined) {
      throw new WorkerStartError(`worker ${number} did not start: ${endText(end)}`, end.code);
    }
  }

  /** One that takes the place of another. If there is no pipe for it, as when too many files are open, it is tried again. */
  #forkAgain(number: number): void {
    void this.#fork(number).catch((thrown: unknown) => {
      this.#parts.logger.error({ worker: number, error: errorText(thrown) }, 'a worker could not be started');
      this.#replace({ number }, 0);
    });
  }

  /** `undefined` = the service stops. */
  async #fork(number: number): Promise<WorkerProcess | undefined> {
    const { url, folder, count, reloads, writesToStandardError, hears, started, failed } = this.#parts;
    this.#pipes += 1;
    const log = await LogPipe.open(`${folder}/log-${this.#pipes}`);
    if (this.#isClosing) {
      log.close();
      return undefined;
    }
    const place = { number, of: count, generation: reloads.generation, url, folder, failed: failed() };
    const worker = new WorkerProcess(
      { place, log, writesToStandardError },
      {
        ...hears,
        ready: (_, ready) => {
          hears.ready(worker, ready);
          this.#ready(worker, ready);
        },
        leaving: () => this.#leaving(worker),
        ended: (_, end) => this.#ended(worker, end),
      },
    );
    this.#workers.add(worker);
    started(worker);
    return worker;
  }

  #ready(worker: WorkerProcess, { digest, generation }: Ready): void {
    const { reloads, logger } = this.#parts;
    reloads.begin(digest);
    if (generation !== reloads.generation) {
      // There was a reload meanwhile, of which it knows nothing.
      worker.kill('outdated');
      return;
    }
    if (digest !== reloads.digest) {
      // The files have changed since the others have read them.
      logger.warn(
        { worker: worker.number },
        'the configuration has changed since it was read: all workers read it again',
      );
      void reloads.agree('configuration').then((applied) => this.#join(worker, applied));
      return;
    }
    // Files with credentials may have changed, too.
    if (this.#isStarted) {
      void reloads.agree('credentials');
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
      this.#parts.logger.info({ worker: worker.number, pid: worker.pid }, 'a worker has started');
    }
    this.#joined.add(worker);
    this.#parts.observer.joined(worker);
    this.#chooseDesk();
    if (this.#desk !== undefined && this.#desk !== worker) {
      worker.tell({ kind: 'desk', number: this.#desk.number, path: this.#desk.path });
    }
    this.#awaited.get(worker)?.(undefined);
    this.#awaited.delete(worker);
  }

  /** Another one takes its place while it finishes what is under way. */
  #leaving(worker: WorkerProcess): void {
    this.#parts.observer.left(worker);
    this.#chooseDesk();
    this.#replace(worker, 0);
  }

  #ended(worker: WorkerProcess, end: WorkerEnd): void {
    this.#workers.delete(worker);
    this.#parts.observer.gone(worker);
    rmSync(worker.path, { force: true });
    this.#chooseDesk();
    const awaited = this.#awaited.get(worker);
    this.#awaited.delete(worker);
    if (this.#isClosing) {
      this.#tellIfAllGone();
      return;
    }
    if (awaited !== undefined) {
      awaited(end);
      return;
    }
    if (worker.killedFor === 'outdated') {
      this.#forkAgain(worker.number);
      return;
    }
    this.#tellEnd(worker, end);
    if (!this.#joined.has(worker)) {
      this.#failedStarts += 1;
      if (this.#failedStarts >= MAX_FAILED_STARTS && this.running.length === 0) {
        const message = `no worker can be started: ${endText(end)}`;
        this.#parts.observer.broken(new WorkerStartError(message, end.code));
        return;
      }
    }
    if (!worker.isLeaving) {
      this.#replace(worker, end.livedMs);
    }
  }

  #tellEnd(worker: WorkerProcess, { code, signal }: WorkerEnd): void {
    const isJoined = this.#joined.has(worker);
    const reason = worker.killedFor === 'hung' ? 'hung' : isJoined ? 'died' : 'not started';
    this.#parts.observer.ended(reason);
    this.#parts.logger.error(
      { worker: worker.number, pid: worker.pid, reason, code, signal },
      worker.isLeaving
        ? 'a worker has ended after an uncaught error'
        : isJoined
          ? 'a worker has ended: requests that it was answering are lost'
          : 'a worker has ended before it could answer requests',
    );
  }

  #replace({ number }: Pick<WorkerProcess, 'number'>, livedMs: number): void {
    if (this.#isClosing) {
      return;
    }
    const pauses = this.#pauses.get(number) ?? new Pauses();
    this.#pauses.set(number, pauses);
    const milliseconds = pauses.after(livedMs);
    this.#parts.logger.warn(
      { worker: number, pause_ms: milliseconds },
      'a worker is started again after a pause',
    );
    setTimeout(() => {
      if (!this.#isClosing) {
        this.#forkAgain(number);
      }
    }, milliseconds);
  }

  /** The first that runs stays it as long as it runs. */
  #chooseDesk(): void {
    // While all finish what is under way, nobody begins anything.
    if (this.#isClosing) {
      return;
    }
    const running = this.running.toSorted((one, other) => one.number - other.number);
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
}

function endText({ code, signal }: WorkerEnd): string {
  return signal === null ? `it ended with exit code ${code}` : `${signal} has ended it`;
}
