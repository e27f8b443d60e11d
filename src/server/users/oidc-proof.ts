/** What keeps a session of OpenID Connect open: what the issuer has said, and says again from time to time. */
import { hash } from 'node:crypto';
import type { Context } from 'koa';
import { sectionOf } from '../../enforcement/configuration.ts';
import { stateOf } from '../request-state.ts';
import { type OidcOptions, oidcSection } from './oidc-options.ts';
import { type Claims, oidcPerson } from './oidc-person.ts';
import type { Person } from './person.ts';
import type { Proof } from './sessions.ts';

/** In milliseconds: no right is used that the issuer has not confirmed for so long. */
const LONGEST = 900_000;
/** From then on it is asked, beside the requests: it may be away for a third of the time without a session ending. */
const ASK_AFTER = 600_000;
/** Between two questions. */
const ASK_EVERY = 30_000;

/** What the issuer has confirmed. */
export interface Confirmed {
  readonly claims: Claims;
  /** With which it is asked again; `undefined` = it gives none. */
  readonly refreshToken: string | undefined;
}

/** `refused` = it takes the login back; `unknown` = it says nothing of the person; `away` = it could not be asked. */
export type Renewal = Confirmed | 'refused' | 'unknown' | 'away';

/** Asks the issuer again, by a refresh token. Never rejects. */
export type Renew = (ctx: Context, refreshToken: string) => Promise<Renewal>;

/** A logout that the issuer tells of: of a session there, or of all those of a user. */
export interface IssuerLogout {
  readonly sid: string | undefined;
  readonly sub: string | undefined;
}

export class OidcProof implements Proof {
  readonly identity: string;
  readonly isShared = false;
  readonly #key: string;
  readonly #sub: unknown;
  readonly #sid: unknown;
  readonly #renew: Renew;
  /** `undefined` = the issuer has taken it back. */
  #person: Person | undefined;
  #refreshToken: string | undefined;
  #confirmedAt = Date.now();
  #askedAt = 0;
  #asking: Promise<void> | undefined;

  constructor(person: Person, { claims, refreshToken }: Confirmed, options: OidcOptions, renew: Renew) {
    this.identity = person.identity;
    this.#key = keyOf(options);
    this.#sub = claims.sub;
    this.#sid = claims.sid;
    this.#renew = renew;
    this.#person = person;
    this.#refreshToken = refreshToken;
  }

  /** Also `undefined` when `[oidc]` has changed, or when nothing was confirmed for too long. */
  async owner(ctx: Context): Promise<Person | undefined> {
    const options = oidcOptionsOf(ctx);
    if (keyOf(options) !== this.#key) {
      return undefined;
    }
    if (!this.#isConfirmedFor(LONGEST)) {
      await this.#asking;
    }
    if (!this.#isConfirmedFor(LONGEST)) {
      await this.#ask(ctx, options);
    } else if (!this.#isConfirmedFor(ASK_AFTER) && !this.#wasAskedNow) {
      void this.#ask(ctx, options);
    }
    return this.#isConfirmedFor(LONGEST) ? this.#person : undefined;
  }

  /** Whether the session is one of those that the issuer has ended. */
  isEndedBy({ sid, sub }: IssuerLogout): boolean {
    const isOfUser = sub === undefined || sub === this.#sub;
    // Without a session that both sides name, all those of the user are meant.
    const isOfSession = sid === undefined || this.#sid === undefined ? sub !== undefined : sid === this.#sid;
    return isOfUser && isOfSession;
  }

  /** A clock that was set back makes nothing last longer. */
  #isConfirmedFor(milliseconds: number): boolean {
    const age = Date.now() - this.#confirmedAt;
    return age >= 0 && age < milliseconds;
  }

  get #wasAskedNow(): boolean {
    const age = Date.now() - this.#askedAt;
    return age >= 0 && age < ASK_EVERY;
  }

  /** One question at a time: a refresh token may count only once. */
  #ask(ctx: Context, options: OidcOptions): Promise<void> {
    const token = this.#refreshToken;
    if (this.#asking === undefined && token !== undefined) {
      const now = Date.now();
      this.#askedAt = now;
      this.#asking = this.#renew(ctx, token).then((renewal) => {
        this.#asking = undefined;
        this.#take(renewal, options, now);
      });
    }
    return this.#asking ?? Promise.resolve();
  }

  #take(renewal: Renewal, options: OidcOptions, askedAt: number): void {
    if (renewal === 'refused') {
      this.#person = undefined;
    } else if (renewal === 'unknown') {
      this.#refreshToken = undefined;
    } else if (renewal !== 'away') {
      const person = oidcPerson(renewal.claims, options);
      const isSame = renewal.claims.sub === this.#sub && person?.identity === this.identity;
      this.#person = isSame ? person : undefined;
      this.#refreshToken = renewal.refreshToken ?? this.#refreshToken;
      this.#confirmedAt = askedAt;
    }
  }
}

/** Of the current configuration; without `issuer` there is no such login. */
export function oidcOptionsOf(ctx: Context): OidcOptions {
  return sectionOf(stateOf(ctx).generation.configuration, oidcSection);
}

/** A digest, since the options may hold a secret. */
export function keyOf(options: OidcOptions): string {
  return hash('sha256', JSON.stringify(options));
}
