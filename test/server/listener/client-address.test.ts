/** Whose request it is, behind proxies: in the log, and for the limits. */
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../src/base/errors.ts';
import { readConfiguration } from '../../../src/enforcement/configuration.ts';
import { SECTIONS } from '../../../src/server/configuration/sections.ts';
import { confFile } from '../../support/files.ts';
import { runServiceOnFile } from '../../support/running-service.ts';

const TOKEN = 'the-token-of-blazar';
const conf = (proxies: string) =>
  `[service]\nport = 0\ndecision_store = none\ntokens = ${TOKEN}\n${proxies === '' ? '' : `trusted_proxies = ${proxies}\n`}`;

/** Requests come from 127.0.0.1. */
async function behind(proxies: string) {
  const running = await runServiceOnFile(conf(proxies));
  /** The address that is logged with a request that is refused. */
  const addressOf = async (headers: Record<string, string>) => {
    const { status } = await running.post('/check-create', '{}', headers);
    expect([401, 429]).toContain(status);
    return running.logger.lines.at(-1)?.fields.address;
  };
  const logIn = async (headers: Record<string, string>, token = 'wrong') => {
    const { status } = await running.request('/login', {
      method: 'POST',
      redirect: 'manual',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
      body: `token=${token}`,
    });
    return status;
  };
  return { ...running, addressOf, logIn };
}

const SELF = '127.0.0.1';
const OURS = '127.0.0.0/8, 10.0.0.0/8, 2001:db8:ffff::/48';

describe('[service] trusted_proxies', () => {
  it('believes nobody by default, and nobody who is no proxy', async () => {
    for (const proxies of ['', '127.0.0.2', '10.0.0.0/8,::1']) {
      const { addressOf } = await behind(proxies);
      expect(await addressOf({ 'X-Forwarded-For': '192.0.2.7' }), proxies).toBe(SELF);
      expect(await addressOf({ Forwarded: 'for=192.0.2.7' }), proxies).toBe(SELF);
    }
  });

  it('believes the rightmost address that is no proxy, and whoever has nothing to believe is the client', async () => {
    const { addressOf } = await behind(OURS);
    const cases: [header: string, address: string][] = [
      ['192.0.2.7', '192.0.2.7'],
      ['198.51.100.1, 192.0.2.7', '192.0.2.7'],
      ['198.51.100.1,192.0.2.7 ,10.1.2.3,\t10.0.0.1', '192.0.2.7'],
      ['10.1.2.3, 10.0.0.1', '10.1.2.3'],
      ['192.0.2.7:4711', '192.0.2.7'],
      ['2001:DB8:0::1', '2001:db8::1'],
      ['[2001:db8::1]', '2001:db8::1'],
      ['[2001:db8::1]:4711, 2001:db8:ffff::3', '2001:db8::1'],
      ['::ffff:192.0.2.7', '192.0.2.7'],
      ['198.51.100.1, ::ffff:10.0.0.1', '198.51.100.1'],
      // Nobody is named: it is the last proxy that is known.
      ['192.0.2.7, unknown', SELF],
      ['192.0.2.7, unknown, 10.0.0.1', '10.0.0.1'],
      ['192.0.2.7, _hidden', SELF],
      ['192.0.2.7,', SELF],
      [',', SELF],
      ['256.0.0.1', SELF],
      ['192.0.2.07', SELF],
      ['192.0.2.7:port', SELF],
      ['[192.0.2.7]', SELF],
      ['[2001:db8::1', SELF],
      ['fe80::1%eth0', SELF],
      ['for=192.0.2.7', SELF],
    ];
    for (const [header, address] of cases) {
      expect(await addressOf({ 'X-Forwarded-For': header }), header).toBe(address);
    }
    expect(await addressOf({})).toBe(SELF);
  });

  it('reads Forwarded as RFC 7239 has it', async () => {
    const { addressOf } = await behind(OURS);
    const cases: [header: string, address: string][] = [
      ['for=192.0.2.7', '192.0.2.7'],
      ['For="192.0.2.7:4711";proto=https;by=203.0.113.43', '192.0.2.7'],
      ['for=198.51.100.1, proto=http; for="[2001:db8::1]:_port"', SELF],
      ['for=198.51.100.1, proto=http; for="[2001:db8::1]:80"', '2001:db8::1'],
      ['for=192.0.2.7,for=10.0.0.1', '192.0.2.7'],
      ['for=192.0.2.7;host="a, for=198.51.100.1;b"', '192.0.2.7'],
      ['for="192\\.0.2.7"', '192.0.2.7'],
      ['for=unknown, for=10.0.0.1', '10.0.0.1'],
      ['for=_hidden', SELF],
      ['for=192.0.2.7, by=10.0.0.1', SELF],
      // What is not in the form tells nothing, wherever it is wrong.
      ['for=198.51.100.1;x=", for="[2001:db8::1]"', SELF],
      ['for=192.0.2.7;for=198.51.100.1', SELF],
      ['for=192.0.2.7;', SELF],
      ['for =192.0.2.7', SELF],
      ['192.0.2.7', SELF],
      ['"', SELF],
    ];
    for (const [header, address] of cases) {
      expect(await addressOf({ Forwarded: header }), header).toBe(address);
    }
  });

  it('believes neither header if they differ: a proxy passes on the one that it does not know', async () => {
    const { addressOf } = await behind(OURS);
    const both = (list: string, forwarded: string) =>
      addressOf({ 'X-Forwarded-For': list, Forwarded: forwarded });
    expect(await both('192.0.2.7', 'for=192.0.2.7')).toBe('192.0.2.7');
    expect(await both('192.0.2.7', 'for=198.51.100.1')).toBe(SELF);
    expect(await both('192.0.2.7', 'nonsense')).toBe(SELF);
  });

  it('reads long headers to a bound', async () => {
    const { addressOf } = await behind(OURS);
    const list = (count: number) => ['192.0.2.7', ...Array.from({ length: count }, () => '10.0.0.1')];
    expect(await addressOf({ 'X-Forwarded-For': list(31).join() })).toBe('192.0.2.7');
    expect(await addressOf({ 'X-Forwarded-For': list(32).join() })).toBe('10.0.0.1');
    expect(await addressOf({ 'X-Forwarded-For': `${list(1200).join()},192.0.2.8` })).toBe('192.0.2.8');
    const forwarded = list(900).map((address) => `for=${address}`);
    expect(await addressOf({ Forwarded: forwarded.join() })).toBe('10.0.0.1');
    expect(await addressOf({ Forwarded: `for="${'\\"'.repeat(7000)}` })).toBe(SELF);
  });

  it('also tells of requests that are answered before they are read', async () => {
    const { raw, logger } = await behind(OURS);
    const answer = await raw('GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 400/);
    expect(logger.lines.at(-1)?.fields).toMatchObject({ status: 400, address: '192.0.2.7' });
  });

  it('counts wrong logins by the address of the client; a reload applies it', async () => {
    const { change, logIn } = await behind('127.0.0.1');
    const from = (address: string) => logIn({ 'X-Forwarded-For': address });
    for (let guess = 0; guess < 10; guess += 1) {
      expect(await from(`198.51.100.${guess}, 192.0.2.7`)).toBe(401);
    }
    expect(await from('192.0.2.7')).toBe(429);
    expect(await from('192.0.2.8')).toBe(401);
    expect(await change(conf('10.0.0.0/8'))).toBe(true);
    expect(await from('192.0.2.7')).toBe(401);
  });
});

describe('wrong values of [service] trusted_proxies', () => {
  const mistakesOf = async (value: string) => {
    const file = confFile(`[service]\ntrusted_proxies = ${value}\n`);
    const { problems } = await readConfiguration({ environment: {}, configFiles: [file] }, SECTIONS);
    return problems
      .filter(({ severity }) => severity === 'error')
      .map((problem) => formatProblem(problem).replace(file, 'CONF'));
  };

  it.for([
    'proxy.example.org',
    '10.0.0',
    '10.0.0.1/33',
    '10.0.0.1/08',
    '::1/129',
    '0.0.0.0/0',
    '::/0',
    'fe80::1%eth0',
    '::ffff:10.0.0.1',
    '10.0.0.1:80',
    '*',
  ])('%s is a mistake, with file and line', async (value) => {
    expect(await mistakesOf(`127.0.0.1, ${value}`)).toEqual([
      expect.stringMatching(/^CONF:2: \[service\] trusted_proxies: expected addresses and networks such as/),
    ]);
  });

  it('addresses and networks are right', async () => {
    expect(await mistakesOf('10.0.0.1,10.0.0.0/8,192.0.2.7/32,::1,2001:DB8::/32,fd00::/8')).toEqual([]);
  });
});
