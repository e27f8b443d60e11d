import { describe, expect, it } from 'vitest';
import { CAPTURED_POSTS, capturedText } from '../../support/requests.ts';
import { runService } from '../../support/running-service.ts';

const SECRET = 's3cret-0123456789abcdef';
const FITS = capturedText('check-create-physical-host.json');
const UNAUTHORIZED = { status: 401, json: { message: 'expected a valid token in the header X-Auth-Token' } };

const withTokens = (...tokens: string[]) =>
  runService({ service: { tokens }, enforcement: { max_lease_duration: 345_600 } });

describe('with tokens', () => {
  it('asks for one at every path', async () => {
    const { post } = await withTokens(SECRET);
    for (const [path, body] of CAPTURED_POSTS) {
      expect(await post(path, body), path).toMatchObject(UNAUTHORIZED);
      expect(await post(path, body, { 'X-Auth-Token': 'wrong' }), path).toMatchObject(UNAUTHORIZED);
      expect(await post(path, body, { 'X-Auth-Token': SECRET }), path).toMatchObject({ status: 204 });
    }
  });

  it('takes each of several, so that they can be rotated', async () => {
    const both = ['old-0123456789abcdef', 'new-0123456789abcdef'];
    const { post } = await withTokens(...both);
    for (const token of both) {
      expect(await post('/check-create', FITS, { 'X-Auth-Token': token })).toMatchObject({ status: 204 });
    }
    for (const token of [both.join(','), both.join(', '), 'new', 'OLD-0123456789abcdef', '*', '', ',']) {
      expect(await post('/check-create', FITS, { 'X-Auth-Token': token }), token).toMatchObject(UNAUTHORIZED);
    }
  });

  it('takes them from the header X-Auth-Token and nowhere else', async () => {
    const { post } = await withTokens(SECRET);
    const inQuery = `/check-create?X-Auth-Token=${SECRET}&token=${SECRET}`;
    expect(await post(inQuery, FITS)).toMatchObject(UNAUTHORIZED);
    for (const name of ['Authorization', 'X-Auth-Tokens', 'Cookie', 'X-Subject-Token']) {
      expect(await post('/check-create', FITS, { [name]: SECRET }), name).toMatchObject(UNAUTHORIZED);
    }
    const asBearer = { Authorization: `Bearer ${SECRET}` };
    expect(await post('/check-create', FITS, asBearer)).toMatchObject(UNAUTHORIZED);
    expect(await post('/check-create', FITS, { 'x-auth-token': SECRET })).toMatchObject({ status: 204 });
  });

  it('answers before it reads the body: half of one is enough', async () => {
    const { raw } = await withTokens(SECRET);
    const head = 'POST /check-create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
    const answer = await raw(`${head}Content-Length: 1000\r\n\r\n{"context":`);
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    // What is left of the body would be read as a request.
    expect(answer).toMatch(/^Connection: close\r$/m);
  });

  it('answers 401 whatever else is wrong', async () => {
    const { post } = await withTokens(SECRET);
    expect(await post('/check-create', '{')).toMatchObject(UNAUTHORIZED);
    expect(await post('/check-create', FITS, { 'Content-Type': 'text/plain' })).toMatchObject(UNAUTHORIZED);
  });
});
