/**
 * Three people do their task in the console, in a real Chromium, beside a real Keystone that knows them and a real Blazar that they ask for
 * leases: a member, a manager, an operator.
 */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sentReservation } from '../../src/server/console/try/client-syntax.ts';
import { expectSound, HAS_CHROMIUM, openPage, sharedBrowser } from '../support/console/browser.ts';
import { newLedgers } from '../support/ledgers.ts';
import { peerProgram } from '../support/peers.ts';
import { RealKeystone } from './keystone.ts';
import {
  addManager,
  dayFromNow,
  LONGEST_DAYS,
  leaseOf,
  logInAs,
  PROJECT_HOURS,
  startUserCloud,
  type UserCloud,
} from './user-cloud.ts';

const program = peerProgram('BLAZAR_PEER');
const real = HAS_CHROMIUM && program !== undefined ? await RealKeystone.start() : undefined;
const newLedger = newLedgers();
const LOOK = { viewport: { width: 1280, height: 900 } };
/** Of a page that is to change by itself, in milliseconds. */
const SOON = { timeout: 120_000 };

afterAll(() => real?.remove());

describe.skipIf(real === undefined)('in the console, beside a real Keystone and Blazar,', () => {
  const browser = sharedBrowser();
  let cloud: UserCloud;

  beforeAll(async () => {
    cloud = await startUserCloud(real as RealKeystone, program ?? '', newLedger);
  });
  afterAll(() => cloud?.stop());

  const enter = async (url: string, user: string, project: string) => {
    const visited = await openPage(browser(), LOOK);
    const { page } = visited;
    await logInAs(page, url, user, project);
    return visited;
  };

  /** A page doesn't wait long for the names of a busy Keystone: it is loaded until it has them. */
  const shows = (page: Page, name: RegExp) =>
    expect
      .poll(async () => {
        await page.reload();
        return page.getByRole('row', { name }).count();
      }, SOON)
      .toBeGreaterThan(0);

  it('a member finds out why a lease was refused, what would work, and gets that lease', async () => {
    const alice = await cloud.keystone.token('alice');
    const refused = await cloud.blazar.ask('POST', '/v1/leases', alice, leaseOf('training', [2, 8], 2));
    expect(refused.status).toBe(400);
    expect(refused.text).toContain('The lease would cost 288 node-hours');

    const { page, said } = await enter(cloud.replicas[0], 'alice', 'climate');
    await page.getByRole('link', { name: 'Projects' }).click();
    await page
      .getByRole('cell', { name: /climate@Default/ })
      .or(page.getByRole('rowheader', { name: /climate@Default/ }))
      .getByRole('link')
      .click();
    const row = page.getByRole('table', { name: 'Refused leases' }).getByRole('row', { name: /training/ });
    expect(await row.textContent()).toMatch(/project climate@Default \(\w+\) has 200 node-hours left/);
    await expectSound(page, 'the project of a member');
    await row.getByRole('link', { name: /^req-/ }).click();
    await page.getByRole('heading', { name: 'rejected by UsageBudgetFilter' }).waitFor();
    await page.getByRole('row', { name: /MaxLeaseDurationFilter.*allowed/ }).waitFor();
    await expectSound(page, 'the decision');

    await page.getByRole('link', { name: 'Try this lease' }).click();
    expect(await page.getByLabel('Name of the lease').inputValue()).toBe('training');
    expect(await page.getByLabel('Start (UTC)').inputValue()).toBe(`${dayFromNow(2)}T00:00`);
    expect(await page.getByLabel('End (UTC)').inputValue()).toBe(`${dayFromNow(8)}T00:00`);
    expect(await page.getByLabel('Hosts, at least').inputValue()).toBe('2');
    expect(await page.getByLabel('Hosts, at most').inputValue()).toBe('2');
    await page.getByRole('button', { name: 'Try it' }).last().click();
    await page.getByRole('heading', { name: 'This lease would be refused by UsageBudgetFilter' }).waitFor();
    await expectSound(page, 'what would work');
    await page.getByRole('button', { name: 'Fill in suggestion 1' }).click();
    await page.getByRole('heading', { name: 'This lease would be allowed now' }).waitFor();
    const wanted = leaseOfCommand((await page.locator('pre.command').textContent()) ?? '');

    const other = await page.context().newPage();
    const heard = other.waitForResponse((response) => response.url().endsWith('/events'));
    await other.goto(`${cloud.replicas[0]}/projects/${cloud.keystone.ids.projects.climate}`);
    await heard;
    const leases = other.getByRole('table', { name: 'These leases' }).getByRole('row', { name: /training/ });
    expect(await leases.count()).toBe(0);
    const got = await cloud.blazar.ask('POST', '/v1/leases', alice, wanted);
    expect(got.status, got.text).toBe(201);
    await leases.waitFor(SOON);
    await other
      .getByText(`${PROJECT_HOURS} of ${PROJECT_HOURS} node-hours are taken or planned`)
      .waitFor(SOON);
    const truth = (await cloud.blazar.truth()).filter(({ lease_id }) => lease_id === got.lease?.id);
    expect(truth.map(({ resources }) => resources)).toEqual([Number(wanted.reservations[0]?.max)]);
    expect(said).toEqual([]);
  });

  it('a member asks for what a refused lease lacked, a manager endorses it, an operator grants it, and Blazar gives the lease', async () => {
    const { keystone, blazar, replicas } = cloud;
    await addManager(keystone, 'max', keystone.ids.projects.climate);
    const token = await keystone.token('alice');
    const wanted = leaseOf('evaluation', [30, 31]);
    const refused = await blazar.ask('POST', '/v1/leases', token, wanted);
    expect(refused.text).toContain('The lease would cost 24 node-hours');

    const alice = await enter(replicas[0], 'alice', 'climate');
    await alice.page.goto(`${replicas[0]}/projects/${keystone.ids.projects.climate}`);
    const row = alice.page
      .getByRole('table', { name: 'Refused leases' })
      .getByRole('row', { name: /evaluation/ });
    await row.getByRole('link', { name: /^req-/ }).click();
    await alice.page.getByRole('link', { name: 'Request more budget' }).click();
    expect(await alice.page.getByLabel('Increase').inputValue()).toBe('24');
    await alice.page.getByRole('button', { name: 'Request' }).click();
    await alice.page.getByText('The request is open.').waitFor();
    await expectSound(alice.page, 'the request of a member');
    const { pathname } = new URL(alice.page.url());

    const max = await enter(replicas[0], 'max', 'climate');
    await max.page.goto(replicas[0] + pathname);
    await max.page.getByRole('button', { name: 'Endorse' }).click();
    await max.page.getByText('The request is endorsed.').waitFor();
    const admin = await enter(replicas[1], 'admin', 'admin');
    await admin.page.goto(replicas[1] + pathname);
    await admin.page.getByLabel('Reason').fill('the last one of the year');
    await admin.page.getByRole('button', { name: 'Grant' }).click();
    await admin.page.getByText('The request is granted.').waitFor();
    await expectSound(admin.page, 'the request that is granted');

    const got = await blazar.ask('POST', '/v1/leases', token, wanted);
    expect(got.status, got.text).toBe(201);
    expect([...alice.said, ...max.said, ...admin.said]).toEqual([]);
  });

  it('a manager gives a user 50 hours within the budget of the project, and Blazar refuses more', async () => {
    const { keystone, blazar, replicas } = cloud;
    await addManager(keystone, 'mona', keystone.ids.projects.physics);
    const { page, said } = await enter(replicas[0], 'mona', 'physics');
    await page.getByRole('link', { name: 'Switch project' }).click();
    await expectSound(page, 'the projects of a manager');
    await page.goto(replicas[0]);
    await page.getByRole('link', { name: 'Budgets' }).click();
    await page.getByRole('link', { name: 'Set a budget' }).click();
    await page.getByLabel('User', { exact: true }).fill('carol@Default');
    await page.getByLabel(/^Amount/).fill(String(PROJECT_HOURS + 1));
    await page.getByLabel('Reason').fill('a workshop');
    await page.getByRole('button', { name: 'Set the budget' }).click();
    await expect.poll(() => page.getByLabel(/^Amount/).getAttribute('aria-invalid')).toBe('true');
    await expectSound(page, 'more than the project has');
    await page.getByLabel(/^Amount/).fill('50');
    await page.getByRole('button', { name: 'Set the budget' }).click();
    await page.getByText('The budget is set.').waitFor();
    await shows(page, /carol@Default.*50 of 50 node-hours left/);
    await expectSound(page, 'the budgets of a manager');

    const carol = await keystone.token('carol', { project: 'physics' });
    const fits = await blazar.ask('POST', '/v1/leases', carol, leaseOf('a day and more', [40, 42]));
    expect(fits.status, fits.text).toBe(201);
    const more = await blazar.ask('POST', '/v1/leases', carol, leaseOf('too much', [50, 51]));
    expect(more.status).toBe(400);
    expect(more.text).toContain('carol@Default');
    expect(more.text).toContain('2 node-hours left');
    const own = await enter(replicas[0], 'carol', 'physics');
    await own.page.goto(`${replicas[0]}/projects/${keystone.ids.projects.physics}`);
    await shows(own.page, /too much.*2 node-hours left/);
    expect([...said, ...own.said]).toEqual([]);
  });

  it('an operator imports 200 budgets, sees a refusal arrive, and finds it on another replica', async () => {
    const { keystone, blazar, replicas } = cloud;
    const { page, said } = await enter(replicas[0], 'admin', 'admin');
    await page.getByRole('link', { name: 'Budgets' }).click();
    await page.getByRole('link', { name: 'Import' }).click();
    const rows = Array.from(
      { length: 200 },
      (_, index) => `project-${index},,${dayFromNow(0)},${dayFromNow(365)},${100 + index}`,
    );
    const csv = ['project_id,user_id,valid_from,valid_until,amount', ...rows].join('\r\n');
    const file = { name: 'budgets.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) };
    await page.locator('input[type=file]').setInputFiles(file);
    await page.getByLabel('Reason').fill('grants of the year');
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.getByText('It would set 200 new budgets, change 0, and leave 0 unchanged.').waitFor();
    await page.getByRole('button', { name: 'Set all of these budgets' }).click();
    await page.getByText('All budgets of the file are set.').waitFor();
    await page.getByLabel('Id of project or user contains').fill('project-199');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('row', { name: /project-199.*299 of 299 node-hours left/ }).waitFor();

    const heard = page.waitForResponse((response) => response.url().endsWith('/events'));
    await page.getByRole('link', { name: 'Overview' }).click();
    await heard;
    const bob = await keystone.token('bob');
    const wanted = leaseOf('for long', [60, 60 + LONGEST_DAYS + 1]);
    expect(await blazar.ask('POST', '/v1/leases', bob, wanted)).toMatchObject({ status: 400 });
    const row = page.getByRole('table', { name: 'Latest refusals' }).getByRole('row', { name: /for long/ });
    await row.waitFor(SOON);
    await expectSound(page, 'the overview');
    const id = (await row.getByRole('link', { name: /^req-/ }).textContent()) ?? '';

    const later = await enter(replicas[1], 'admin', 'admin');
    await later.page.getByRole('link', { name: 'Decisions' }).click();
    await later.page.getByLabel('Request id').fill(id);
    await later.page.getByRole('button', { name: 'Search' }).click();
    await later.page.getByRole('link', { name: id }).click();
    await later.page.getByRole('heading', { name: 'rejected by MaxLeaseDurationFilter' }).waitFor();
    // A Keystone that is busy names nobody in time: the decision then has the id alone.
    const who = new RegExp(`bob@Default|${keystone.ids.users.bob}`);
    await later.page.getByText(who).first().waitFor();
    expect([...said, ...later.said]).toEqual([]);
  });
});

/** What the command of the page would send to Blazar. */
function leaseOfCommand(command: string) {
  const optionOf = (option: string) =>
    new RegExp(`${option} '?([^'\\\\\\n]+?)'? \\\\\\n`).exec(command)?.[1] ?? '';
  const reservation = sentReservation(optionOf('--reservation'));
  expect(reservation, command).toBeDefined();
  return {
    name: command.split('\n').at(-1)?.trim() ?? '',
    start_date: optionOf('--start-date'),
    end_date: optionOf('--end-date'),
    reservations: reservation === undefined ? [] : [reservation],
    events: [],
  };
}
