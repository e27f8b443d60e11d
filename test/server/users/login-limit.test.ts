import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PasswordLimit, TokenLimit } from '../../../src/server/users/wrong-tokens.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('TokenLimit', () => {
  const wrongly = (limit: TokenLimit, address: string, times = 10) => {
    for (let count = 0; count < times; count += 1) {
      limit.count(address);
    }
  };

  it('takes a network of IPv6 for one, and other addresses for others', () => {
    const limit = new TokenLimit();
    wrongly(limit, '2001:db8:0:1::7');
    for (const same of ['2001:db8:0:1::7', '2001:db8:0:1:ffff:1:2:3', '2001:db8:0:1::']) {
      expect(limit.count(same), same).toBe(60);
    }
    for (const other of ['2001:db8:0:2::7', '2001:db8::7', '::1', '192.0.2.1', '']) {
      expect(limit.count(other), other).toBe(0);
    }
    wrongly(limit, '::ffff:192.0.2.2');
    expect([limit.count('192.0.2.2'), limit.count('192.0.2.3')]).toEqual([60, 0]);
  });

  it('counts anew after a minute, and when the clock was set back', () => {
    const limit = new TokenLimit();
    wrongly(limit, 'a', 9);
    vi.setSystemTime(59_999);
    expect([limit.count('a'), limit.count('a')]).toEqual([0, 1]);
    vi.setSystemTime(60_000);
    expect(limit.count('a')).toBe(0);
    wrongly(limit, 'a');
    expect(limit.count('a')).toBe(60);
    vi.setSystemTime(0);
    expect(limit.count('a')).toBe(0);
  });

  it('remembers ten thousand addresses', () => {
    const limit = new TokenLimit();
    wrongly(limit, 'first');
    wrongly(limit, 'second');
    for (let index = 0; index < 9_999; index += 1) {
      limit.count(`10.0.${index >> 8}.${index & 255}`);
    }
    expect([limit.count('second'), limit.count('first')]).toEqual([60, 0]);
  });
});

describe('PasswordLimit', () => {
  const guess = (limit: PasswordLimit, account: string, address: string, times = 10) => {
    for (let count = 0; count < times; count += 1) {
      limit.count(account, address);
    }
  };

  it('counts for one account, whatever the addresses, until a minute is over', () => {
    const limit = new PasswordLimit();
    for (let index = 0; index < 10; index += 1) {
      guess(limit, 'alice', `198.51.100.${index}`, 1);
    }
    for (const [index, same] of ['alice', 'ALICE', 'alice  ', 'alicé', 'ａlice'].entries()) {
      expect(limit.wait(same, `192.0.2.${index}`), same).toBe(60);
    }
    expect(limit.wait('bob', '192.0.2.1')).toBe(0);
    vi.setSystemTime(60_000);
    expect(limit.wait('alice', '192.0.2.1')).toBe(0);
  });

  it('counts for one address, whatever the accounts, and apart from them', () => {
    const limit = new PasswordLimit();
    for (let index = 0; index < 29; index += 1) {
      guess(limit, `user-${index}`, '192.0.2.1', 1);
    }
    expect(limit.wait('alice', '192.0.2.1')).toBe(0);
    guess(limit, 'user-29', '192.0.2.1', 1);
    expect([limit.wait('alice', '192.0.2.1'), limit.wait('alice', '192.0.2.2')]).toEqual([60, 0]);
  });

  it('keeps nobody out at an address from which they have logged in before, whoever else is named or guesses there', () => {
    const limit = new PasswordLimit();
    limit.count('alice', '192.0.2.1')(true);
    guess(limit, 'alice', '198.51.100.1');
    guess(limit, 'bob', '192.0.2.1', 30);
    expect([limit.wait('alice', '192.0.2.1'), limit.wait('alice', '192.0.2.2')]).toEqual([0, 60]);
    expect(limit.wait('bob', '192.0.2.1')).toBe(60);
  });

  it('limits guesses there, too, and these keep nobody out elsewhere', () => {
    const limit = new PasswordLimit();
    limit.count('alice', '192.0.2.1')(true);
    guess(limit, 'alice', '192.0.2.1');
    expect([limit.wait('alice', '192.0.2.1'), limit.wait('alice', '192.0.2.2')]).toEqual([60, 0]);
  });

  it('takes back what was not wrong', () => {
    const limit = new PasswordLimit();
    for (let count = 0; count < 40; count += 1) {
      limit.count('alice', '192.0.2.1')(false);
    }
    expect(limit.wait('alice', '192.0.2.1')).toBe(0);
  });
});
