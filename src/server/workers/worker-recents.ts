/** The latest decisions of one worker, as the one that serves people reads them. */
import type { KeptDecision, RecentDecisions } from '../../decisions/recent.ts';
import type { DecisionRecord } from '../../decisions/record.ts';
import type { WorkerLink } from './worker-link.ts';

/** How often those of others are read while a page listens, in milliseconds. */
const LOOK_MS = 2000;

interface Written {
  readonly record: DecisionRecord;
  /** JSON knows no `bigint`. */
  readonly asked: readonly [string, string] | null;
}

export function writeRecents(decisions: readonly KeptDecision[]): string {
  return JSON.stringify(
    decisions.map(({ record, asked }): Written => {
      return { record, asked: asked === undefined ? null : [String(asked.start), String(asked.end)] };
    }),
  );
}

/** Of several workers. */
export function readRecents(answers: readonly string[]): KeptDecision[] {
  return answers
    .filter((answer) => answer !== '')
    .flatMap((answer) => JSON.parse(answer) as Written[])
    .map(({ record, asked }) => ({
      record,
      asked: asked === null ? undefined : { start: BigInt(asked[0]), end: BigInt(asked[1]) },
    }));
}

/** Reads those of the others. Rejects never: pages show fewer then. */
export async function readOthers(recent: RecentDecisions, link: WorkerLink): Promise<void> {
  try {
    recent.setOthers(readRecents(JSON.parse(await link.ask('recent')) as string[]));
  } catch {
    // The service stops.
  }
}

/** Reads them from time to time while a page listens. Returns what ends it. */
export function followOthers(recent: RecentDecisions, link: WorkerLink): () => void {
  const timer = setInterval(() => recent.isHeard && void readOthers(recent, link), LOOK_MS).unref();
  return () => clearInterval(timer);
}
