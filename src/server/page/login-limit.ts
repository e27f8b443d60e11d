/** How often an address may guess: logins with a wrong token are counted, and too many close the login to it for a while. */
import { isIPv6 } from 'node:net';

const MAX_WRONG = 10;
const WINDOW_MS = 60_000;
/** So many addresses are remembered. With one more the oldest is forgotten. */
const MAX_ADDRESSES = 10_000;

export class LoginLimit {
  /** Since when, and how often; oldest first. */
  readonly #wrong = new Map<string, { readonly since: number; count: number }>();

  /** The seconds until the address may try again; 0 = now. */
  wait(address: string): number {
    const block = blockOf(address);
    const wrong = this.#wrong.get(block);
    if (wrong === undefined) {
      return 0;
    }
    const left = wrong.since + WINDOW_MS - Date.now();
    // A clock that was set back must lock nobody out for long.
    if (left <= 0 || left > WINDOW_MS) {
      this.#wrong.delete(block);
      return 0;
    }
    return wrong.count < MAX_WRONG ? 0 : Math.ceil(left / 1000);
  }

  /** It has sent a wrong token. */
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

/** What one person has of addresses: one of IPv4, or the /64 of IPv6 that every network hands out. */
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
