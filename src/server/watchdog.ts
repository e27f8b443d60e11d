/**
 * Ends the process when a filter blocks the event loop too long: nothing in this thread could, since it does
 * not even receive signals. Another thread checks heartbeats of this one. If too many are missed, it logs the
 * filter that blocks and ends the process, so that its supervisor restarts it.
 */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { errorText } from '../base/errors.ts';
import type { LogFormat, LogLevel } from '../base/logger.ts';
import { ExecutionTracker } from '../enforcement/execution-tracker.ts';

/** Messages to the thread. */
export type WatchdogOrder =
  | { readonly names: readonly string[] }
  /** Polling interval, and the number of missed heartbeats that counts as blocked. */
  | { readonly everyMs: number; readonly looks: number; readonly logFormat: LogFormat | undefined }
  /** Hard limit before the process exits, in milliseconds. */
  | { readonly endInMs: number };

export interface WatchdogStart {
  readonly memory: SharedArrayBuffer;
  readonly exitCode: number;
}

/** Its limits, in seconds, and how it logs. */
interface WatchdogTimes {
  /** 0 = no limit. */
  readonly hang_timeout: number;
  readonly shutdown_grace: number;
  readonly log_level: LogLevel;
  readonly log_format: LogFormat;
}

const LOOKS = 10;
/** Additional time during a shutdown: a process that ends in time is not killed. */
const SLACK_MS = 2000;
/** Signals are handled after the block. Shorter delays count as busy, not blocked. */
const HELD_MS = 1000;

export class Watchdog {
  readonly executions = new ExecutionTracker((names) => this.#tell({ names }));
  readonly #thread: Worker;
  #beating: NodeJS.Timeout | undefined;
  #lastBeat = performance.now();
  #lastGap = 0;

  /** Watches nothing before `watch`. `failed`: called if the thread ends by itself, which it never should. */
  constructor(exitCode: number, failed: (error: string) => void) {
    const start: WatchdogStart = { memory: this.executions.memory, exitCode };
    this.#thread = new Worker(new URL(`./watchdog-thread${extname(import.meta.url)}`, import.meta.url), {
      workerData: start,
      // Without the options of the process: no loader of filters, no inspector, no coverage.
      execArgv: [],
      name: 'watchdog',
    });
    this.#thread.on('error', (thrown) => failed(errorText(thrown)));
    this.#thread.unref();
  }

  /** A blocked event loop delays signals: so the limit is at most the grace of a shutdown. */
  watch({ hang_timeout, shutdown_grace, log_level, log_format }: WatchdogTimes): void {
    clearInterval(this.#beating);
    const seconds = hang_timeout === 0 ? 0 : Math.min(hang_timeout, Math.max(1, shutdown_grace));
    const everyMs = (seconds * 1000) / LOOKS;
    this.#lastBeat = performance.now();
    if (seconds > 0) {
      this.#beating = setInterval(() => this.#beat(), everyMs).unref();
    }
    const logFormat = log_level === 'silent' ? undefined : log_format;
    this.#tell({ everyMs, looks: LOOKS - 1, logFormat });
  }

  /** For how long this thread has been blocked until now, in milliseconds; 0 = not blocked. */
  heldForMs(): number {
    const held = Math.max(performance.now() - this.#lastBeat, this.#lastGap);
    return this.#beating !== undefined && held > HELD_MS ? held : 0;
  }

  /** From now on, the process is ended if it has not ended within this time. */
  endIn(milliseconds: number): void {
    this.#tell({ endInMs: Math.max(0, milliseconds) + SLACK_MS });
  }

  #beat(): void {
    const now = performance.now();
    this.#lastGap = now - this.#lastBeat;
    this.#lastBeat = now;
    this.executions.beat();
  }

  #tell(order: WatchdogOrder): void {
    this.#thread.postMessage(order);
  }
}
