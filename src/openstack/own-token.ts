/** The token of our own account: kept, renewed before it expires, thrown away when somebody refuses it. */
import { inTime, waitFor } from '../base/deadline.ts';
import { errorText } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import type { Clock } from '../filter/services.ts';
import type { Catalog } from './catalog.ts';

export interface OwnToken {
  readonly value: string;
  /** Milliseconds of the epoch, by our clock. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly catalog: Catalog;
}

/** Enough for the longest call that is still under way with it. Short-lived tokens use a quarter of their time. */
const MARGIN_MS = 120_000;
/** How long a renewal rests after one that has failed, while the old token is still valid. */
const RENEWAL_PAUSE_MS = 5_000;
/**
 * A token is replaced at its first refusal, but a service that refuses every token must not make us ask for one at each call: if the
 * replacement is refused too, the pause until the next one doubles, from one second to this. It starts again after as long a time
 * without a refusal. Keystone itself refuses a token that it has issued in the second in which the password was changed.
 */
const MAX_REFUSAL_PAUSE_MS = 60_000;

export class OwnTokens {
  readonly #issue: () => Promise<OwnToken>;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #kept: OwnToken | undefined;
  /** One request for any number of callers. */
  #underWay: Promise<OwnToken> | undefined;
  #renewalFailedAt: number | undefined;
  #replacedAt = Number.NEGATIVE_INFINITY;
  #refusalPause = 0;

  constructor(issue: () => Promise<OwnToken>, { clock, logger }: { clock: Clock; logger: Logger }) {
    this.#issue = issue;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Near its end a token is renewed while it is still given out. Rejects with the reason of the signal when that fires first. */
  async current(signal?: AbortSignal): Promise<OwnToken> {
    signal?.throwIfAborted();
    const now = this.#clock.now().getTime();
    const kept = this.#kept;
    if (kept === undefined || now >= kept.expiresAt) {
      return inTime(this.#renew(), waitFor(signal));
    }
    if (
      now >= renewalOf(kept) &&
      now >= (this.#renewalFailedAt ?? now - RENEWAL_PAUSE_MS) + RENEWAL_PAUSE_MS
    ) {
      this.#renew().catch((thrown: unknown) => this.#renewalFailed(thrown));
    }
    return kept;
  }

  /** The next `current` waits for another token, unless this one has just replaced a refused one. */
  refused(token: string): void {
    const now = this.#clock.now().getTime();
    const since = Math.abs(now - this.#replacedAt);
    if (this.#kept?.value !== token || since < this.#refusalPause) {
      return;
    }
    this.#refusalPause =
      since > MAX_REFUSAL_PAUSE_MS ? 1_000 : Math.min(MAX_REFUSAL_PAUSE_MS, this.#refusalPause * 2);
    this.#replacedAt = now;
    this.#kept = undefined;
  }

  #renew(): Promise<OwnToken> {
    this.#underWay ??= this.#issue()
      .then((token) => {
        this.#kept = token;
        this.#renewalFailedAt = undefined;
        return token;
      })
      .finally(() => {
        this.#underWay = undefined;
      });
    // All who wait for it may have given up.
    this.#underWay.catch(() => undefined);
    return this.#underWay;
  }

  #renewalFailed(thrown: unknown): void {
    if (this.#renewalFailedAt === undefined) {
      const error = errorText(thrown);
      this.#logger.warn({ error }, 'no new token from Keystone: the one before is used until it expires');
    }
    this.#renewalFailedAt = this.#clock.now().getTime();
  }
}

function renewalOf({ issuedAt, expiresAt }: OwnToken): number {
  return expiresAt - Math.min(MARGIN_MS, (expiresAt - issuedAt) / 4);
}
