/** Network addresses: which belong to one client, and which only this machine reaches. */
import { isIP, isIPv6 } from 'node:net';

/** The addresses that one client usually has: one IPv4 address, or a /64 of IPv6. */
export function addressBlock(address: string): string {
  const [plain = ''] = address.replace(/^::ffff:(?=\d+\.)/i, '').split('%');
  if (!isIPv6(plain)) {
    return plain;
  }
  const [head = '', tail] = plain.split('::');
  const groups = (part: string | undefined) => (part === undefined || part === '' ? [] : part.split(':'));
  const first = groups(head);
  const last = groups(tail);
  const zeros = tail === undefined ? 0 : 8 - first.length - last.length;
  const all = [...first, ...Array.from({ length: Math.max(zeros, 0) }, () => '0'), ...last];
  return all.slice(0, 4).join(':');
}

/** Whether only this machine can reach an address. Names other than `localhost` may resolve to any address. */
export function isLoopback(host: string): boolean {
  const plain = host.replace(/^::ffff:(?=\d+\.)/i, '');
  return host === 'localhost' || host === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'));
}
