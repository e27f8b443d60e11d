/**
 * Sees to it that a filter that holds the process does not hold it for ever: nothing in this thread could, not even a signal is heard.
 * A thread of its own looks whether this one still has turns to give. Where it has not had for too long, the thread says who holds it,
 * and ends the process, so that whatever has started it starts it again.
 */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { errorText } from '../base/errors.ts';
import type { LogFormat, LogLevel } from '../base/logger.ts';
import { ExecutionTracker } from '../enforcement/execution-tracker.ts';

/** What the thread is told. */
export type WatchdogOrder =
  | { readonly names: readonly string[] }
  /** It looks so often, and so many looks without a beat are too many. */
  | { readonly everyMs: number; readonly looks: number; readonly logFormat: LogFormat | undefined }
  /** The process ends in so many milliseconds, come what may. */
  | { readonly endInMs: number };

export interface WatchdogStart {
  readonly memory: SharedArrayBuffer;
  readonly exitCode: number;
}

/** What bounds it, in seconds, and how it is logged. */
interface WatchdogTimes {
  /** 0 = it may be held for ever. */
  readonly hang_timeout: number;
  readonly shutdown_grace: number;
  readonly log_level: LogLevel;
  readonly log_format: LogFormat;
}

/** Looks in the time that it may be held: the last one falls within it. */
const LOOKS = 10;
/** While it stops, the thread waits for so much longer: what has ended in time is not ended by force. */
const SLACK_MS = 2000;
/** A signal that came while it was held is heard afterwards. Shorter than this it is not held, it is busy. */
const HELD_MS = 1000;

export class Watchdog {
  readonly executions = new ExecutionTracker((names) => this.#tell({ names }));
  readonly #thread: Worker;
  #beating: NodeJS.Timeout | undefined;
  #lastBeat = performance.now();
  #lastGap = 0;

  /** Watches nobody until it is told for how long. `failed` is told when the thread has ended by itself, which it never should. */
  constructor(exitCode: number, failed: (error: string) => void) {
    const start: WatchdogStart = { memory: this.executions.memory, exitCode };
    this.#thread = new Worker(new URL(`./watchdog-thread${extname(import.meta.url)}`, import.meta.url), {
      workerData: start,
      // Nobody else's: no loader of filters, no inspector, no coverage.
      execArgv: [],
      name: 'watchdog',
    });
    this.#thread.on('error', (thrown) => failed(errorText(thrown)));
    this.#thread.unref();
  }

  /** A loop that is held keeps signals waiting: for longer than a stop may take, it may not be held. */
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

  /** For how long this thread has not had turns to give until now, in milliseconds; 0 when it was not held. */
  heldForMs(): number {
    const held = Math.max(performance.now() - this.#lastBeat, this.#lastGap);
    return this.#beating !== undefined && held > HELD_MS ? held : 0;
  }

  /** The process is to end within this time. */
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
