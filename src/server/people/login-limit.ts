/** Limits guesses: after too many wrong tokens or passwords, an address must wait, and for one account also addresses that it does not know. */
import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';

const MAX_WRONG = 10;
const WINDOW_MS = 60_000;
/** Maximum number of addresses or accounts that are remembered; beyond it the oldest is forgotten. */
const MAX_REMEMBERED = 10_000;

/** Counts what is wrong, by any name. */
class Wrong {
  /** Time of the first failure and number of failures; oldest first. */
  readonly #wrong = new Map<string, { readonly since: number; count: number }>();

  wait(name: string): number {
    const wrong = this.#wrong.get(name);
    if (wrong === undefined) {
      return 0;
    }
    const left = wrong.since + WINDOW_MS - Date.now();
    // A clock that was set back must not lock anybody out for long.
    if (left <= 0 || left > WINDOW_MS) {
      this.#wrong.delete(name);
      return 0;
    }
    return wrong.count < MAX_WRONG ? 0 : Math.ceil(left / 1000);
  }

  count(name: string): void {
    const wrong = this.#wrong.get(name);
    if (wrong !== undefined) {
      wrong.count += 1;
      return;
    }
    const oldest = this.#wrong.size < MAX_REMEMBERED ? undefined : this.#wrong.keys().next().value;
    if (oldest !== undefined) {
      this.#wrong.delete(oldest);
    }
    this.#wrong.set(name, { since: Date.now(), count: 1 });
  }

  /** Takes one back. */
  forgive(name: string): void {
    const wrong = this.#wrong.get(name);
    if (wrong !== undefined && wrong.count > 0) {
      wrong.count -= 1;
    }
  }
}

/** By address. */
export class LoginLimit {
  readonly #wrong = new Wrong();

  /** Seconds until the address may try again; 0 = now. */
  wait(address: string): number {
    return this.#wrong.wait(blockOf(address));
  }

  /** Counts a wrong login. One that takes time is counted before, so that no more go on at once, and forgiven if it was right. */
  count(address: string): void {
    this.#wrong.count(blockOf(address));
  }

  forgive(address: string): void {
    this.#wrong.forgive(blockOf(address));
  }
}

/**
 * By account, for passwords that are tried from many addresses. It is not for addresses from which the account has logged in before:
 * strangers could keep its owner out.
 */
export class AccountLimit {
  readonly #wrong = new Wrong();
  readonly #known = new LRUCache<string, true>({ max: MAX_REMEMBERED });

  /** Seconds until the address may try this account again; 0 = now. */
  wait(account: string, address: string): number {
    return this.#known.has(digest(account, blockOf(address))) ? 0 : this.#wrong.wait(digest(account));
  }

  count(account: string): void {
    this.#wrong.count(digest(account));
  }

  /** After a login that was not wrong. `address`: from which it was right; it is known from now on. */
  forgive(account: string, address?: string): void {
    this.#wrong.forgive(digest(account));
    if (address !== undefined) {
      this.#known.set(digest(account, blockOf(address)), true);
    }
  }
}

/** Keystone may compare names without case, as its database does. */
function digest(...texts: string[]): string {
  return createHash('sha256').update(JSON.stringify(texts).toLowerCase()).digest('base64');
}

/** The addresses that one person usually has: one IPv4 address, or a /64 of IPv6. */
function blockOf(address: string): string {
  const [plain = ''] = address.replace(/^::ffff:(?=\d+\.)/i, '').split('%');
  if (!isIPv6(plain)) {
    return plain;
  }
  const [head = '', tail] = plain.split('::');
  const groups = (part: string | undefined) => (part === undefined || part === '' ? [] : part.split(':'));
  const [first, last] = [groups(head), groups(tail)];
  const zeros = tail === undefined ? 0 : 8 - first.length - last.length;
  const all = [...first, ...Array.from({ length: Math.max(zeros, 0) }, () => '0'), ...last];
  return all.slice(0, 4).join(':');
}
