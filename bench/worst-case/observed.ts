/** What one request does to the process that answers it: looked at from inside of it. */
import { readFileSync, writeFileSync } from 'node:fs';

export interface Observed {
  /** For so long nothing else was done, in nanoseconds that the thread had a processor: the longest of all times. */
  readonly heldNanoseconds: number;
  /** So much more than before was in memory at once. */
  readonly peakBytes: number;
}

/** It is looked so often whether there is a turn. */
const TURN_MS = 1;

/** Observes from `begin` to `end`, as often as one likes. */
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

/** Linux says how long this thread has had a processor: on a machine with others, time alone would say how much they do. */
function workedNanoseconds(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[0]);
  } catch {
    return performance.now() * 1e6;
  }
}

/** Linux counts the peak anew from here on. Elsewhere it is that of the whole life of the process. */
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
