/** Links to the calendar of a project: made, listed and revoked over the API, and read by a calendar program. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { rows } from '../../../src/ledger/storage/database.ts';
import { calendarRoutes } from '../../../src/server/calendar/feed.ts';
import { type Caller, tokenCaller } from '../../../src/server/users/caller.ts';
import { recordLease } from '../../ledger/recorded-leases.ts';
import {
  breakLedger,
  DIALECTS,
  giveBudget,
  ledgerAt,
  NO_WAIT,
  newLedgers,
  runSql,
  upgrade,
} from '../../support/ledgers.ts';
import { member, servedGeneration, usersByToken } from '../served-generation.ts';

const newLedger = newLedgers();

const PEOPLE: Readonly<Record<string, Caller>> = {
  operator: tokenCaller('operator', 'operator token'),
  olga: { ...member('olga', {}), kind: 'operator' },
  mona: member('mona', { climate: true }),
  meg: member('meg', { climate: false }),
  ida: member('ida', { ocean: false }),
};
const LINKS = '/v1/projects/climate/calendar-links';

class Ground {
  now = '2026-11-21T09:00:30Z';
  url = '';
  log = () => '';

  async open(connection: string): Promise<this> {
    const service = await servedGeneration({
      connection,
      now: () => this.now,
      users: usersByToken(PEOPLE),
      routes: (parts) => [calendarRoutes(parts.line)],
    });
    onTestFinished(service.close);
    this.url = service.url;
    this.log = () => JSON.stringify(service.logger.lines);
    return this;
  }

  async ask(who: string, method = 'GET', path = LINKS) {
    const answer = await fetch(this.url + path, { method, headers: { 'X-Auth-Token': who } });
    const text = await answer.text();
    return { status: answer.status, json: text === '' ? undefined : JSON.parse(text) };
  }

  async made(who: string, path = LINKS) {
    const { status, json } = await this.ask(who, 'POST', path);
    expect(status).toBe(201);
    return json as { readonly link_id: string; readonly path: string };
  }

  async read(path: string) {
    const answer = await fetch(this.url + path);
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  }
}

async function newGround(dialect: (typeof DIALECTS)[number]) {
  const connection = await newLedger(dialect);
  const ledger = await ledgerAt(connection);
  await giveBudget(ledger, { amount: '1000' });
  await recordLease(ledger, { name: 'run; \n1', leaseId: 'L1' });
  await recordLease(ledger, { name: 'of ocean', projectId: 'ocean' });
  await ledger.close();
  return { connection, fixture: await new Ground().open(connection) };
}

describe.each(DIALECTS)('links to calendars, on %s', (dialect) => {
  it('show the leases of their project without a token, until they are revoked', async () => {
    const { connection, fixture } = await newGround(dialect);
    const { link_id, path } = await fixture.made('meg');
    const { status, headers, text } = await fixture.read(path);
    expect([status, headers.get('Content-Type'), headers.get('Cache-Control')]).toEqual([
      200,
      'text/calendar; charset=utf-8',
      'no-store',
    ]);
    expect(text).toContain('SUMMARY:run\\; \\n1\r\n');
    expect(text).toContain('DTSTART:20261201T000000Z\r\nDTEND:20261202T000000Z\r\n');
    expect(text).toContain('User: alice\\nState: pending\\nLease: L1');
    expect(text).not.toContain('ocean');
    const other = await new Ground().open(connection);
    expect((await other.read(path)).text).toBe(text);

    expect((await fixture.ask('meg', 'DELETE', `${LINKS}/${link_id}`)).status).toBe(204);
    expect((await fixture.ask('meg', 'DELETE', `${LINKS}/${link_id}`)).status).toBe(404);
    for (const replica of [fixture, other]) {
      expect((await replica.read(path)).status).toBe(404);
    }
  });

  it('keep the same id for an event when its lease changes state', async () => {
    const { fixture } = await newGround(dialect);
    const { path } = await fixture.made('meg');
    const uid = async () => /UID:.*/.exec((await fixture.read(path)).text)?.[0];
    const before = await uid();
    expect(before).toMatch(/^UID:\d+@[\w-]{36}/);
    fixture.now = '2026-12-03T00:00:00Z';
    expect((await fixture.read(path)).text).toContain('State: ended');
    expect(await uid()).toBe(before);
  });

  it('are hidden from the database and from logs, and all unknown ones are answered alike', async () => {
    const { connection, fixture } = await newGround(dialect);
    const { link_id, path } = await fixture.made('meg');
    const secret = /[\w-]{43}/.exec(path)?.[0] ?? '';
    const ledger = await ledgerAt(connection);
    const query = ledger.database.queries.selectFrom('calendar_links').selectAll();
    const links = await ledger.database.read(() => rows(query.compile()), NO_WAIT);
    await ledger.close();
    const kept = JSON.stringify(links, (_, value) => (typeof value === 'bigint' ? String(value) : value));
    expect(kept).toContain('keystone id-of-meg');
    expect(kept).not.toContain(secret);
    expect((await fixture.ask('meg')).json.items).toEqual([
      expect.objectContaining({ link_id, is_own: true, works_until: '2026-12-21T09:00:30Z' }),
    ]);
    const answers = new Set<string>();
    for (const wrong of ['a'.repeat(43), secret.toLowerCase(), `${secret}a`, '', '%00', '__proto__', '%F0']) {
      const { status, text } = await fixture.read(`/calendars/${wrong}.ics`);
      expect({ wrong, status }).toEqual({ wrong, status: 404 });
      answers.add(text);
    }
    expect(answers.size).toBeLessThanOrEqual(2);
    expect((await fixture.read(path.replace('.ics', ''))).status).toBe(404);
    await fixture.read(path);
    expect(fixture.log()).not.toContain(secret);
  });

  it('are for those who see the project, and managers and operators revoke those of others', async () => {
    const { fixture } = await newGround(dialect);
    expect((await fixture.ask('ida', 'POST')).status).toBe(403);
    expect((await fixture.ask('operator', 'POST')).status).toBe(422);
    const ofMeg = await fixture.made('meg');
    const ofMona = await fixture.made('mona');
    const ofOcean = await fixture.made('ida', LINKS.replace('climate', 'ocean'));
    const seen = async (who: string) =>
      (await fixture.ask(who)).json.items.map(({ link_id }: { link_id: string }) => link_id);
    expect(await seen('meg')).toEqual([ofMeg.link_id]);
    for (const who of ['mona', 'olga', 'operator']) {
      expect(await seen(who)).toEqual([ofMeg.link_id, ofMona.link_id]);
    }
    const { json: first } = await fixture.ask('mona', 'GET', `${LINKS}?limit=1`);
    expect(first).toMatchObject({
      items: [{ link_id: ofMeg.link_id, is_own: false }],
      next: expect.any(String),
    });
    expect((await fixture.ask('mona', 'GET', `${LINKS}?limit=1&after=${first.next}`)).json).toMatchObject({
      items: [{ link_id: ofMona.link_id, is_own: true }],
      next: null,
    });
    const revoked = async (who: string, id: string) =>
      (await fixture.ask(who, 'DELETE', `${LINKS}/${id}`)).status;
    expect(await revoked('meg', ofMona.link_id)).toBe(404);
    expect(await revoked('mona', ofOcean.link_id)).toBe(404);
    expect(await revoked('ida', ofMeg.link_id)).toBe(403);
    for (const id of ['0', '-1', 'x', '9'.repeat(30), '__proto__']) {
      expect({ id, status: await revoked('mona', id) }).toEqual({ id, status: 404 });
    }
    expect(await revoked('mona', ofMeg.link_id)).toBe(204);
    expect(await revoked('operator', ofMona.link_id)).toBe(204);
    expect((await fixture.read(ofOcean.path)).status).toBe(200);
  });

  it('work for 30 days after their owner has looked at them', async () => {
    const { fixture } = await newGround(dialect);
    const { path } = await fixture.made('meg');
    const status = async () => (await fixture.read(path)).status;
    fixture.now = '2026-12-20T00:00:00Z';
    await fixture.ask('mona');
    expect((await fixture.ask('meg')).json.items).toEqual([
      expect.objectContaining({ made_at: '2026-11-21T09:00:30Z', works_until: '2027-01-19T00:00:00Z' }),
    ]);
    fixture.now = '2027-01-18T23:59:59Z';
    await fixture.ask('mona');
    expect(await status()).toBe(200);
    fixture.now = '2027-01-19T00:00:00Z';
    expect(await status()).toBe(404);
    expect((await fixture.ask('meg')).json.items).toEqual([]);
    expect(await status()).toBe(404);
  });

  it('end with the clock that was ahead when they were made', async () => {
    const { fixture } = await newGround(dialect);
    const status = async (path: string) => (await fixture.read(path)).status;
    const { path: right } = await fixture.made('meg');
    fixture.now = '2027-11-21T09:00:00Z';
    const { path: ahead } = await fixture.made('meg');
    expect([await status(ahead), await status(right)]).toEqual([200, 404]);
    fixture.now = '2026-11-21T10:00:00Z';
    expect(await status(ahead)).toBe(404);
    expect((await fixture.ask('meg')).json.items).toEqual([]);
    const { path } = await fixture.made('meg');
    fixture.now = '2026-11-21T09:59:59Z';
    expect(await status(path)).toBe(200);
    fixture.now = '2027-11-21T09:00:00Z';
    expect(await status(ahead)).toBe(404);
  });

  it('are at most 20 of one person, also when many are asked for at once', async () => {
    const { fixture } = await newGround(dialect);
    const asked = Array.from({ length: 24 }, () => fixture.ask('olga', 'POST'));
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(20);
    expect(statuses.filter((status) => status === 422)).toHaveLength(4);
    await fixture.made('mona');
  });
});

it('wait for the upgrade of the ledger, and say so', async () => {
  const { connection, fixture } = await newGround('sqlite');
  const { path } = await fixture.made('meg');
  runSql(
    connection,
    "DROP TABLE calendar_links; DELETE FROM kysely_migration WHERE name = '0013-calendar-links'",
  );
  const later = await new Ground().open(connection);
  expect(await later.ask('meg')).toMatchObject({
    status: 503,
    json: { message: 'the ledger cannot keep calendars yet: ask the operator to upgrade it' },
  });
  expect((await later.read(path)).status).toBe(503);
  expect(await upgrade(connection)).toEqual(['0013-calendar-links']);
  expect((await later.ask('meg')).status).toBe(200);
  expect((await later.read(path)).status).toBe(404);
});

it('answer 503 while the ledger cannot be read', async () => {
  const { connection, fixture } = await newGround('sqlite');
  const { path } = await fixture.made('meg');
  breakLedger(connection);
  const { status, headers, text } = await fixture.read(path);
  expect([status, headers.get('Retry-After')]).toEqual([503, '5']);
  expect(text + fixture.log()).not.toContain(path.slice(11, 54));
});
