/** Live pages of two processes that share a database: each is told what either decides, once. */
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { sectionText } from '../../../support/files.ts';
import { newLease } from '../../../support/lease-clients.ts';
import { type ServiceProcess, startService } from '../../../support/ledger-processes.ts';
import { DIALECTS, newLedgers, upgraded } from '../../../support/ledgers.ts';
import { postJson } from '../../../support/post-json.ts';
import { startPostgres } from '../../../support/postgres.ts';
import { backends } from '../../../support/postgres-activity.ts';
import { ValidatingKeystone } from '../../../support/validating-keystone.ts';
import { visitor } from '../visitor.ts';
import { listen } from './listen.ts';

const newLedger = newLedgers();
const OPERATOR = 'op-0123456789abcdef';
const SHOWS_TOKEN = { 'X-Auth-Token': OPERATOR };
const AWAY = 'only decisions of this process are shown';

const setupOf = (connection: string, service = '') => ({
  connection,
  timeout: 5,
  deadline: 10,
  enabled: 'MaxLeaseDurationFilter, MaxLeasesFilter',
  enforcement: 'max_lease_duration = 259200\nmax_leases_per_project = 1000',
  service: `operator_tokens = ${OPERATOR}\n${service}`,
});
const startTwo = (setup: ReturnType<typeof setupOf> & { readonly sections?: string }) =>
  Promise.all([startService(setup), startService(setup)]);

/** A lease that is allowed for two days, and refused for more than three. */
function ask({ ask: send }: ServiceProcess, days: number, project?: string) {
  const { path, body } = newLease(days);
  const { context } = body as { readonly context: object };
  return send(path, { ...body, context: { ...context, ...(project && { project_id: project }) } });
}

/** How many changes a page was told of. */
async function page({ url }: ServiceProcess, headers: Record<string, string> = SHOWS_TOKEN) {
  const { status, events } = await listen(url, headers);
  expect(status).toBe(200);
  const changes = () => events().filter((name) => name === 'change').length;
  return { changes, hears: (count: number) => expect.poll(changes).toBeGreaterThanOrEqual(count) };
}

for (const dialect of DIALECTS) {
  it(`with ${dialect}: a page of each hears once what either allows and refuses`, async () => {
    const services = await startTwo(setupOf(await newLedger(dialect)));
    const pages = await Promise.all(services.map((service) => page(service)));
    let told = 0;
    for (const [service, days, status] of [
      [services[0], 2, 204],
      [services[1], 9, 403],
      [services[0], 9, 403],
    ] as const) {
      expect(await ask(service, days)).toMatchObject({ status });
      told += 1;
      await Promise.all(pages.map(({ hears }) => hears(told)));
    }
    // Time in which they could be told again.
    await pause(1_500);
    for (const { changes } of pages) {
      // A busy machine may notice the lease before its decision, and tell of it once more.
      expect(changes()).toBeLessThanOrEqual(told + 1);
    }
  });
}

it('hears of a replica that was killed and came back, and needs no connection more', async () => {
  const connection = await newLedger('postgresql');
  const setup = setupOf(connection);
  const [first, second] = await startTwo(setup);
  await ask(first, 9);
  await ask(second, 9);
  // Whoever has looked at stored decisions once has this connection.
  expect((await visitor(second.url).get('/decisions', SHOWS_TOKEN)).status).toBe(200);
  const { hears } = await page(second);
  await first.kill();
  const before = (await backends(connection)).length;
  const again = await startService(setup);
  expect(await ask(again, 2)).toMatchObject({ status: 204 });
  await hears(1);
  await again.kill();
  await expect.poll(async () => (await backends(connection)).length).toBeLessThanOrEqual(before);
});

it('a member hears of their project alone, from the other replica too', async () => {
  const keystone = await ValidatingKeystone.start();
  keystone.tokens.set('gAAAAABof-a-member', 'member');
  const [first, second] = await startTwo({
    ...setupOf(await newLedger('postgresql'), 'keystone_auth = true\ntokens = the-token-of-blazar-0123\n'),
    sections: sectionText('keystone', { ...keystone.account, resolve_names: false }),
  });
  const blazar = (body: object) =>
    postJson(`${first.url}/check-create`, body, { 'X-Auth-Token': 'the-token-of-blazar-0123' });
  const member = await page(second, { 'X-Auth-Token': 'gAAAAABof-a-member' });
  const operator = await page(second);
  const of = (project_id: string) => {
    const { body } = newLease(2);
    const { context } = body as { readonly context: object };
    return { ...body, context: { ...context, project_id } };
  };
  expect((await blazar(of('of-others'))).status).toBe(204);
  await operator.hears(1);
  expect((await blazar(of('0000000000000000000000000000000e'))).status).toBe(204);
  await member.hears(1);
  await operator.hears(2);
});

it('goes on with what its own replica decides while the database is away, says so, and hears of the others afterwards', async () => {
  const postgres = await startPostgres();
  onTestFinished(() => postgres.remove());
  const [first, second] = await startTwo(setupOf(await upgraded(await postgres.createDatabase())));
  const one = await page(first);
  const other = await page(second);
  expect(await ask(first, 9)).toMatchObject({ status: 403 });
  await one.hears(1);
  await other.hears(1);
  const operator = visitor(first.url);
  expect((await operator.get('/', SHOWS_TOKEN)).html).not.toContain(AWAY);
  await postgres.stop();
  // All pages load again, to say so.
  await one.hears(2);
  await other.hears(2);
  for (const path of ['/', '/decisions']) {
    const { status, text } = await operator.get(path, SHOWS_TOKEN);
    expect({ path, status, text }).toEqual({ path, status: 200, text: expect.stringContaining(AWAY) });
  }
  expect(await ask(first, 8)).toMatchObject({ status: 403 });
  await one.hears(3);
  expect((await operator.get('/decisions', SHOWS_TOKEN)).text).toContain('8 days');
  await postgres.start();
  await expect.poll(async () => (await operator.get('/', SHOWS_TOKEN)).html.includes(AWAY)).toBe(false);
  await expect.poll(async () => (await ask(first, 9))?.status).toBe(403);
  const heard = other.changes();
  await expect.poll(other.changes).toBeGreaterThanOrEqual(heard);
  expect(await ask(first, 2)).toMatchObject({ status: 204 });
  await expect.poll(other.changes).toBeGreaterThan(heard);
});
