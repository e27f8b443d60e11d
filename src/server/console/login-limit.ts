/** Limits guesses: after too many logins with a wrong token, an address must wait. */
import { isIPv6 } from 'node:net';

const MAX_WRONG = 10;
const WINDOW_MS = 60_000;
/** Maximum number of addresses that are remembered; beyond it the oldest is forgotten. */
const MAX_ADDRESSES = 10_000;

export class LoginLimit {
  /** Time of the first failure and number of failures; oldest first. */
  readonly #wrong = new Map<string, { readonly since: number; count: number }>();

  /** Seconds until the address may try again; 0 = now. */
  wait(address: string): number {
    const block = blockOf(address);
    const wrong = this.#wrong.get(block);
    if (wrong === undefined) {
      return 0;
    }
    const left = wrong.since + WINDOW_MS - Date.now();
    // A clock that was set back must not lock anybody out for long.
    if (left <= 0 || left > WINDOW_MS) {
      this.#wrong.delete(block);
      return 0;
    }
    return wrong.count < MAX_WRONG ? 0 : Math.ceil(left / 1000);
  }

  /** Counts a login with a wrong token. */
  count(address: string): void {
    const block = blockOf(address);
    const wrong = this.#wrong.get(block);
    if (wrong !== undefined) {
      wrong.count += 1;
      return;
    }
    const oldest = this.#wrong.size < MAX_ADDRESSES ? undefined : this.#wrong.keys().next().value;
    if (oldest !== undefined) {
      this.#wrong.delete(oldest);
    }
    this.#wrong.set(block, { since: Date.now(), count: 1 });
  }
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
