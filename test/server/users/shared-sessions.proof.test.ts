/** Two processes on one PostgreSQL, behind a load balancer without stickiness: a session is known to both, outlives each, and ends at both. */
import { expect, it } from 'vitest';
import { startBalancer } from '../../support/balancer.ts';
import { sectionText } from '../../support/files.ts';
import { type ServiceProcess, startService } from '../../support/ledger-processes.ts';
import { newLedgers } from '../../support/ledgers.ts';
import { runSql } from '../../support/postgres-activity.ts';
import { capturedText } from '../../support/requests.ts';
import { ValidatingKeystone } from '../../support/validating-keystone.ts';
import { type Visitor, visitor } from '../console/visitor.ts';

const newLedger = newLedgers();
const OPERATOR = 'op-0123456789abcdef';
const BLAZAR = 'the-token-of-blazar-0123';
const OF_MEMBER = 'gAAAAABtoken-of-a-member';

async function fixture() {
  const keystone = await ValidatingKeystone.start();
  keystone.tokens.set(OF_MEMBER, 'member');
  const connection = await newLedger('postgresql');
  const setup = {
    connection,
    enabled: 'MaxLeasesFilter',
    service: `tokens = ${BLAZAR}\noperator_tokens = ${OPERATOR}\nkeystone_auth = true\ntoken_cache_time = 1\n`,
    sections: sectionText('keystone', { ...keystone.account, resolve_names: false }),
  };
  const start = () => startService(setup);
  const services = await Promise.all([start(), start()]);
  const urls = services.map(({ url }) => url);
  const balancer = await startBalancer(urls);
  return {
    keystone,
    connection,
    services,
    urls,
    balancer,
    /** Kills one, and starts another one in its place. */
    restart: async (index: 0 | 1) => {
      await services[index]?.kill();
      const service = await start();
      services[index] = service;
      urls[index] = service.url;
    },
  };
}

const logIn = async (visit: Visitor, token = OPERATOR) => (await visit.send('/login', { token })).status;
/** At both, since they take turns. */
const statuses = async (visit: Visitor, path = '/') => [
  (await visit.get(path)).status,
  (await visit.get(path)).status,
];
const csrfOf = (html: string) => /name="csrf" value="([^"]*)"/.exec(html)?.[1] ?? '';
const withCookie = (url: string, cookie: string, path = '/') =>
  fetch(url + path, { headers: { Cookie: cookie }, redirect: 'manual' });

/** All that the database holds, as text. */
async function dump(connection: string): Promise<string> {
  const tables = (await runSql(
    connection,
    "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
  )) as { tablename: string }[];
  const rows = [];
  for (const { tablename } of tables) {
    rows.push(
      ...(await runSql(connection, `SELECT row_to_json(one)::text AS text FROM ${tablename} AS one`)),
    );
  }
  return JSON.stringify(rows);
}

it('is opened at one, used at the other, outlives a restart of each, and ends at both', async () => {
  const { balancer, urls, connection, restart } = await fixture();
  const operator = visitor(balancer);
  expect(await logIn(operator)).toBe(303);
  const pages = await Promise.all(Array.from({ length: 20 }, () => operator.get('/budgets')));
  expect(new Set(pages.map(({ status }) => status))).toEqual(new Set([200]));
  // A form of one replica is taken by the other.
  const { html } = await operator.get('/budgets');
  expect(csrfOf(html)).toMatch(/^[\w-]{43}$/);
  for (const index of [0, 1] as const) {
    await restart(index);
    expect(await statuses(operator)).toEqual([200, 200]);
    expect(csrfOf((await operator.get('/budgets')).html)).toBe(csrfOf(html));
  }
  const cookie = operator.cookie();
  const streams = await Promise.all(urls.map((url) => withCookie(url, cookie, '/events')));
  expect(streams.map(({ status }) => status)).toEqual([200, 200]);
  const secrets = [OPERATOR, cookie.split('=')[1] ?? '', csrfOf(html)];
  const held = await dump(connection);
  expect(held).toContain('"sealed');
  for (const secret of secrets) {
    expect(held).not.toContain(secret);
  }
  expect((await operator.send('/logout', {})).status).toBe(303);
  // They end: else this waits for ever.
  for (const stream of streams) {
    expect(await stream.text()).toContain('event: hello');
  }
  for (const url of urls) {
    expect((await withCookie(url, cookie)).status, 'stolen').toBe(401);
    expect((await withCookie(url, cookie, '/events')).status).toBe(401);
  }
  expect(await dump(connection)).not.toContain('"sealed');
});

it('ends at both when Keystone revokes its token, within token_cache_time', async () => {
  const { balancer, keystone, connection, urls } = await fixture();
  const member = visitor(balancer);
  expect(await logIn(member, OF_MEMBER)).toBe(303);
  expect(await statuses(member, '/budgets')).toEqual([200, 200]);
  expect(await dump(connection)).not.toContain(OF_MEMBER);
  keystone.tokens.delete(OF_MEMBER);
  for (const url of urls) {
    await expect.poll(async () => (await withCookie(url, member.cookie(), '/budgets')).status).toBe(401);
  }
});

it('is opened sixty times at once over both processes, and none is lost', async () => {
  const { balancer, connection } = await fixture();
  const visitors = Array.from({ length: 60 }, () => visitor(balancer));
  expect(new Set(await Promise.all(visitors.map((one) => logIn(one))))).toEqual(new Set([303]));
  const open = await Promise.all(visitors.map(async (one) => (await one.get('/')).status));
  expect(new Set(open)).toEqual(new Set([200]));
  expect(await runSql(connection, 'SELECT count(*)::int AS count FROM sessions')).toEqual([{ count: 60 }]);
});

it('is neither lost nor opened while the database is away, and decisions go on', async () => {
  const { balancer, connection, services, urls } = await fixture();
  const operator = visitor(balancer);
  await logIn(operator);
  const cookie = operator.cookie();
  await runSql(connection, 'ALTER TABLE sessions RENAME TO sessions_elsewhere');
  for (const path of ['/', '/budgets', '/v1/budgets', '/events']) {
    const answers = await Promise.all(urls.map((url) => withCookie(url, cookie, path)));
    expect(
      answers.map(({ status }) => status),
      path,
    ).toEqual([503, 503]);
    expect(answers.map(({ headers }) => headers.get('Set-Cookie'))).toEqual([null, null]);
    expect(await answers[0]?.text()).toContain('try again in a moment');
  }
  const login = await visitor(balancer).send('/login', { token: OPERATOR });
  expect([login.status, login.text]).toEqual([503, expect.stringContaining('No session can be opened now.')]);
  expect((await operator.send('/logout', {})).status).toBe(503);
  expect((await fetch(`${urls[0]}/`)).status, 'without a cookie').toBe(401);
  const blazar = { 'X-Auth-Token': BLAZAR, 'Content-Type': 'application/json', Cookie: cookie };
  const body = capturedText('check-create-physical-host.json');
  for (const url of urls) {
    expect((await fetch(`${url}/check-create`, { method: 'POST', headers: blazar, body })).status).toBe(204);
    expect((await fetch(`${url}/v1/budgets`, { headers: { 'X-Auth-Token': OPERATOR } })).status).toBe(200);
  }
  await runSql(connection, 'ALTER TABLE sessions_elsewhere RENAME TO sessions');
  expect(await statuses(operator)).toEqual([200, 200]);
  const log = services.map((service: ServiceProcess) => service.log()).join('');
  expect(log).toMatch(/relation \\?"sessions\\?" does not exist/);
  expect(log).not.toContain(OPERATOR);
});

it.each([
  ['is shared also where it has none for requests yet', '0012', 'budget_requests, calendar_links'],
  [
    'is kept by each process alone where it has none for sessions yet, and decisions go on',
    ...(['0011', 'sessions, login_counts, replicas, budget_requests, calendar_links'] as const),
  ],
])('with a ledger that lacks tables, %s', async (_, migration, tables) => {
  const connection = await newLedger('postgresql');
  await runSql(connection, `DROP TABLE ${tables}; DELETE FROM kysely_migration WHERE name >= '${migration}'`);
  const service = `operator_tokens = ${OPERATOR}\n`;
  const { url, ask, log } = await startService({ connection, enabled: 'MaxLeasesFilter', service });
  const body = JSON.parse(capturedText('check-create-physical-host.json')) as object;
  expect(await ask('check-create', body)).toMatchObject({ status: 204 });
  const operator = visitor(url);
  expect(await logIn(operator)).toBe(303);
  expect((await operator.get('/')).status).toBe(200);
  const requests = await operator.get('/budgets/requests');
  expect([requests.status, requests.text]).toEqual([
    503,
    expect.stringContaining('ask the operator to upgrade it'),
  ]);
  const isAlone = log().includes('sessions of the console are kept by this process alone');
  expect(isAlone).toBe(migration === '0011');
});
