import { describe, expect, it } from 'vitest';
import {
  type KeystoneAnswer,
  RECORDED_AT,
  recordedAnswer,
  recordedKeystone,
  tokenAnswer,
  validAnswer,
} from '../support/recorded-keystone.ts';
import { failureOf, keystoneAt } from './keystone-client.ts';

/** Gives tokens away, and answers questions about others so. */
const answering = (answer: (own: string) => KeystoneAnswer) =>
  recordedKeystone(({ method, headers }, count) =>
    method === 'POST' ? tokenAnswer(`token-${count}`) : answer(String(headers['x-auth-token'])),
  );
const alice = () => validAnswer('validate alice', 'of-alice');

describe('a token of somebody', () => {
  it('is asked about without the catalog', async () => {
    const server = await answering(alice);
    const keystone = keystoneAt(server.url);
    expect(await keystone.validate('of-alice')).toEqual({
      expiresAt: RECORDED_AT + 3_600_000,
      user: { id: expect.stringMatching(/^0+14$/), name: 'alice', domain: 'Default' },
      project: { id: expect.stringMatching(/^0+15$/), name: 'climate', domain: 'Default' },
      roles: ['member', 'reader'],
    });
    expect(server.requests[1]).toMatchObject({
      method: 'GET',
      url: '/v3/auth/tokens?nocatalog',
      headers: { 'x-auth-token': 'token-1', 'x-subject-token': 'of-alice' },
    });
  });

  it('may be of another domain', async () => {
    const server = await answering(() => validAnswer('validate dave', 'of-dave'));
    const valid = await keystoneAt(server.url).validate('of-dave');
    expect(valid).toMatchObject({ user: { domain: 'other' }, project: { name: 'climate', domain: 'other' } });
  });

  it('may be that of an application credential', async () => {
    const server = await answering(() => validAnswer('validate of-application-credential', 't'));
    expect(await keystoneAt(server.url).validate('t')).toMatchObject({ project: { name: 'service' } });
  });

  it.each(['unscoped', 'of-domain', 'of-system'])('has no project and no roles in one: %s', async (name) => {
    const server = await answering(() => validAnswer(`validate ${name}`, 't'));
    const valid = await keystoneAt(server.url).validate('t');
    expect(valid).toMatchObject({ project: undefined, roles: [], user: { domain: 'Default' } });
  });

  it('says which roles it has in the system, apart from those in a project', async () => {
    const server = await answering(() => validAnswer('validate of-system', 't'));
    const roles = expect.arrayContaining(['reader']);
    expect(await keystoneAt(server.url).validate('t')).toMatchObject({ roles: [], systemRoles: roles });
    const inProject = await answering(alice);
    expect((await keystoneAt(inProject.url).validate('of-alice'))?.systemRoles).toBeUndefined();
    const inDomain = await answering(() => validAnswer('validate of-domain', 't'));
    expect((await keystoneAt(inDomain.url).validate('t'))?.systemRoles).toBeUndefined();
  });

  it.each(['revoked', 'unknown'])('is unknown: %s', async (name) => {
    const server = await answering(() => recordedAnswer(`validate ${name}`));
    expect(await keystoneAt(server.url).validate('t')).toBeUndefined();
  });

  it.each(['', 'a b', 'ü', 'a\r\nX-Admin: yes', 't'.repeat(8193)])('is no token: %j', async (text) => {
    const server = await answering(alice);
    expect(await keystoneAt(server.url).validate(text)).toBeUndefined();
    expect(server.requests).toHaveLength(0);
  });

  it('expires by the clock of Keystone', async () => {
    const server = await answering(alice);
    const keystone = keystoneAt(server.url);
    keystone.pass(-86_400);
    expect((await keystone.validate('of-alice'))?.expiresAt).toBe(RECORDED_AT - 86_400_000 + 3_600_000);
    keystone.pass(2 * 86_400);
    expect((await keystone.validate('of-alice'))?.expiresAt).toBe(RECORDED_AT + 86_400_000 + 3_600_000);
  });

  it('has expired, whatever Keystone answers', async () => {
    const server = await answering(() => {
      const { headers, ...answer } = alice();
      return { ...answer, headers: { ...headers, date: new Date(RECORDED_AT + 3_600_000).toUTCString() } };
    });
    expect(await keystoneAt(server.url).validate('of-alice')).toBeUndefined();
  });

  const replaced = (text: string, by: string) => {
    const answer = alice();
    return { ...answer, body: answer.body.replace(text, by) };
  };
  it.each<[string, KeystoneAnswer, RegExp]>([
    ['about another token', validAnswer('validate alice', 'other'), /about another token/],
    ['that forbids it', recordedAnswer('validate without a role'), /may not do this \(403\)/],
    ['of another service', recordedAnswer('no such path'), /got 404: check \[keystone\] auth_url/],
    [
      'with an error of another kind',
      { ...recordedAnswer('validate unknown'), body: '{"error":"not found"}' },
      /got 404/,
    ],
    ['that is long', replaced('"roles":', `"x":"${'x'.repeat(300_000)}","roles":`), /too long for one token/],
    [
      'with a thousand roles',
      replaced('"roles":[', `"roles":[${'{"name":"r"},'.repeat(1000)}`),
      /at token\.roles/,
    ],
    [
      'from before the token, by whose clock it would not have expired',
      { ...alice(), headers: { ...alice().headers, date: 'Thu, 01 Jan 1970 00:00:00 GMT' } },
      /older than the token/,
    ],
    ['that is a page', { ...alice(), body: '<html>' }, /no token of Keystone/],
    ['that is a redirect', recordedAnswer('versions'), /redirect/],
    ['that it is overloaded', { ...alice(), status: 503 }, /does not answer now/],
    ['that breaks off', (response) => void response.destroy(), /no usable answer/],
    ['without a user', replaced('"user":', '"nobody":'), /at token\.user/],
  ])('is neither valid nor unknown after an answer %s', async (_what, answer, message) => {
    const server = await answering(() => answer);
    expect(await failureOf(keystoneAt(server.url).validate('of-alice'))).toMatch(message);
  });
});

describe('a 401 of our own token', () => {
  it('is followed by one more call, with another token', async () => {
    const refused = recordedAnswer('validate with a wrong token');
    const server = await answering((own) => (own === 'token-1' ? refused : alice()));
    const keystone = keystoneAt(server.url);
    const all = await Promise.all(Array.from({ length: 20 }, () => keystone.validate('of-alice')));
    expect(all.every((valid) => valid?.user.name === 'alice')).toBe(true);
    expect(server.requests.filter(({ method }) => method === 'POST')).toHaveLength(2);
  });

  it('ends after the second', async () => {
    const server = await answering(() => recordedAnswer('validate with a wrong token'));
    const keystone = keystoneAt(server.url);
    expect(await failureOf(keystone.validate('of-alice'))).toMatch(/refuses our token \(401\)/);
    expect(await failureOf(keystone.validate('of-alice'))).toMatch(/refuses our token \(401\)/);
    expect(server.requests.map(({ method }) => method)).toEqual(['POST', 'GET', 'POST', 'GET', 'GET']);
  });
});

it('asks Keystone and other services with our token, and returns what they answer', async () => {
  const server = await answering(() => recordedAnswer('no such path'));
  const keystone = keystoneAt(`${server.url}/identity/`);
  expect(await keystone.getIdentity('/projects/p?a=b')).toMatchObject({ status: 404 });
  const headers = { accept: 'application/json' };
  expect(await keystone.get(`${server.url}/leases`, { headers, answerHeaders: ['vary'] })).toMatchObject({
    status: 404,
    headers: { vary: 'X-Auth-Token' },
  });
  expect(server.requests.slice(1)).toMatchObject([
    { url: '/identity/v3/projects/p?a=b', headers: { 'x-auth-token': 'token-1' } },
    { url: '/leases', headers: { 'x-auth-token': 'token-1', accept: 'application/json' } },
  ]);
});
