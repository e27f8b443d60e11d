/** Something that all workers use or none: each prepares it, and uses it only when all of them have prepared the same. */
import type { Problem } from '../../errors.ts';
import type { Topic } from './messages.ts';

/** What a worker has made of it. */
export type Prepared =
  | { readonly digest: string }
  /** It refuses it, or has ended meanwhile. */
  | { readonly problems: readonly Problem[] };

/** A worker that takes part. */
export interface Party {
  readonly number: number;
  prepare(round: number, topic: Topic): Promise<Prepared>;
  /** Resolves when the worker uses what it has prepared, or is gone. */
  take(round: number): Promise<void>;
  /** Resolves when the worker has forgotten it, or is gone. */
  drop(round: number, problems: readonly Problem[]): Promise<void>;
}

/** How often it is tried when workers have read different files: somebody was writing them. */
const TRIES = 3;

export interface Agreed {
  /** What all use now; `undefined` = what was used before is used still. */
  readonly digest: string | undefined;
}

export class Agreements {
  #round = 0;

  /**
   * The first one is asked before the others, which are asked together: a mistake is found, and told, by one.
   */
  async agree(topic: Topic, parties: readonly Party[]): Promise<Agreed> {
    for (let attempt = 1; ; attempt += 1) {
      this.#round += 1;
      const round = this.#round;
      const [first, ...others] = parties;
      if (first === undefined) {
        return { digest: undefined };
      }
      const prepared = [await first.prepare(round, topic)];
      if (isPrepared(prepared[0])) {
        prepared.push(...(await Promise.all(others.map((party) => party.prepare(round, topic)))));
      }
      const problems = prepared.flatMap((one) => ('problems' in one ? one.problems : []));
      const digests = new Set(prepared.flatMap((one) => ('digest' in one ? [one.digest] : [])));
      const asked = parties.slice(0, prepared.length);
      if (prepared.every(isPrepared) && digests.size === 1) {
        await Promise.all(asked.map((party) => party.take(round)));
        return { digest: [...digests][0] };
      }
      const isLast = attempt === TRIES || problems.length > 0 || !prepared.every(isPrepared);
      await Promise.all(
        asked.map((party) => party.drop(round, problems.length > 0 ? problems : [DIFFERENT])),
      );
      if (isLast) {
        return { digest: undefined };
      }
    }
  }
}

const DIFFERENT: Problem = {
  severity: 'error',
  message: 'the files changed while they were read: expected the same for every worker',
};

function isPrepared(one: Prepared | undefined): one is { readonly digest: string } {
  return one !== undefined && 'digest' in one;
}
