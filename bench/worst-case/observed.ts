/** What one request does to the process that answers it: looked at from inside of it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';

export interface Observed {
  /**
   * For so long nothing else was done, in nanoseconds: the longest of all times, or all processor time since `begin` where that is
   * less. The rest others on the machine have had.
   */
  readonly heldNanoseconds: number;
  /** So much more than before was in memory at once. */
  readonly peakBytes: number;
}

/** The histogram's clock strikes so often, and counts from one stroke to the next. */
const RESOLUTION_MS = 1;

/** Observes from `begin` to `end`, as often as one likes. */
export class Observer {
  #delay: IntervalHistogram | undefined;
  #before = 0;
  #used: NodeJS.CpuUsage | undefined;

  begin(collect: () => void): void {
    collect();
    collect();
    this.#before = resetPeak();
    this.#delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    this.#delay.enable();
    this.#used = process.cpuUsage();
  }

  end(): Observed {
    this.#delay?.disable();
    const { user, system } = process.cpuUsage(this.#used);
    const held = Math.min((this.#delay?.max ?? 0) - RESOLUTION_MS * 1e6, (user + system) * 1000);
    return { heldNanoseconds: Math.max(0, held), peakBytes: Math.max(0, peakBytes() - this.#before) };
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
