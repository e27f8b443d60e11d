import { setImmediate as tick } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { failure, loadLibraries, newClient, startService, unusedPort } from '../support/services.ts';

beforeAll(loadLibraries, 60_000);

describe('a get', () => {
  it('is a GET without a body, on the path and query of its address, with the headers of the client', async () => {
    const service = await startService((response) => response.end(response.req.method));
    const client = newClient({ headers: { Authorization: 'Bearer token' } });
    expect(await client.get(`${service.url}?request_id=a%20b&c#d`)).toEqual({ status: 200, body: 'GET' });
    expect(service.requests).toEqual([
      {
        path: '/check-create?request_id=a%20b&c',
        body: '',
        headers: {
          host: `127.0.0.1:${service.port}`,
          connection: 'keep-alive',
          'user-agent': 'blazar-enforcement',
          authorization: 'Bearer token',
        },
      },
    ]);
  });

  it.each([204, 302, 400, 404, 500, 503])('returns the status of a %i', async (status) => {
    const service = await startService((response) => response.writeHead(status, { location: '/' }).end());
    expect(await newClient().get(service.url)).toEqual({ status, body: '' });
    expect(service.requests).toHaveLength(1);
  });

  it('takes turns with posts on one connection', async () => {
    const service = await startService((response) => response.end(response.req.method));
    const client = newClient();
    const bodies: string[] = [];
    for (const json of ['{}', undefined, '']) {
      const call = json === undefined ? client.get(service.url) : client.postJson(service.url, json);
      bodies.push((await call).body);
      // An answered connection rests for a turn of the event loop.
      await tick();
    }
    expect(bodies).toEqual(['POST', 'GET', 'POST']);
    expect(service.sockets).toHaveLength(1);
  });

  it('has the limits of a post in size and time', async () => {
    const large = await startService((response) => response.end('x'.repeat(100)));
    const silent = await startService(() => {});
    const errors = await Promise.all([
      failure(newClient({ maxAnswerBytes: 99 }).get(large.url)),
      failure(newClient({ timeout: 0.2 }).get(silent.url)),
      failure(newClient().get(`http://127.0.0.1:${await unusedPort()}/`)),
      failure(newClient().get('ftp://127.0.0.1/')),
      failure(newClient().get(silent.url, { signal: AbortSignal.timeout(50) })),
    ]);
    expect(errors.map(({ code }) => code)).toEqual([
      'answer-too-large',
      'timeout',
      'connect',
      'invalid-url',
      'aborted',
    ]);
    expect(
      errors.filter(({ code }) => code !== 'invalid-url').map(({ message }) => message.split(' ')[0]),
    ).toEqual(Array(4).fill('GET'));
  });
});

describe('the headers of an answer', () => {
  const numbered = () =>
    startService((response) =>
      response
        .writeHead(200, { 'X-Request-ID': '7', 'Set-Cookie': ['a=1', 'b=2'], Server: 'sky' })
        .end('null'),
    );

  it('are returned when they are asked for, and no others', async () => {
    const { url } = await numbered();
    const call = { answerHeaders: ['x-request-id', 'x-missing'] };
    const expected = { status: 200, body: 'null', headers: { 'x-request-id': '7' } };
    const answers = [await newClient().postJson(url, '{}', call), await newClient().get(url, call)];
    expect(answers).toStrictEqual([expected, expected]);
  });

  it('are left out when they are missing or come more than once', async () => {
    const { url } = await numbered();
    const { headers } = await newClient().get(url, { answerHeaders: ['x-missing', 'set-cookie'] });
    expect(headers).toStrictEqual({});
  });

  it('are no part of the result when none are asked for', async () => {
    const { url } = await numbered();
    expect(await newClient().get(url)).toStrictEqual({ status: 200, body: 'null' });
    expect(await newClient().get(url, { answerHeaders: [] })).toStrictEqual({ status: 200, body: 'null' });
  });

  it('are those that were sent, whatever name is asked for', async () => {
    const { url } = await numbered();
    const { headers } = await newClient().get(url, {
      answerHeaders: ['constructor', '__proto__', 'tostring'],
    });
    expect(headers).toStrictEqual({});
  });
});
