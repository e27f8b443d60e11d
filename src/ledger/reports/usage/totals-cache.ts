/** Totals of leases from earlier reports of this process, reused while the leases are unchanged. */
import { hash } from 'node:crypto';
import { larger, smaller } from '../../../filter/claim.ts';
import type { Block } from './pieces.ts';
import type { ReportSums, Totals } from './sums.ts';

/** Limit for all totals, about twenty megabytes. The least recently used are dropped. */
const MOST_ROWS = 100_000;

interface Kept {
  readonly checksum: string;
  /** The time that contains the leases and all their use, in seconds. */
  readonly from: bigint;
  readonly until: bigint;
  readonly totals: Totals;
}

/**
 * Leases whose whole use lies within the time of a report have the same totals in every report that contains
 * that time.
 */
export class TotalsCache {
  readonly #kept = new Map<string, Kept>();
  readonly #most: number;
  #rows = 0;

  constructor(most = MOST_ROWS) {
    this.#most = most;
  }

  /** For one report. The name has a digest of the budgets, since the time of use depends on them. */
  of({ query, budgets }: Pick<ReportSums, 'query' | 'budgets'>) {
    const texts = [...budgets].map(([account, budget]) => JSON.stringify([account, ...textsOf(budget)]));
    const digest = hash('sha256', texts.sort().join('\n'), 'base64url');
    const nameOf = (projectId: string | undefined, { range: { after } }: Block) =>
      JSON.stringify([projectId, query.by, query.isDetailed === true, String(after), digest]);
    const checksumOf = ({ range, checksum }: Block) => `${range.last} ${checksum}`;
    const isIn = ({ from, until }: Kept) => from >= query.from && until <= query.until;
    return {
      find: (projectId: string | undefined, block: Block): Totals | undefined => {
        const name = nameOf(projectId, block);
        const kept = this.#kept.get(name);
        if (kept === undefined || kept.checksum !== checksumOf(block) || !isIn(kept)) {
          return undefined;
        }
        this.#keep(name, kept);
        return kept.totals;
      },
      keep: (projectId: string | undefined, block: Block, totals: Totals): void => {
        const from = smaller(totals.first ?? block.from, block.from);
        const until = larger(totals.last ?? block.until, block.until);
        const kept = { from, until, checksum: checksumOf(block), totals };
        if (isIn(kept)) {
          this.#keep(nameOf(projectId, block), kept);
        }
      },
    };
  }

  /** Stores it as the most recently used. */
  #keep(name: string, kept: Kept): void {
    this.#forget(name);
    this.#kept.set(name, kept);
    this.#rows += sizeOf(kept);
    for (const oldest of this.#kept.keys()) {
      if (this.#rows <= this.#most) {
        break;
      }
      this.#forget(oldest);
    }
  }

  #forget(name: string): void {
    const kept = this.#kept.get(name);
    this.#rows -= kept === undefined ? 0 : sizeOf(kept);
    this.#kept.delete(name);
  }
}

/** In rows. */
function sizeOf({ totals }: Kept): number {
  return totals.rows.length + 1;
}

function textsOf(budget: object): string[] {
  return Object.values(budget).map(String);
}
