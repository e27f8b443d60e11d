import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { requestMember } from '../../src/decisions/recorded-request.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { jsonLines } from '../support/json-lines.ts';
import { runService } from '../support/running-service.ts';

const wire = (name: string) =>
  JSON.parse(readFileSync(new URL(`../fixtures/blazar-wire/${name}.json`, import.meta.url), 'utf8'));
const create = wire('check-create-physical-host');
const update = wire('check-update-extend');

const membersOf = (request: unknown) => JSON.parse(`{${requestMember(request as never, undefined)}}`);

describe('the decision log of a service', () => {
  it('holds whole requests if it shall, and otherwise none', async () => {
    for (const which of ['all', 'none']) {
      const file = join(temporaryFolder(), 'decisions.jsonl');
      const running = await runService({ service: { decision_log: file, decision_log_requests: which } });
      await running.post('/check-create', create);
      await running.post('/check-update', update);
      await running.service.close();
      const lines = jsonLines(readFileSync(file, 'utf8'));
      expect(lines.map(({ operation, request }) => [operation, request])).toEqual([
        ['create', which === 'all' ? create : undefined],
        ['update', which === 'all' ? update : undefined],
      ]);
    }
  });

  it('refuses to hold requests without being anywhere', async () => {
    await expect(runService({ service: { decision_log_requests: 'all' } })).rejects.toThrow(
      /decision_log_requests: expected decision_log with it/,
    );
  });
});

describe('a recorded request', () => {
  const withLease = (lease: object) => ({ ...create, lease: { ...create.lease, ...lease } });

  it('is left out, rather than cut, if it is long', () => {
    expect(membersOf(withLease({ note: 'x'.repeat(64 * 1024) }))).toEqual({ request_left_out: 'too-long' });
    // Six characters each, as JSON.
    expect(membersOf(withLease({ note: '\u0001'.repeat(12_000) }))).toEqual({ request_left_out: 'too-long' });
    const items = Array.from({ length: 30_000 }, () => 1);
    expect(membersOf(withLease({ items })).request.lease.items).toEqual(items);
  });

  it('is not written as JSON to learn that it is too long', () => {
    const note = { text: ['x'.repeat(64 * 1024)], toJSON: () => expect.unreachable('it is written') };
    expect(membersOf(withLease({ note }))).toEqual({ request_left_out: 'too-long' });
  });

  it.each([
    ['a password', withLease({ admin_password: 'hunter22' })],
    ['a token deep inside', withLease({ extra: [{ auth: { access_token: 'abcdef' } }] })],
    [
      'credentials in an address',
      {
        ...create,
        context: { ...create.context, auth_url: 'https://admin:hunter22@keystone.example.org/v3' },
      },
    ],
  ])('is left out if it has %s', (_, request) => {
    expect(requestMember(request, undefined)).toBe('"request_left_out":"secret"');
  });

  it('keeps names that look like nothing of the kind', () => {
    const hostile = JSON.parse('{"__proto__": {"x": 1}, "constructor": "\\u001b[31m", "\\u202e": "🙂"}');
    const request = withLease(hostile);
    expect(JSON.stringify(membersOf(request).request.lease)).toBe(JSON.stringify(request.lease));
  });
});
