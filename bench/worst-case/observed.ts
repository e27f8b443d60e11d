/** Measures the effects of one request inside the process. */
import { readFileSync, writeFileSync } from 'node:fs';

export interface Observed {
  /** The longest time without a turn of the event loop, in nanoseconds of processor time of the thread. */
  readonly heldNanoseconds: number;
  /** The increase of peak memory. */
  readonly peakBytes: number;
}

/** Interval of the checks for a turn. */
const TURN_MS = 1;

/** Observes from `begin` to `end`, any number of times. */
export class Observer {
  #looking: NodeJS.Timeout | undefined;
  #last = 0;
  #longest = 0;
  #before = 0;

  begin(collect: () => void): void {
    collect();
    collect();
    this.#before = resetPeak();
    this.#last = workedNanoseconds();
    this.#longest = 0;
    this.#looking = setInterval(() => this.#look(), TURN_MS);
  }

  end(): Observed {
    clearInterval(this.#looking);
    this.#look();
    return { heldNanoseconds: this.#longest, peakBytes: Math.max(0, peakBytes() - this.#before) };
  }

  #look(): void {
    const now = workedNanoseconds();
    this.#longest = Math.max(this.#longest, now - this.#last);
    this.#last = now;
  }
}

/** Linux reports the processor time of this thread. Elapsed time would include other processes' load. */
function workedNanoseconds(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[0]);
  } catch {
    return performance.now() * 1e6;
  }
}

/** Linux resets the peak here. Elsewhere the peak covers the whole life of the process. */
function resetPeak(): number {
  try {
    writeFileSync('/proc/self/clear_refs', '5');
    return statusBytes('VmRSS');
  } catch {
    return process.memoryUsage().rss;
  }
}

function peakBytes(): number {
  try {
    return statusBytes('VmHWM');
  } catch {
    return process.resourceUsage().maxRSS * 1024;
  }
}

function statusBytes(name: string): number {
  const [, kilobytes] =
    new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  if (kilobytes === undefined) {
    throw new Error(`/proc/self/status does not say ${name}`);
  }
  return Number(kilobytes) * 1024;
}
