/** Whether the whole service is ready: it is when every worker is. */
import type { Readiness } from '../openapi/bodies.ts';

/** What one worker has said of itself. */
export interface WorkerReadiness {
  /** 1 is the first. */
  readonly number: number;
  /** `undefined` = it does not answer requests yet, or did not say so in time. */
  readonly readiness: Readiness | undefined;
}

/**
 * `own`: of the worker that answers. The status is that of the first worker that is not ready, and each problem of another one names its worker.
 * Mistakes of the configuration are the same for all, and told once.
 */
export function wholeReadiness(own: Readiness, others: readonly WorkerReadiness[]): Readiness {
  const told = new Set(own.problems);
  const problems = [...own.problems];
  let { status } = own;
  for (const { number, readiness } of others) {
    if (readiness?.status === 'ready') {
      continue;
    }
    if (status === 'ready') {
      status = readiness?.status ?? 'worker not ready';
    }
    const why = readiness?.problems ?? ['it does not answer requests'];
    // A worker that drains has no problem to tell.
    const lines = why.length > 0 ? why : [readiness?.status ?? ''];
    problems.push(...lines.filter((line) => !told.has(line)).map((line) => `worker ${number}: ${line}`));
  }
  return { ...own, status, problems };
}

/** Of all other workers, as the primary has gathered it. */
export function readOthersReadiness(text: string): WorkerReadiness[] {
  return (JSON.parse(text) as [number, string | null][]).map(([number, readiness]) => ({
    number,
    readiness: readiness === null ? undefined : (JSON.parse(readiness) as Readiness),
  }));
}
