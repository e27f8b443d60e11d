import { h } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { describe, expect, it, onTestFinished } from 'vitest';
import { UsageEnforcement } from '../../../src/index.ts';
import { Ledger } from '../../../src/server/console/ledger.tsx';
import { Timeline } from '../../../src/server/console/timeline.tsx';
import { giveBudget, ledgerAt, newLedgers } from '../../support/ledgers.ts';
import { recordingLogger } from '../../support/logger.ts';
import { createLasting } from '../../support/requests.ts';
import { runApp, runService, runServiceOn } from '../../support/running-service.ts';
import { rowsOf, textOf, visitor } from './visitor.ts';

const newLedger = newLedgers();
const SECTION = 'Budgets and leases';
const NOW = '2026-11-21T12:00:00Z';

/** A service with a ledger, at a time that can be moved. */
async function serve(tokens: string[] = []) {
  const connection = await newLedger('sqlite');
  const clock = { text: NOW, now: () => new Date(clock.text) };
  const enforcement = await UsageEnforcement.load(
    {
      environment: {},
      configFiles: [],
      values: {
        ledger: { connection },
        enforcement: { enabled_filters: ['MaxLeasesFilter', 'UsageBudgetFilter'] },
      },
    },
    { clock, logger: recordingLogger() },
  );
  onTestFinished(() => enforcement.close());
  const service = await runApp(enforcement, tokens);
  const { get } = visitor(service.url);
  const create = (
    name: string,
    start: string,
    end: string,
    whose: { user?: string; project?: string } = {},
  ) =>
    service.post('/check-create', {
      context: { user_id: whose.user ?? 'bob', project_id: whose.project ?? 'climate' },
      lease: {
        ...{ name, start_date: start, end_date: end },
        reservations: [{ resource_type: 'physical:host', min: 1, max: 1 }],
      },
    });
  const show = (project: string) => get(`/?${new URLSearchParams({ project })}`);
  return { ...service, connection, clock, get, create, show };
}

async function budgets(connection: string, ...given: Parameters<typeof giveBudget>[1][]) {
  // Before all that is recorded: nothing is given back from before the last entry.
  const ledger = await ledgerAt(connection, { now: () => '2026-01-01T00:00:00Z' });
  for (const budget of given) {
    await giveBudget(ledger, budget);
  }
  await ledger.close();
}

/** Class and place of every bar of the picture with this title. */
function barsOf(html: string, title: string): string[] {
  const [, rest = ''] = html.split(`>${title}</title>`);
  return [...(rest.split('</svg>')[0] ?? '').matchAll(/<rect ([^>]*)>/g)].map(([, attributes = '']) => {
    const value = (name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1];
    return `${value('class')} ${value('x')} ${value('width')}`;
  });
}

describe('of a project the page shows', () => {
  it('how much of each budget is used, to be used by recorded leases, and left', async () => {
    const { connection, clock, create, show } = await serve();
    await budgets(
      connection,
      { amount: '100' },
      { amount: '30.5', userId: 'alice', until: '2027-01-01' },
      { amount: '7', projectId: 'other' },
    );
    await create('begun', '2026-11-21 12:00', '2026-11-22 12:00', { user: 'alice' });
    await create('later', '2026-12-01 00:00', '2026-12-01 10:00');
    clock.text = '2026-11-21T18:00:00Z';
    const { html, text } = await show('climate');
    expect(rowsOf(html, 'Budgets')).toEqual([
      ['Project', '2026-01-01 to 2028-01-01', '100', '6', '28', '66'],
      ['User alice', '2026-01-01 to 2027-01-01', '30.5', '6', '18', '6.5'],
    ]);
    expect(barsOf(html, 'Budget of the project')).toEqual([
      'bar left 0 100%',
      'bar used 0% 6%',
      'bar planned 6% 28%',
    ]);
    expect(text).toContain('66 of 100 node-hours left');
    expect(html).toContain('6 node-hours used, 28 to be used, 66 left of 100; valid 2026-01-01');
  });

  it('a budget that was made smaller than what is taken of it, and where it ends', async () => {
    const { connection, create, show } = await serve();
    await budgets(connection, { amount: '10' });
    await create('all', '2026-12-01 00:00', '2026-12-01 10:00');
    await budgets(connection, { amount: '4' });
    const { html } = await show('climate');
    expect(rowsOf(html, 'Budgets')[0]?.slice(2)).toEqual(['4', '0', '10', '-6']);
    expect(html).toContain('<line x1="40%" x2="40%" y1="0" y2="20" class="limit">');
  });

  it('budgets that are valid now before those to come and those of the past', async () => {
    const { connection, show } = await serve();
    await budgets(
      connection,
      { amount: '1', from: '2025-01-01', until: '2026-01-01' },
      { amount: '2', from: '2026-01-01', until: '2027-01-01' },
      { amount: '3', from: '2027-01-01', until: '2028-01-01' },
    );
    const { html, text } = await show('climate');
    expect(rowsOf(html, 'Budgets').map(([, , amount]) => amount)).toEqual(['2', '3', '1']);
    expect(text).toContain('not valid yet: 2027-01-01 to 2028-01-01');
    expect(text).toContain('not valid any more: 2025-01-01 to 2026-01-01');
  });

  it('its leases on a time line, by their state', async () => {
    const { connection, clock, post, create, show } = await serve();
    await budgets(connection, { amount: '10000' }, { projectId: 'physics', amount: '10000' });
    clock.text = '2026-11-01T00:00:00Z';
    await create('of others', '2026-11-20 00:00', '2026-11-25 00:00', { project: 'physics' });
    await create('ended', '2026-11-02 00:00', '2026-11-03 00:00');
    await create('active', '2026-11-20 00:00', '2026-11-25 00:00', { user: 'alice' });
    await create('pending', '2026-12-01 09:30', '2026-12-02 00:00');
    await create('deleted', '2026-11-10 00:00', '2026-12-10 00:00');
    await create('never begun', '2026-12-01 00:00', '2026-12-02 00:00');
    for (const [name, end, at] of [
      ['never begun', '2026-12-02 00:00', '2026-11-05T00:00:00Z'],
      ['deleted', '2026-12-10 00:00', '2026-11-12T00:00:00Z'],
    ] as const) {
      clock.text = at;
      const start_date = name === 'deleted' ? '2026-11-10 00:00' : '2026-12-01 00:00';
      const context = { user_id: 'bob', project_id: 'climate' };
      await post('/on-end', {
        context,
        lease: {
          id: name,
          name,
          start_date,
          end_date: end,
          reservations: [{ resource_type: 'physical:host', min: 1, max: 1 }],
        },
      });
    }
    clock.text = NOW;
    const { html, text } = await show('climate');
    expect(rowsOf(html, 'Leases')).toEqual([
      ['ended', 'bob', '2026-11-02', '2026-11-03', 'ended'],
      ['deleted deleted', 'bob', '2026-11-10', '2026-11-12', 'ended'],
      ['active', 'alice', '2026-11-20', '2026-11-25', 'active'],
      ['pending', 'bob', '2026-12-01 09:30', '2026-12-02', 'pending'],
    ]);
    expect(barsOf(html, 'Leases on a time line').map((bar) => bar.split(' ')[1])).toEqual([
      'ended',
      'ended',
      'active',
      'pending',
    ]);
    expect(html).toMatch(
      /<svg [^>]*role="img" aria-labelledby="timeline-title timeline-description"><title id="timeline-title">/,
    );
    expect(text).toContain('1 active, 1 pending, 2 ended, 0 refused. The tables below say the same.');
    expect(text).toContain('The 4 nearest to now, of 5 recorded leases.');
    expect(html).toContain('<title>pending: 2026-12-01 09:30 to 2026-12-02, pending</title>');
  });

  it('no more than fifty leases, the nearest to now', async () => {
    const { connection, create, show } = await serve();
    await budgets(connection, { amount: '10000' });
    for (let number = 0; number < 53; number += 1) {
      const day = String(1 + (number % 28)).padStart(2, '0');
      const month = number < 28 ? '12' : '01';
      const date = `${number < 28 ? 2026 : 2027}-${month}-${day}`;
      await create(`lease ${number}`, `${date} 00:00`, `${date} 01:00`);
    }
    const { html, text } = await show('climate');
    expect(rowsOf(html, 'Leases').map(([name]) => name)).toEqual(
      Array.from({ length: 50 }, (_, number) => `lease ${number}`),
    );
    expect(text).toContain('The 50 nearest to now, of 53 recorded leases.');
  });

  it('no more than it can look at: many budgets, many pending leases, many that were recorded', () => {
    const many = Array.from({ length: 23 }, (_, number) => ({
      ...{ id: BigInt(number), projectId: 'climate', userId: `user-${number}` },
      ...{ validFrom: 0n, validUntil: 10n ** 10n, amount: 36n * 10n ** 8n, taken: 0n, left: 36n * 10n ** 8n },
    }));
    const timeline = { now: 10n ** 15n, leases: [], recorded: 10_000, planned: undefined };
    const project = { budgets: many, timeline, refused: [] };
    const html = renderToString(
      h(Ledger, { projectId: 'climate', unit: 'node-hours', shown: { kind: 'project', project } }),
    );
    expect(rowsOf(html, 'Budgets')).toHaveLength(20);
    expect(textOf(html)).toContain('3 more are not shown');
    expect(html).toContain('<th scope="col">Used, or to be used</th><th scope="col">Left (node-hours)</th>');
    const lease = { leaseId: null, name: '', userId: 'u', start: 0n, end: 1n, state: 'ended' as const };
    const drawn = renderToString(h(Timeline, { timeline: { ...timeline, leases: [lease] }, refused: [] }));
    expect(textOf(drawn)).toContain('The 1 nearest to now, of more than 10000 recorded leases.');
  });

  it('what was refused and why, hollow, and nothing of other projects', async () => {
    const { connection, create, show, post } = await serve();
    await budgets(connection, { amount: '5' });
    await create('too dear', '2026-12-01 00:00', '2026-12-02 00:00', { user: 'alice' });
    await create('of others', '2026-12-01 00:00', '2026-12-02 00:00', { project: 'physics' });
    const context = { user_id: 'bob', project_id: 'climate' };
    const reservations = [{ resource_type: 'physical:host', min: 1, max: 1 }];
    const current = { start_date: '2026-12-03 00:00', end_date: '2026-12-03 01:00', reservations };
    for (const lease of [{ end_date: '2026-12-04 00:00' }, { start_date: '2026-12-02 00:00' }]) {
      await post('/check-update', { context, current_lease: { ...current, id: 'B', name: 'longer' }, lease });
    }
    const { html, text } = await show('climate');
    const rejected = '✗ rejected UsageBudgetFilter';
    expect(rowsOf(html, 'Refused leases').map((row) => row.slice(1))).toEqual([
      [
        'bob',
        '2026-12-02 to 2026-12-03 01:00',
        rejected,
        expect.stringContaining('The change would cost 24 '),
      ],
      ['bob', '2026-12-03 to 2026-12-04', rejected, expect.stringContaining('The change would cost 23 ')],
      [
        ...['alice', '2026-12-01 to 2026-12-02', rejected],
        'The lease would cost 24 node-hours; project climate has 5 node-hours left, of a budget that is valid until 2028-01-01T00:00:00Z.',
      ],
    ]);
    expect(barsOf(html, 'Leases on a time line').map((bar) => bar.slice(0, 11))).toEqual([
      'bar refused',
      'bar refused',
      'bar refused',
    ]);
    expect(text).toContain('too dear The lease would cost 24 node-hours; project climate');
    expect(rowsOf(html, 'Leases')).toEqual([]);
  });

  it('that there is nothing, where there is nothing', async () => {
    const { status, text } = await (await serve()).show('nobody');
    expect(status).toBe(200);
    expect(text).toContain('There is none for this project, or for a user in it.');
    expect(text).toContain('Leases There is none.');
  });
});

describe('without a project the page', () => {
  it('links to those that have budgets or leases, the most recently active first', async () => {
    const { connection, create, get, show } = await serve();
    await budgets(connection, { projectId: 'a & "b"', amount: '10' }, { projectId: 'idle', amount: '10' });
    expect((await create('one', '2026-12-01 00:00', '2026-12-01 01:00', { project: 'a & "b"' })).status).toBe(
      204,
    );
    const { html } = await get();
    const [, list = ''] = /aria-label="Projects" class="projects">(.*?)<\/nav>/.exec(html) ?? [];
    expect([...list.matchAll(/href="([^"]*)"/g)].map(([, href]) => href)).toEqual([
      '/?project=a+%26+%22b%22#ledger',
      '/?project=idle#ledger',
    ]);
    expect((await get('/?project=a+%26+%22b%22')).text).toContain('9 of 10 node-hours left');
    expect((await show('')).html).toContain(list);
  });

  it('links to twenty of them at most', async () => {
    const { connection, get } = await serve();
    await budgets(
      connection,
      ...Array.from({ length: 23 }, (_, number) => ({ projectId: `p${number}`, amount: '1' })),
    );
    expect((await get()).html.match(/href="\/\?project=/g)).toHaveLength(20);
  });

  it('says so when there is none', async () => {
    expect((await (await serve()).get()).text).toContain('No project has a budget or a lease.');
  });
});

describe('a project that somebody asks for', () => {
  it('is shown as it is written', async () => {
    const { show } = await serve();
    const hostile = '"><script>alert(1)</script><svg onload=alert(1)>';
    const { status, html, text } = await show(hostile);
    expect(status).toBe(200);
    expect(html).not.toMatch(/<script|<svg onload/);
    expect(text).toContain(hostile);
  });

  it.for(['x'.repeat(256), 'a\u0000b', 'a\nb'])('is refused when it can be none: %j', async (project) => {
    const { show } = await serve();
    const { status, html, text } = await show(project);
    expect(status).toBe(400);
    expect(text).toContain('Expected the id of a project, of at most 255 characters that can be written.');
    expect(html).not.toContain('xxx');
  });

  it('may come twice, or not as a text, or with spaces around', async () => {
    const { connection, get } = await serve();
    await budgets(connection, { amount: '10' });
    for (const query of ['project=climate&project=b', 'project=+climate+', 'a=b&project=climate&&=%zz']) {
      expect((await get(`/?${query}`)).text, query).toContain('10 of 10 node-hours left');
    }
    for (const query of ['project[]=climate', 'project', '%E0%A4%A']) {
      expect((await get(`/?${query}`)).text, query).not.toContain('10 of 10');
    }
  });

  it('is shown to nobody without a token', async () => {
    const { connection, show, get } = await serve(['s3cret']);
    await budgets(connection, { amount: '10' });
    const { status, text } = await show('climate');
    expect(status).toBe(401);
    expect(text).not.toMatch(/climate|node-hours/);
    const { text: seen } = await get('/?project=climate', { 'X-Auth-Token': 's3cret' });
    expect(seen).toContain('10 of 10 node-hours left');
  });
});

describe('the page', () => {
  it('has no budgets and leases where no filter needs a ledger', async () => {
    const { url, post } = await runService();
    await post('/check-create', createLasting(60));
    for (const path of ['/', '/?project=climate']) {
      const { status, html, text } = await visitor(url).get(path);
      expect(status).toBe(200);
      expect(text).not.toContain(SECTION);
      expect(html).not.toMatch(/<svg|name="project"/);
    }
  });

  it('says what budgets are counted in, as the filter does', async () => {
    const connection = await newLedger('sqlite');
    await budgets(connection, { amount: '10' });
    const { url } = await runServiceOn(sources(connection, { usage_budget_unit: 'service units' }));
    const { html, text } = await visitor(url).get('/?project=climate');
    expect(text).toContain('10 of 10 service units left');
    expect(html).toContain('<th scope="col">Left (service units)</th>');
  });

  it('answers and says so when the ledger can not be reached', async () => {
    const { url } = await runServiceOn(sources('postgresql://nobody@127.0.0.1:9/nothing'));
    for (const path of ['/', '/?project=climate']) {
      const { status, text } = await visitor(url).get(path);
      expect(status).toBe(200);
      expect(text).toContain('The ledger cannot be read at the moment.');
      expect(text).toContain('Latest decisions');
    }
  });
});

function sources(connection: string, enforcement: Record<string, string> = {}) {
  return {
    environment: {},
    configFiles: [],
    values: {
      ledger: { connection },
      service: { port: 0 },
      enforcement: { enabled_filters: ['UsageBudgetFilter'], ...enforcement },
    },
  };
}
