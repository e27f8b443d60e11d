import { isIP } from 'node:net';

/** Whether only this machine can reach an address. Names other than `localhost` may resolve to any address. */
export function isLoopback(host: string): boolean {
  const plain = host.replace(/^::ffff:(?=\d+\.)/i, '');
  return host === 'localhost' || host === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'));
}
