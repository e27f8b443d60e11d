/** The decision log of a worker: its lines go to the primary, which writes those of all workers. */
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Wait } from '../../deadline.ts';
import { type DecisionLogObserver, type DecisionLogOptions, logLine } from '../../decisions/log.ts';
import type { DecisionRecord } from '../../decisions/record.ts';
import type { Logger } from '../../logger.ts';
import { WaitingLine } from '../../waiting-line.ts';

/** How many decisions may wait in this process while the primary does not read. */
const MAX_WAITING = 10_000;
/** How many are let in at once when it reads again. */
const LET_IN = 64;

/**
 * Each line is in the hands of the system before the request is answered, so that a worker that is killed loses none. Only while the primary
 * does not read fast enough do lines wait here, or their requests, as `decision_log_when_full` says.
 */
export class SentLog {
  readonly #descriptor: number;
  readonly #whenFull: DecisionLogOptions['whenFull'];
  readonly #logger: Logger;
  readonly #observer: DecisionLogObserver;
  /** Makes the descriptor one that never blocks, and carries what did not fit. */
  readonly #pipe: Socket;
  readonly #blocked = new WaitingLine();
  /** Of this turn. */
  #lines: string[] = [];
  #sending: Promise<void> | undefined;
  #waiting = 0;
  #dropped = 0;
  #isClosed = false;

  constructor(
    descriptor: number,
    whenFull: DecisionLogOptions['whenFull'],
    logger: Logger,
    observer: DecisionLogObserver,
  ) {
    this.#descriptor = descriptor;
    this.#whenFull = whenFull;
    this.#logger = logger;
    this.#observer = observer;
    this.#pipe = new Socket({ fd: descriptor, readable: false, writable: true });
    this.#pipe.on('error', () => {
      // The primary is gone, and this process ends too.
      this.#isClosed = true;
    });
  }

  /** As `DecisionLog.write`; resolves when the system has the line. */
  write(record: DecisionRecord, wait: Wait, request?: string): Promise<void> | undefined {
    if (this.#isClosed || (this.#waiting >= MAX_WAITING && this.#whenFull === 'drop')) {
      this.#drop();
      return undefined;
    }
    if (this.#waiting > 0 && this.#whenFull === 'block') {
      return this.#sendLater(logLine(record, request), wait);
    }
    return this.#add(logLine(record, request));
  }

  /** The primary does it. */
  reopen(): void {}

  /** Sends the rest. What cannot be sent within `withinMs` is dropped. */
  async close(withinMs: number): Promise<void> {
    await this.#sending;
    await new Promise<void>((ended) => {
      const late = setTimeout(() => this.#pipe.destroy(), withinMs);
      this.#pipe.once('close', () => {
        clearTimeout(late);
        ended();
      });
      this.#pipe.end(() => this.#pipe.destroy());
    });
    this.#isClosed = true;
    if (this.#waiting > 0) {
      this.#observer.dropped(this.#waiting);
      this.#logger.error({ decisions: this.#waiting }, 'the end of the decision log was not written');
    }
  }

  /** Sends the lines of one turn together: a call of the system for each would cost more than making the line. */
  #add(line: string): Promise<void> {
    this.#lines.push(line);
    this.#sending ??= new Promise((sent) =>
      setImmediate(() => {
        const lines = this.#lines;
        this.#lines = [];
        this.#sending = undefined;
        this.#send(Buffer.from(lines.join('')), lines.length);
        sent();
      }),
    );
    return this.#sending;
  }

  async #sendLater(line: string, wait: Wait): Promise<void> {
    do {
      await this.#blocked.join(wait, 'The decision could not be logged in time. Please try again.');
    } while (this.#waiting > 0);
    await this.#add(line);
  }

  #send(lines: Buffer, count: number): void {
    const rest = this.#waiting > 0 ? lines : lines.subarray(this.#written(lines));
    if (rest.length === 0) {
      return;
    }
    this.#waiting += count;
    this.#pipe.write(rest, () => {
      this.#waiting -= count;
      if (this.#waiting === 0) {
        this.#letIn();
      }
    });
  }

  /** How many bytes the system takes at once. */
  #written(lines: Buffer): number {
    try {
      return writeSync(this.#descriptor, lines);
    } catch {
      // It is full, or the primary is gone: the pipe tells which.
      return 0;
    }
  }

  #letIn(): void {
    if (this.#dropped > 0) {
      this.#logger.warn({ decisions: this.#dropped }, 'the decision log is fast enough again');
      this.#dropped = 0;
    }
    for (let room = LET_IN; room > 0 && this.#blocked.letIn(); room -= 1) {}
    if (this.#blocked.length > 0) {
      setImmediate(() => this.#waiting === 0 && this.#letIn());
    }
  }

  #drop(): void {
    this.#observer.dropped(1);
    if (this.#dropped === 0) {
      this.#logger.error('the decision log is too slow: decisions are dropped from it');
    }
    this.#dropped += 1;
  }
}
