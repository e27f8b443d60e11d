import { beforeAll, describe, expect, it } from 'vitest';
import { loadLibraries, newClient, startService } from '../support/services.ts';

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

  it('are those that were sent, whatever name is asked for', async () => {
    const { url } = await numbered();
    const { headers } = await newClient().get(url, {
      answerHeaders: ['constructor', '__proto__', 'tostring'],
    });
    expect(headers).toStrictEqual({});
  });
});
