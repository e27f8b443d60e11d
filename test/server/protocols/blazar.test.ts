import { describe, expect, it, vi } from 'vitest';
import { filterSource } from '../../support/filter-folder.ts';
import { capturedText, createPhysicalHost } from '../../support/requests.ts';
import { errorsOf, runService } from '../../support/running-service.ts';

const FITS = capturedText('check-create-physical-host.json');
const NINE_DAYS = capturedText('check-create-gpu-and-floating-ip.json');
const EXTEND = capturedText('check-update-extend.json');
const END = capturedText('on-end-active.json');
const TOO_LONG =
  'The lease is 777600 seconds (9 days) long; the longest allowed for any lease is 172800 seconds (2 days).';
const GENERIC = 'The lease could not be checked. Please try again later, or ask the operator.';

describe.each(['', '/v1'])('the requests of a real Blazar, at %s/', (prefix) => {
  it('get 204 and nothing else when the lease is allowed', async () => {
    const { post } = await runService();
    const { status, text, headers } = await post(`${prefix}/check-create`, FITS);
    expect({ status, text, type: headers.get('Content-Type') }).toEqual({
      status: 204,
      text: '',
      type: null,
    });
  });

  it('get 403 and the reason when it is not', async () => {
    const { post } = await runService();
    const create = await post(`${prefix}/check-create`, NINE_DAYS);
    expect(create).toMatchObject({ status: 403, json: { message: TOO_LONG } });
    expect(Object.keys(create.json as object)).toEqual(['message']);
    expect(create.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
    expect(await post(`${prefix}/check-update`, EXTEND)).toMatchObject({
      status: 403,
      json: { message: expect.stringContaining('345600 seconds (4 days)') },
    });
  });

  it('get 204 for the end of a lease', async () => {
    const { post } = await runService();
    expect(await post(`${prefix}/on-end`, END)).toMatchObject({ status: 204, text: '' });
  });
});

describe('the policy service', () => {
  it('rejects a lease that a filter would change, and names the values to set, because Blazar cannot take a changed lease', async () => {
    const { post } = await runService({
      filters: {
        'shorten-filter.js': filterSource('ShortenFilter', {
          create: "return allow({ ...lease, end_date: '2026-12-02T09:00:00', before_end_date: null });",
        }),
      },
      enforcement: { enabled_filters: ['ShortenFilter'] },
    });
    const { status, json } = await post('/check-create', FITS);
    expect(status).toBe(403);
    expect(json).toEqual({
      message: expect.stringMatching(/other values: .*end_date = "2026-12-02T09:00:00".*\.$/),
    });
    expect((json as { message: string }).message).toContain('before_end_date = null');
  });

  it('answers 403 with a generic sentence when a filter fails, and 204 to an end, and logs the cause under the request id', async () => {
    const ended: string[] = [];
    vi.stubGlobal('ended', ended);
    const { post, logger } = await runService({
      filters: {
        'failing-filter.js': filterSource('FailingFilter', {
          create: "throw new Error('db.internal refused the password s3cret');",
          update: 'return { allowed: "perhaps" };',
          end: "throw new Error('not at home');",
        }),
        'listening-filter.js': filterSource('ListeningFilter', { end: 'ended.push(lease.id);' }),
      },
      enforcement: { enabled_filters: ['FailingFilter', 'ListeningFilter'] },
    });
    const request_id = 'req-0d5b5d8e-1f4f-4f6e-9a76-00c0ffee0001';
    const headers = { 'X-Openstack-Request-Id': request_id };
    const refused = { status: 403, text: `{"message":"${GENERIC}"}` };
    expect(await post('/check-create', FITS, headers)).toMatchObject(refused);
    expect(await post('/check-update', EXTEND, headers)).toMatchObject(refused);
    expect(await post('/on-end', END, headers)).toMatchObject({ status: 204, text: '' });
    expect(ended).toEqual(['5b8f6a1e-6d3a-4e0b-8d35-0e9f4a0b2c11']);
    const fields = { request_id, filter: 'FailingFilter' };
    expect(errorsOf({ logger })).toMatchObject([
      { fields: { ...fields, error: 'db.internal refused the password s3cret' } },
      { fields: { ...fields, error: expect.stringContaining('expected allow()') } },
      { fields: { ...fields, error: 'not at home' } },
    ]);
  });

  it('passes on unknown attributes, including __proto__', async () => {
    const { post } = await runService({
      filters: {
        'echo-filter.js': filterSource('EchoFilter', {
          create: "return reject(JSON.stringify(Object.keys(lease)) + Object.hasOwn(context, '__proto__'));",
        }),
      },
      enforcement: { enabled_filters: ['EchoFilter'] },
    });
    const body =
      '{"context":{"user_id":"u","project_id":"p","__proto__":{"a":1}},"lease":{"start_date":"2026-12-01","end_date":"2026-12-02","__proto__":1,"constructor":2,"π":3}}';
    expect(await post('/check-create', body)).toMatchObject({
      json: { message: '["start_date","end_date","__proto__","constructor","π"]true' },
    });
  });

  it('gives each of 200 requests at once its own answer', async () => {
    const { post, logger } = await runService({
      filters: {
        'named-filter.js': filterSource('NamedFilter', {
          create:
            "await new Promise((go) => setTimeout(go, 5)); return lease.number % 2 === 0 ? allow() : reject('no ' + lease.number);",
        }).replace('checkCreate(', 'async checkCreate('),
      },
      enforcement: { enabled_filters: ['NamedFilter', 'MaxLeaseDurationFilter'] },
    });
    const { context, lease } = createPhysicalHost();
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, number) =>
        post('/check-create', { context, lease: { ...lease, number } }),
      ),
    );
    expect(answers.map(({ status, json }) => ({ status, json }))).toEqual(
      answers.map((_, number) =>
        number % 2 === 0
          ? { status: 204, json: undefined }
          : { status: 403, json: { message: `no ${number}` } },
      ),
    );
    expect(logger.lines).toEqual([]);
  });
});
