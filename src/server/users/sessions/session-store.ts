/** Stores of sessions: in this process, or for all replicas in the ledger's database (`session-table.ts`). */
import type { Wait } from '../../../base/deadline.ts';
import { FairShare } from '../../../base/fair-limiter.ts';

export interface SessionBounds {
  /** In total. A further one ends a session of the owner with most, or is refused if no owner has more. */
  readonly all: number;
  /** Per user of Keystone or the identity provider. A further one ends the oldest. */
  readonly ofUser: number;
  /** Per configured token. A further one ends the newest: others who share it cannot end older ones. */
  readonly ofToken: number;
}

export const BOUNDS: SessionBounds = { all: 10_000, ofUser: 20, ofToken: 200 };
/** Maximum number of remembered callbacks of the identity provider. */
const MAX_TAKEN = 10_000;

/** Hashes by which the identity provider ends sessions: of its user, and of its session. `null` = unknown. */
export interface ProviderMarks {
  readonly sub: string | null;
  readonly sid: string | null;
}

export interface NewSession extends ProviderMarks {
  /** The hash of its cookie. */
  readonly name: string;
  /** The hash of the identity that owns the session. */
  readonly owner: string;
  /** Whether several users may share the identity. */
  readonly isShared: boolean;
  readonly sealed: string;
}

/** Times are milliseconds of the epoch, by the common clock of the store. */
export interface FoundSession {
  readonly since: number;
  readonly now: number;
  /** Increases with each change. */
  readonly revision: number;
  readonly sealed: string;
}

export interface Opening {
  /** In milliseconds: older sessions are deleted and do not count. */
  readonly lifetime: number;
  /** The names of sessions that the new one replaces. They end even if there is no room for it. */
  readonly instead: readonly string[];
}

/** Each method is atomic. They throw if the store cannot be reached. */
export interface SessionStore {
  find(name: string, wait: Wait): Promise<FoundSession | undefined>;
  /** `false` = there is no room. */
  open(session: NewSession, opening: Opening, wait: Wait): Promise<boolean>;
  /** Replaces the sealed content. `false` = it was replaced since that revision, or the session has ended. */
  replace(name: string, revision: number, sealed: string, wait: Wait): Promise<boolean>;
  end(names: readonly string[], wait: Wait): Promise<void>;
  /**
   * Ends the sessions that a provider names. Without a session that both sides name, ends all sessions of the
   * user. Resolves to their number.
   */
  endMarked(marks: ProviderMarks, wait: Wait): Promise<number>;
  /** Whether the name is taken for the first time within `lifetime` milliseconds. */
  takeOnce(name: string, lifetime: number, wait: Wait): Promise<boolean>;
}

/** If a clock was set back, no session lives longer. */
export function hasExpired({ since, now }: Pick<FoundSession, 'since' | 'now'>, lifetime: number): boolean {
  return now >= since + lifetime || now < since;
}

interface OpenSession extends NewSession {
  readonly since: number;
  readonly revision: number;
}

export class MemorySessions implements SessionStore {
  /** By name, oldest first. */
  readonly #open = new Map<string, OpenSession>();
  readonly #shares: FairShare<string>;
  /** When each was taken, oldest first. */
  readonly #taken = new Map<string, number>();

  readonly #bounds: SessionBounds;

  constructor(bounds = BOUNDS) {
    this.#bounds = bounds;
    this.#shares = new FairShare(bounds.all);
  }

  async find(name: string): Promise<FoundSession | undefined> {
    const session = this.#open.get(name);
    return session && { ...session, now: Date.now() };
  }

  async open(session: NewSession, { lifetime, instead }: Opening): Promise<boolean> {
    const now = Date.now();
    this.#deleteThose(({ name, since }) => instead.includes(name) || hasExpired({ since, now }, lifetime));
    const { name, owner, isShared } = session;
    const { ofUser, ofToken } = this.#bounds;
    const isAtBound = this.#shares.of(owner).length >= (isShared ? ofToken : ofUser);
    const giving = isAtBound ? owner : this.#shares.givesWay(owner);
    if (giving !== undefined && !this.#giveWay(giving)) {
      return false;
    }
    this.#open.set(name, { ...session, since: now, revision: 1 });
    this.#shares.add(owner, name);
    return true;
  }

  async replace(name: string, revision: number, sealed: string): Promise<boolean> {
    const session = this.#open.get(name);
    if (session?.revision !== revision) {
      return false;
    }
    this.#open.set(name, { ...session, sealed, revision: revision + 1 });
    return true;
  }

  async end(names: readonly string[]): Promise<void> {
    for (const name of names) {
      this.#delete(name);
    }
  }

  async endMarked({ sub, sid }: ProviderMarks): Promise<number> {
    return this.#deleteThose(
      (session) =>
        (sub === null || session.sub === sub) &&
        (sid === null ? sub !== null : session.sid === sid || (session.sid === null && sub !== null)),
    );
  }

  async takeOnce(name: string, lifetime: number): Promise<boolean> {
    const now = Date.now();
    for (const [other, since] of this.#taken) {
      if (this.#taken.size >= MAX_TAKEN || hasExpired({ since, now }, lifetime)) {
        this.#taken.delete(other);
      } else {
        break;
      }
    }
    if (this.#taken.has(name)) {
      return false;
    }
    this.#taken.set(name, now);
    return true;
  }

  /** Ends one session of an owner; `false` = the owner has none. */
  #giveWay(owner: string): boolean {
    const names = this.#shares.of(owner);
    const [oldest] = names;
    const isShared = oldest !== undefined && this.#open.get(oldest)?.isShared === true;
    const name = isShared ? names.at(-1) : oldest;
    if (name === undefined) {
      return false;
    }
    this.#delete(name);
    return true;
  }

  #deleteThose(isMeant: (session: OpenSession) => boolean): number {
    const meant = [...this.#open.values()].filter(isMeant);
    for (const { name } of meant) {
      this.#delete(name);
    }
    return meant.length;
  }

  #delete(name: string): void {
    const session = this.#open.get(name);
    if (session !== undefined) {
      this.#open.delete(name);
      this.#shares.delete(session.owner, name);
    }
  }
}
