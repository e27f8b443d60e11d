import { describe, expect, it } from 'vitest';
import { capturedText } from '../../support/requests.ts';
import { runService } from '../../support/running-service.ts';

const CONTEXT = { user_id: 'alice', project_id: 'climate' };
const LEASE = { start_date: '2026-12-01T09:00:00', end_date: '2026-12-02T09:00:00' };
const create = (lease: unknown, context: unknown = CONTEXT) => JSON.stringify({ context, lease });
const update = (current: unknown, lease: unknown) =>
  JSON.stringify({ context: CONTEXT, current_lease: current, lease });

/** Path, body, the field that is wrong, and what is said about it. */
const BAD_BODIES: [path: string, body: string, field: string, message: string][] = [
  ['/check-create', 'null', '', 'expected an object, got null'],
  ['/check-create', '17', '', 'expected an object, got 17'],
  ['/check-create', '"x"', '', 'expected an object, got "x"'],
  ['/check-create', 'true', '', 'expected an object, got true'],
  ['/check-create', '[]', '', 'expected an object, got a list'],
  ['/check-create', '{}', 'context', 'expected an object, got nothing'],
  ['/check-create', create(LEASE, null), 'context', 'expected an object, got null'],
  ['/check-create', create(LEASE, []), 'context', 'expected an object, got a list'],
  ['/check-create', create(LEASE, 'climate'), 'context', 'expected an object, got "climate"'],
  ['/check-create', create(LEASE, { user_id: 'u' }), 'context.project_id', 'expected a text, got nothing'],
  ['/check-create', create(LEASE, { project_id: 'p' }), 'context.user_id', 'expected a text, got nothing'],
  ['/check-create', create(LEASE, { ...CONTEXT, user_id: 1 }), 'context.user_id', 'expected a text, got 1'],
  [
    '/check-create',
    create(LEASE, { ...CONTEXT, project_id: '' }),
    'context.project_id',
    'expected a text that is not empty, got ""',
  ],
  [
    '/check-create',
    create(LEASE, { ...CONTEXT, project_id: ['climate'] }),
    'context.project_id',
    'expected a text, got a list',
  ],
  ['/check-create', JSON.stringify({ context: CONTEXT }), 'lease', 'expected an object, got nothing'],
  ['/check-create', create([]), 'lease', 'expected an object, got a list'],
  ['/check-create', create(7), 'lease', 'expected an object, got 7'],
  ['/check-create', create({}), 'lease.start_date', 'expected an ISO 8601 date, got nothing'],
  [
    '/check-create',
    create({ ...LEASE, end_date: undefined }),
    'lease.end_date',
    'expected an ISO 8601 date, got nothing',
  ],
  [
    '/check-create',
    create({ ...LEASE, end_date: null }),
    'lease.end_date',
    'expected an ISO 8601 date, got null',
  ],
  [
    '/check-create',
    create({ ...LEASE, end_date: '2026-02-30' }),
    'lease.end_date',
    'expected an ISO 8601 date, got "2026-02-30"',
  ],
  [
    '/check-create',
    create({ ...LEASE, end_date: 1e12 }),
    'lease.end_date',
    'expected an ISO 8601 date, got 1000000000000',
  ],
  [
    '/check-create',
    create({ ...LEASE, end_date: { $gt: '' } }),
    'lease.end_date',
    'expected an ISO 8601 date, got an object',
  ],
  [
    '/check-create',
    create({ ...LEASE, end_date: '2026-11-01T09:00:00' }),
    'lease.end_date',
    'expected a date that is not before start_date, got "2026-11-01T09:00:00"',
  ],
  [
    '/check-create',
    create({ ...LEASE, end_date: 'x'.repeat(5000) }),
    'lease.end_date',
    `expected an ISO 8601 date, got "${'x'.repeat(40)}…"`,
  ],
  [
    '/check-create',
    create({ ...LEASE, reservations: {} }),
    'lease.reservations',
    'expected a list, got an object',
  ],
  [
    '/check-create',
    create({ ...LEASE, reservations: [1] }),
    'lease.reservations.0',
    'expected an object, got 1',
  ],
  [
    '/check-create',
    create({ ...LEASE, reservations: [{}, { allocations: 'all' }] }),
    'lease.reservations.1.allocations',
    'expected a list, got "all"',
  ],
  // JSON may name an attribute __proto__: it is one, and stands in for none that is missing.
  ['/check-create', `{"__proto__":${create(LEASE)}}`, 'context', 'expected an object, got nothing'],
  [
    '/check-create',
    `{"context":{"__proto__":{"user_id":"u","project_id":"p"}},"lease":${JSON.stringify(LEASE)}}`,
    'context.user_id',
    'expected a text, got nothing',
  ],
  [
    '/check-create',
    `{"context":${JSON.stringify(CONTEXT)},"lease":{"__proto__":${JSON.stringify(LEASE)}}}`,
    'lease.start_date',
    'expected an ISO 8601 date, got nothing',
  ],
  ['/check-update', create(LEASE), 'current_lease', 'expected an object, got nothing'],
  ['/check-update', update([], LEASE), 'current_lease', 'expected an object, got a list'],
  ['/check-update', update(LEASE, null), 'lease', 'expected an object, got null'],
  [
    '/check-update',
    update({ ...LEASE, start_date: 'x' }, LEASE),
    'current_lease.start_date',
    'expected an ISO 8601 date, got "x"',
  ],
  [
    '/check-update',
    update(LEASE, { end_date: '2026-11-01' }),
    'lease.end_date',
    'expected a date that is not before start_date, got "2026-11-01"',
  ],
  ['/commit-create', create([]), 'lease', 'expected an object, got a list'],
  ['/commit-create', create({}), 'lease.start_date', 'expected an ISO 8601 date, got nothing'],
  ['/commit-update', create(LEASE), 'current_lease', 'expected an object, got nothing'],
  [
    '/commit-update',
    update(LEASE, { end_date: '2026-11-01' }),
    'lease.end_date',
    'expected a date that is not before start_date, got "2026-11-01"',
  ],
  ['/on-end', '{}', 'context', 'expected an object, got nothing'],
  ['/on-end', create('gone'), 'lease', 'expected an object, got "gone"'],
  ['/on-end', create({ end_date: 'x' }), 'lease.end_date', 'expected an ISO 8601 date, got "x"'],
];

describe('a body that is no request', () => {
  it('gets 400, the field and what was expected there, for the whole table', async () => {
    const { post, logger } = await runService();
    for (const [path, body, field, expectation] of BAD_BODIES) {
      const message = field === '' ? expectation : `${field}: ${expectation}`;
      const { status, json } = await post(path, body);
      expect({ body: body.slice(0, 200), status, json }).toEqual({
        body: body.slice(0, 200),
        status: 400,
        json: { message, field },
      });
    }
    expect(logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('gets 400 when it is no JSON', async () => {
    const { post } = await runService();
    const texts = [
      '{',
      ' ',
      '{"context":{}',
      "{'context':1}",
      '{}{}',
      'undefined',
      'NaN',
      '\u0000',
      '['.repeat(5000),
    ];
    for (const text of texts) {
      expect(await post('/check-create', text), text.slice(0, 20)).toMatchObject({
        status: 400,
        json: { message: 'expected a body in JSON' },
      });
    }
  });

  it('gets 400 when it is empty', async () => {
    const { post, request } = await runService();
    expect(await post('/check-create', '')).toMatchObject({ status: 400 });
    // Without a body, fetch sends Content-Length: 0.
    const headers = { 'Content-Type': 'application/json' };
    expect(await request('/on-end', { method: 'POST', headers })).toMatchObject({ status: 400 });
  });

  it('keeps the connection as it was: the next request on it is judged', async () => {
    const { raw } = await runService();
    const send = (body: string) =>
      `POST /check-create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
    const fits = capturedText('check-create-physical-host.json');
    const answers = await raw(send('{') + send('[]') + send(fits), /HTTP\/1\.1 204 /);
    expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400', 'HTTP/1.1 400', 'HTTP/1.1 204']);
  });

  it('is told apart from a lease that ends without saying when, which is heard', async () => {
    const { post } = await runService();
    expect(await post('/on-end', create({ id: '1' }))).toMatchObject({ status: 204 });
  });
});
