import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AccountLimit, LoginLimit } from '../../../src/server/people/login-limit.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 });
});
afterEach(() => {
  vi.useRealTimers();
});

const wrongly = (limit: LoginLimit, address: string, times = 10) => {
  for (let count = 0; count < times; count += 1) {
    limit.count(address);
  }
};

describe('LoginLimit', () => {
  it('takes a network of IPv6 for one, and other addresses for others', () => {
    const limit = new LoginLimit();
    wrongly(limit, '2001:db8:0:1::7');
    for (const same of ['2001:db8:0:1::7', '2001:db8:0:1:ffff:1:2:3', '2001:db8:0:1::']) {
      expect(limit.wait(same), same).toBe(60);
    }
    for (const other of ['2001:db8:0:2::7', '2001:db8::7', '::1', '192.0.2.1', '']) {
      expect(limit.wait(other), other).toBe(0);
    }
    wrongly(limit, '::ffff:192.0.2.1');
    expect([limit.wait('192.0.2.1'), limit.wait('192.0.2.2')]).toEqual([60, 0]);
  });

  it('counts anew after a minute, and when the clock was set back', () => {
    const limit = new LoginLimit();
    wrongly(limit, 'a', 9);
    vi.setSystemTime(59_999);
    wrongly(limit, 'a', 1);
    expect(limit.wait('a')).toBe(1);
    vi.setSystemTime(60_000);
    expect(limit.wait('a')).toBe(0);
    wrongly(limit, 'a');
    vi.setSystemTime(0);
    expect(limit.wait('a')).toBe(0);
  });

  it('remembers ten thousand addresses', () => {
    const limit = new LoginLimit();
    wrongly(limit, 'first');
    wrongly(limit, 'second');
    for (let index = 0; index < 9_999; index += 1) {
      limit.count(`10.0.${index >> 8}.${index & 255}`);
    }
    expect([limit.wait('first'), limit.wait('second')]).toEqual([0, 60]);
  });
});

describe('AccountLimit', () => {
  const guess = (limit: AccountLimit, account: string) => {
    for (let count = 0; count < 10; count += 1) {
      limit.count(account);
    }
  };

  it('counts for one account, whatever the addresses, until a minute is over', () => {
    const limit = new AccountLimit();
    guess(limit, 'alice');
    expect([limit.wait('alice', '192.0.2.1'), limit.wait('ALICE', '192.0.2.2')]).toEqual([60, 60]);
    expect(limit.wait('bob', '192.0.2.1')).toBe(0);
    vi.setSystemTime(60_000);
    expect(limit.wait('alice', '192.0.2.1')).toBe(0);
  });

  it('keeps nobody out at an address from which they have logged in before', () => {
    const limit = new AccountLimit();
    limit.count('alice');
    limit.forgive('alice', '192.0.2.1');
    guess(limit, 'alice');
    expect([limit.wait('alice', '192.0.2.1'), limit.wait('alice', '192.0.2.2')]).toEqual([0, 60]);
    expect(limit.wait('bob', '192.0.2.1')).toBe(0);
  });

  it('takes back what was not wrong', () => {
    const limit = new AccountLimit();
    for (let count = 0; count < 30; count += 1) {
      limit.count('alice');
      limit.forgive('alice');
    }
    expect(limit.wait('alice', '192.0.2.1')).toBe(0);
  });
});
