/**
 * Two replicas behind nginx, as etc/nginx has it, of which one is killed every five seconds, while three people work in the console, a program
 * uses the API, and a real Blazar asks about leases. `RESTARTS_SECONDS=300` for five minutes.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Locator, Page } from 'playwright-core';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { type ApiClient, createApiClient, EndpointError } from '../../src/client/index.ts';
import { expectSound, HAS_CHROMIUM, openPage, sharedBrowser } from '../support/console/browser.ts';
import { newLedgers } from '../support/ledgers.ts';
import { HAS_NGINX, nginxFile, startNginx } from '../support/nginx.ts';
import { peerProgram } from '../support/peers.ts';
import { runCommand } from '../support/run-command.ts';
import { tlsFixture } from '../support/tls.ts';
import { unusedPort } from '../support/unused-port.ts';
import { RealKeystone } from './keystone.ts';
import {
  addManager,
  addUser,
  dayFromNow,
  leaseOf,
  logInAs,
  PROJECT_HOURS,
  startUserCloud,
  type UserCloud,
} from './user-cloud.ts';

const SECONDS = Number(process.env.RESTARTS_SECONDS ?? 15);
const EVERY = 5000;
/** Between two looks of somebody, in milliseconds: less than a replica is frozen, so that each restart meets requests. */
const BETWEEN = 500;
/** A replica that does not move takes requests that are lost when it is killed, in milliseconds. */
const FROZEN = 1500;
/** What a browser says of a form, or of live updates, whose replica was killed. */
const EXPECTED = /status of 502|ERR_INCOMPLETE_CHUNKED_ENCODING/;
const program = peerProgram('BLAZAR_PEER');
const real = HAS_CHROMIUM && HAS_NGINX && program !== undefined ? await RealKeystone.start() : undefined;
const newLedger = newLedgers();

afterAll(() => real?.remove());

const counted = {
  kills: 0,
  pages: 0,
  forms: 0,
  formsLost: 0,
  formsDoneAlready: 0,
  leases: 0,
  leasesNotChecked: 0,
  refusalsNotSeen: 0,
  calls: 0,
  callsLost: 0,
};

/** Requests that are being answered, but live updates. */
const inFlight = new Set<object>();

function answered<Result>(call: Promise<Result>): Promise<Result> {
  inFlight.add(call);
  return call.finally(() => inFlight.delete(call));
}

/** One of the three: each page is theirs, and none is an error. */
class Person {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  async open(url: string): Promise<void> {
    const answer = await this.page.goto(url);
    expect({ url, status: answer?.status() }).toEqual({ url, status: 200 });
    await this.#isShown();
  }

  /** Follows a link: pages that only read are never lost. */
  async follow(link: Locator): Promise<void> {
    const answered = this.page.waitForResponse((response) => response.request().isNavigationRequest());
    await link.click();
    const answer = await answered;
    expect({ url: answer.url(), status: answer.status() }).toEqual({ url: answer.url(), status: 200 });
    await this.#isShown();
  }

  /** Fills a form in, and sends it as often as it needs. `done`: what is shown then. `meanwhile`: between filling in and sending. */
  async send(
    button: string,
    values: Readonly<Record<string, string>>,
    done: string | RegExp,
    meanwhile: () => Promise<void> = async () => {},
  ): Promise<void> {
    const { page } = this;
    const field = (label: string) => page.getByRole('textbox', { name: new RegExp(`^${label}`) });
    for (const [label, value] of Object.entries(values)) {
      await field(label).fill(value);
    }
    await meanwhile();
    counted.forms += 1;
    const lost = page.getByRole('heading', { name: 'The service was interrupted' });
    const isDone = page.getByText(done);
    const isRefused = page.getByText('Nothing was changed');
    for (let times = 1; ; times += 1) {
      await page.getByRole('button', { name: button }).click();
      await isDone.or(lost).or(isRefused).first().waitFor();
      if ((await lost.count()) === 0) {
        await this.#isShown();
        if ((await isRefused.count()) > 0) {
          const text = await page.locator('main').textContent();
          expect({ times, text }).not.toMatchObject({ times: 1 });
          counted.formsDoneAlready += 1;
        }
        return;
      }
      counted.formsLost += 1;
      await page.goBack();
      await this.#isShown();
      if ((await page.getByRole('button', { name: button }).count()) === 0) {
        // The page shows that it was done.
        counted.formsDoneAlready += 1;
        return;
      }
      for (const [label, value] of Object.entries(values)) {
        await expect.poll(() => field(label).inputValue(), { timeout: 60_000 }).toBe(value);
      }
    }
  }

  /** Nobody is logged out. */
  async #isShown(): Promise<void> {
    counted.pages += 1;
    await this.page.getByRole('button', { name: 'Log out' }).waitFor();
  }
}

describe.skipIf(real === undefined)('two replicas behind nginx, one killed every five seconds,', () => {
  const browser = sharedBrowser();

  it('log nobody out, lose no form, show no wrong page, and do nothing twice', {
    timeout: 1_800_000 + SECONDS * 5000,
  }, async () => {
    const keystone = real as RealKeystone;
    const { climate, physics } = keystone.ids.projects;
    const ports = [await unusedPort(), await unusedPort()] as const;
    const url = `https://127.0.0.1:${ports[0]}`;
    const cloud = await startUserCloud(keystone, program ?? '', newLedger, async (replicas) => {
      const asked = `http://127.0.0.1:${ports[1]}`;
      onTestFinished(await startNginx(nginxFiles(ports, replicas), asked));
      return asked;
    });
    onTestFinished(() => cloud.stop());
    await addManager(keystone, 'max', climate);
    const enter = async (user: string, project: string): Promise<Person> => {
      const visited = await openPage(browser(), { ignoreHTTPSErrors: true });
      onTestFinished(() => expect(visited.said.filter((text) => !EXPECTED.test(text))).toEqual([]));
      const { page } = visited;
      page.on('request', (request) => request.url().endsWith('/events') || inFlight.add(request));
      page.on('requestfinished', (request) => inFlight.delete(request));
      page.on('requestfailed', (request) => inFlight.delete(request));
      await logInAs(page, url, user, project);
      return new Person(page);
    };
    const alice = await enter('alice', 'climate');
    const max = await enter('max', 'climate');
    const admin = await enter('admin', 'admin');
    const token = await keystone.adminToken();
    const api = createApiClient({ endpoint: url, token, ca: readFileSync(tlsFixture('ca.pem'), 'utf8') });
    onTestFinished(() => api.close());
    const live = await alice.page.context().newPage();
    await live.goto(`${url}/projects/${climate}?until=${dayFromNow(300)}`);

    const end = Date.now() + SECONDS * 1000;
    const restarts = new Restarts(cloud);
    let isOver = false;
    const member = memberWorks({ alice, cloud, url, until: () => Date.now() >= end && counted.kills > 1 });
    const others = Promise.all([
      managerWorks({ max, keystone, url, project: climate, restarts, until: () => isOver }),
      operatorWorks({ admin, url, until: () => isOver }),
      programWorks({ api, project: physics, until: () => isOver }),
    ]);
    // What fails first is told, not what waits for it.
    const killing = restarts.run(() => isOver);
    onTestFinished(async () => {
      isOver = true;
      await killing.catch(() => {});
    });
    const rounds = await Promise.race([member, others.then(() => member), killing.then(() => member)]);
    isOver = true;
    const [given, , sums] = await others;
    await killing;
    console.info(`${SECONDS} s:`, JSON.stringify(counted));
    expect(counted.kills).toBeGreaterThan(1);

    await live
      .getByRole('table', { name: 'These leases' })
      .getByRole('row', { name: `run ${rounds.leases}` })
      .first()
      .waitFor();
    expect(await live.getByText('This page may be out of date').isVisible()).toBe(false);

    // Once each: what was asked for, granted, given and counted.
    const requests = await all(api.items('/v1/budget-requests', { query: { project_id: climate } }));
    expect(requests.map(({ reason }) => reason).sort()).toEqual(rounds.reasons.sort());
    expect(requests.filter(({ state }) => state !== 'granted')).toEqual([]);
    const budgets = await all(api.items('/v1/budgets', { query: { project_id: climate } }));
    const users = budgets.flatMap(({ user }) => user?.id ?? []);
    expect(users.sort()).toEqual(given.sort());
    const granted = requests.reduce((sum, one) => sum + Number(one.granted?.amount ?? 0), 0);
    expect(Number(budgets.find(({ user }) => user === null)?.amount)).toBe(PROJECT_HOURS + granted);
    const changes = await all(api.items('/v1/budgets/{budget_id}/changes', { path: { budget_id: sums.id } }));
    expect(changes.length).toBe(1 + sums.changes);

    await expectReportsToEqualTheLedger(api, climate);
    const followed = await runCommand([
      'ledger',
      'reconcile',
      '--blazar',
      '--older-than',
      '0s',
      '--config-file',
      cloud.file(),
    ]);
    expect(followed).toMatchObject({ code: 0 });
    await expectReportsToEqualTheLedger(api, climate);
    const leases = await all(
      api.items('/v1/projects/{project_id}/leases', { path: { project_id: climate } }),
    );
    const truth = (await cloud.blazar.truth()).map(({ lease_id }) => lease_id);
    expect(leases.map(({ lease_id }) => lease_id).sort()).toEqual(truth.sort());
  });

  it('show a page of nginx that is sound', async () => {
    const ports = [await unusedPort(), await unusedPort()] as const;
    const away = `http://127.0.0.2:${await unusedPort()}`;
    onTestFinished(await startNginx(nginxFiles(ports, [away, away]), `http://127.0.0.1:${ports[1]}`));
    const { page } = await openPage(browser(), {
      ignoreHTTPSErrors: true,
      viewport: { width: 320, height: 640 },
      colorScheme: 'dark',
    });
    const answer = await page.goto(`https://127.0.0.1:${ports[0]}/budgets`);
    expect(answer?.status()).toBe(502);
    await expectSound(page);
    const asProgram = await page.request.get(`https://127.0.0.1:${ports[0]}/v1/budgets`, {
      headers: { Accept: 'application/json' },
    });
    expect(await asProgram.json()).toEqual({ message: expect.stringContaining('interrupted') });
  });
});

/** For people and for Blazar. */
function nginxFiles(
  [people, blazar]: readonly [number, number],
  replicas: readonly string[],
): readonly string[] {
  const servers = replicas.map((url) => `server ${new URL(url).host} max_fails=0;`).join(' ');
  return [
    nginxFile('console.conf', [
      ['listen 443 ssl', `listen 127.0.0.1:${people} ssl`],
      ['/etc/nginx/tls/server.pem', tlsFixture('server.pem')],
      ['/etc/nginx/tls/server.key', tlsFixture('server.key')],
      ['server 127.0.0.1:8642 max_fails=0;', servers],
      ['server 127.0.0.1:8643 max_fails=0;', ''],
    ]),
    nginxFile('policy-service.conf', [
      ['listen 127.0.0.1:8641', `listen 127.0.0.1:${blazar}`],
      ['server 127.0.0.1:8642 max_fails=0;', servers],
    ]),
  ];
}

/** Kills one replica after the other, each only while the other one answers. */
class Restarts {
  readonly #cloud: UserCloud;
  #waiting: (() => void)[] = [];

  constructor(cloud: UserCloud) {
    this.#cloud = cloud;
  }

  /** Resolves when a replica stops to move; it is killed a moment later. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async run(until: () => boolean): Promise<void> {
    for (let index = 0; !until(); index = 1 - index) {
      const next = pause(EVERY);
      const restarted = this.#cloud.restart(index, FROZEN);
      this.#tell();
      await restarted;
      counted.kills += 1;
      // What the replica has refused until now is at the other one, which is killed next: nobody is left for it.
      const before = [...inFlight];
      await expect.poll(() => before.some((one) => inFlight.has(one)), { timeout: 300_000 }).toBe(false);
      await next;
    }
    this.#tell();
  }

  #tell(): void {
    for (const resolve of this.#waiting.splice(0)) {
      resolve();
    }
  }
}

interface MemberWork {
  readonly alice: Person;
  readonly cloud: UserCloud;
  readonly url: string;
  readonly until: () => boolean;
}

/** Asks for leases; when one is refused, for more budget. Resolves to the reasons of the requests, and the number of the last lease. */
async function memberWorks({ alice, cloud: { keystone, blazar }, url, until }: MemberWork) {
  const token = await keystone.token('alice');
  const { climate } = keystone.ids.projects;
  const ask = async (wanted: ReturnType<typeof leaseOf>) => {
    for (;;) {
      const { status, text } = await blazar.ask('POST', '/v1/leases', token, wanted);
      if (status === 201 || text.includes('node-hours left')) {
        return status === 201;
      }
      // Blazar's own sentence: nginx has answered 503 for a replica that was killed with the request.
      expect(text).toMatch(/could not be checked|External service enforcement filter denied the request/);
      counted.leasesNotChecked += 1;
    }
  };
  const reasons: string[] = [];
  let leases = 0;
  await ask(leaseOf(`run ${leases}`, [20, 28]));
  while (!until()) {
    leases += 1;
    const name = `run ${leases}`;
    const wanted = leaseOf(name, [30 + leases, 31 + leases]);
    while (!(await ask(wanted))) {
      await alice.open(`${url}/projects/${climate}`);
      const row = alice.page
        .getByRole('table', { name: 'Refused leases' })
        .getByRole('row', { name: new RegExp(`\\b${name}\\b`) })
        .first();
      if ((await row.count()) === 0) {
        // Who is killed within a tenth of a second has not stored it.
        counted.refusalsNotSeen += 1;
        continue;
      }
      await alice.follow(row.getByRole('link', { name: /^req-/ }));
      await alice.follow(alice.page.getByRole('link', { name: 'Request more budget' }));
      const reason = `${name}, request ${reasons.length}`;
      await alice.send('Request', { Reason: reason }, 'All requests');
      reasons.push(reason);
      const request = new URL(alice.page.url()).pathname;
      while ((await alice.page.getByText('the budget was increased').count()) === 0) {
        await pause(BETWEEN);
        await alice.open(url + request);
      }
    }
    counted.leases += 1;
  }
  return { reasons, leases };
}

interface ManagerWork {
  readonly max: Person;
  readonly keystone: RealKeystone;
  readonly url: string;
  readonly project: string;
  readonly restarts: Restarts;
  readonly until: () => boolean;
}

/** Endorses requests, and gives users budgets, with a form that is sent when a replica is about to die. Resolves to the users. */
async function managerWorks({
  max,
  keystone,
  url,
  project,
  restarts,
  until,
}: ManagerWork): Promise<string[]> {
  const users: string[] = [];
  while (!until()) {
    await max.open(`${url}/budgets/requests?state=requested`);
    const request = max.page.getByRole('link', { name: /^Request \d+$/ }).first();
    if ((await request.count()) > 0) {
      await max.follow(request);
      await max.send('Endorse', {}, 'The request is endorsed.');
    } else {
      const user = await addUser(keystone, `user ${users.length}`);
      await max.open(`${url}/budgets/new?project=${project}`);
      const values = { User: user, Amount: '1', Reason: `of ${user}` };
      await max.send('Set the budget', values, 'The budget is set.', () => restarts.next());
      users.push(user);
    }
  }
  return users;
}

interface OperatorWork {
  readonly admin: Person;
  readonly url: string;
  readonly until: () => boolean;
}

async function operatorWorks({ admin, url, until }: OperatorWork): Promise<void> {
  while (!until()) {
    await admin.open(`${url}/budgets/requests?state=endorsed`);
    const request = admin.page.getByRole('link', { name: /^Request \d+$/ }).first();
    if ((await request.count()) > 0) {
      await admin.follow(request);
      await admin.send('Grant', { Reason: 'fine' }, 'The request is granted.');
    }
    await admin.open(`${url}/usage?by=user`);
    await admin.open(url);
    await pause(BETWEEN);
  }
}

interface ProgramWork {
  readonly api: ApiClient;
  readonly project: string;
  readonly until: () => boolean;
}

/** Reads, and adds 1 to a budget again and again. Resolves to how often. */
async function programWorks({ api, project, until }: ProgramWork) {
  const [budget] = await all(api.items('/v1/budgets', { query: { project_id: project } }));
  const id = budget?.id ?? '';
  const inPath = { path: { budget_id: id } };
  let changes = 0;
  while (!until()) {
    const { data, response } = await answered(api.GET('/v1/budgets/{budget_id}', { params: inPath }));
    expect(Number(data.amount)).toBe(PROJECT_HOURS + changes);
    const header = { 'If-Match': response.headers.get('ETag') ?? '' };
    const body = { amount: PROJECT_HOURS + changes + 1, reason: `change ${changes}` };
    await api.PATCH('/v1/budgets/{budget_id}', { params: { ...inPath, header }, body }).catch(isLost);
    // Whether it was done is seen in what is there.
    const after = await answered(api.GET('/v1/budgets/{budget_id}', { params: inPath }));
    changes = Number(after.data.amount) - PROJECT_HOURS;
    await answered(api.GET('/v1/reports/usage', { params: { query: { by: 'user' } } }));
    counted.calls += 4;
    await pause(BETWEEN);
  }
  return { id, changes };
}

function isLost(thrown: unknown): void {
  if (!(thrown instanceof EndpointError) || thrown.status !== 502) {
    throw thrown;
  }
  counted.callsLost += 1;
}

/** For the budget of the project; all of its leases are within the time. */
async function expectReportsToEqualTheLedger(api: ApiClient, projectId: string): Promise<void> {
  const query = { project_id: projectId, from: dayFromNow(-1), until: dayFromNow(300) };
  const { data } = await api.GET('/v1/reports/usage', { params: { query } });
  const rows = typeof data === 'string' ? [] : data.rows;
  const entries = await all(api.items('/v1/ledger/entries', { query: { project_id: projectId } }));
  const taken = entries
    .filter(({ account }) => account.startsWith('usage_budget/'))
    .reduce((sum, { delta }) => sum + BigInt(delta), 0n);
  expect(taken).toBeGreaterThan(0n);
  expect(rows.map(({ exact }) => exact?.amount)).toEqual([String(taken)]);
}

async function all<Item>(items: AsyncGenerator<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) {
    found.push(item);
  }
  return found;
}
