import { expect, it } from 'vitest';
import { isLoopback } from '../../src/base/addresses.ts';

it('tells loopback addresses from others, and takes names for others', () => {
  for (const host of [
    '127.0.0.1',
    '127.8.9.10',
    '::1',
    'localhost',
    '::ffff:127.0.0.1',
    '::FFFF:127.0.0.1',
  ]) {
    expect(isLoopback(host), host).toBe(true);
  }
  for (const host of [
    ...['0.0.0.0', '::', '0', '127.1', '128.0.0.1', '192.168.0.1', '::ffff:192.168.0.1', '::ffff:0.0.0.0'],
    ...['localhost.example.org', '127.0.0.1.example.org', '127.evil', 'LOCALHOST.', 'policy', '::2', ''],
  ]) {
    expect(isLoopback(host), host).toBe(false);
  }
});
