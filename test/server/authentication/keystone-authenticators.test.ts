import createError from 'http-errors';
import { describe, expect, it } from 'vitest';
import type { ValidToken } from '../../../src/openstack/contract.ts';
import { KeystoneAuthenticator } from '../../../src/server/authentication/keystone-authenticators.ts';

const PROJECT = { id: 'p', name: 'service', domain: 'Default' };

function gateFor(token: Pick<ValidToken, 'project' | 'roles'>, authUrl = 'http://127.0.0.1:5000/v3') {
  const valid = { expiresAt: Number.POSITIVE_INFINITY, user: { ...PROJECT, name: 'blazar' }, ...token };
  const options = { serviceRoles: ['service', 'admin'], authUrl, cacheSeconds: 300, deadline: 30 };
  const ask = (sent: string) =>
    sent === ''
      ? ({ kind: 'invalid', from: 'form' } as const)
      : ({ kind: 'valid', from: 'cache', token: valid } as const);
  const authenticator = new KeystoneAuthenticator({ ask }, { ...options, generation: 7 }, () => {});
  return (sent: string) =>
    authenticator.requireProof(
      sent,
      (headers) => {
        throw createError(401, 'expected a token', { headers });
      },
      '192.0.2.1',
    );
}

describe('KeystoneAuthenticator', () => {
  it('validates tokens in the name of the address that sends them', async () => {
    const asked: unknown[][] = [];
    const ask = (...args: unknown[]) => {
      asked.push(args);
      return { kind: 'invalid', from: 'form' } as const;
    };
    const rules = { serviceRoles: [], authUrl: 'http://127.0.0.1/v3', cacheSeconds: 0, deadline: 1 };
    const authenticator = new KeystoneAuthenticator({ ask }, { ...rules, generation: 1 }, () => {});
    const refuse = () => {
      throw new Error('refused');
    };
    expect(() => authenticator.requireProof('a', refuse, '192.0.2.1')).toThrow('refused');
    const question = { address: '192.0.2.2', refuse, expectedRoles: '', callerOf: () => 'alice' };
    await expect(authenticator.ownerOf('b', question)).rejects.toThrow('refused');
    expect(asked.map(([token, , address]) => [token, address])).toEqual([
      ['a', '192.0.2.1'],
      ['b', '192.0.2.2'],
    ]);
  });

  it('lets in whoever has one of the roles in a project', () => {
    for (const roles of [['service'], ['admin'], ['reader', 'admin']]) {
      expect(gateFor({ project: PROJECT, roles })('token')).toBeUndefined();
    }
  });

  it('refuses other roles, and the right one anywhere but in a project', () => {
    const forbidden = expect.objectContaining({
      status: 403,
      headers: { 'X-Enforcement-Generation': '7' },
    });
    expect(() => gateFor({ project: PROJECT, roles: [] })('token')).toThrow(forbidden);
    expect(() => gateFor({ project: PROJECT, roles: ['Service', 'admins', ''] })('token')).toThrow(forbidden);
    expect(() => gateFor({ project: undefined, roles: ['service', 'admin'] })('token')).toThrow(forbidden);
  });

  it('says where to get a token, and never with what', () => {
    const refuse = gateFor({ project: PROJECT, roles: [] }, 'http://us"er:pass@keystone:5000/v3');
    expect(() => refuse('')).toThrow(
      expect.objectContaining({
        status: 401,
        headers: { 'WWW-Authenticate': 'Keystone uri="http://keystone:5000/v3"' },
      }),
    );
  });
});
