import { describe, expect, it } from 'vitest';
import { postBytes } from '../../support/raw-http.ts';
import { capturedText } from '../../support/requests.ts';
import { runService } from '../../support/running-service.ts';

const CONTEXT = { user_id: 'alice', project_id: 'climate' };
const LEASE = { start_date: '2026-12-01T09:00:00', end_date: '2026-12-02T09:00:00' };
const create = (lease: unknown) => JSON.stringify({ context: CONTEXT, lease });

const NO_DATE = 'expected an ISO 8601 date, got';

/** Path, body, the field that is wrong, and what is said about it. Every form of a wrong member: `test/lease/request.test.ts`. */
const BAD_BODIES: [path: string, body: string, field: string, message: string][] = [
  ['/check-create', 'null', '', 'expected an object, got null'],
  [
    '/check-create',
    create({ ...LEASE, end_date: 'x'.repeat(5000) }),
    'lease.end_date',
    `${NO_DATE} "${'x'.repeat(40)}…"`,
  ],
  // JSON may name an attribute __proto__: it is one, and stands in for none that is missing.
  ['/check-create', `{"__proto__":${create(LEASE)}}`, 'context', 'expected an object, got nothing'],
  ['/check-update', create(LEASE), 'current_lease', 'expected an object, got nothing'],
  ['/commit-create', create({}), 'lease.start_date', `${NO_DATE} nothing`],
  ['/on-end', create({ end_date: 'x' }), 'lease.end_date', `${NO_DATE} "x"`],
];

describe('a body that is no request', () => {
  it('gets 400, the field and what was expected there, for the whole table', async () => {
    const { post, logger } = await runService();
    for (const [path, body, field, expectation] of BAD_BODIES) {
      const message = field === '' ? expectation : `${field}: ${expectation}`;
      expect(await post(path, body), body.slice(0, 200)).toMatchObject({
        status: 400,
        json: { message, field },
      });
    }
    expect(logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('gets 400 when it is no JSON', async () => {
    const { post } = await runService();
    const texts = ['', '{', ' ', "{'context':1}", '{}{}', 'NaN', '\u0000', '['.repeat(5000)];
    for (const text of texts) {
      expect(await post('/check-create', text), text.slice(0, 20)).toMatchObject({
        status: 400,
        json: { message: 'expected a body in JSON' },
      });
    }
  });

  it('keeps the connection as it was: the next request on it is judged', async () => {
    const { raw } = await runService();
    const send = (body: string) => postBytes('/check-create', body);
    const fits = capturedText('check-create-physical-host.json');
    const answers = await raw(send('{') + send('[]') + send(fits), /HTTP\/1\.1 204 /);
    expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400', 'HTTP/1.1 400', 'HTTP/1.1 204']);
  });

  it('is told apart from a lease that ends without saying when, which is heard', async () => {
    const { post } = await runService();
    expect(await post('/on-end', create({ id: '1' }))).toMatchObject({ status: 204 });
  });
});
