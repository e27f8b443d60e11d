/**
 * Which accounts the leases of a user have touched before: their balances can be asked for before it is known what the next lease
 * claims. A wrong guess costs one more query, and changes no answer.
 */
import type { LeaseIdentity } from '../identity.ts';

/** The latest owners of leases. */
const MOST_OWNERS = 1000;
/** Leases that touch more are not guessed. */
const MOST_ACCOUNTS = 32;

type Owner = Pick<LeaseIdentity, 'projectId' | 'userId'>;

export class ExpectedAccounts {
  readonly #known = new Map<string, readonly string[]>();

  of(owner: Owner): readonly string[] {
    return this.#known.get(keyOf(owner)) ?? [];
  }

  learn(owner: Owner, accounts: ReadonlySet<string>): void {
    const key = keyOf(owner);
    const known = this.#known.get(key);
    if (known !== undefined && accounts.size === known.length && known.every((name) => accounts.has(name))) {
      return;
    }
    this.#known.delete(key);
    if (accounts.size > 0 && accounts.size <= MOST_ACCOUNTS) {
      this.#known.set(key, [...accounts]);
    }
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size > MOST_OWNERS) {
      this.#known.delete(oldest);
    }
  }
}

function keyOf({ projectId, userId }: Owner): string {
  return `${projectId.length} ${projectId}${userId}`;
}
