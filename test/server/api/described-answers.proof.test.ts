/** Every answer that /openapi.json describes for the API is given by a real service, and none that it does not. */
import { expect, it, vi } from 'vitest';
import { API_ROUTES } from '../../../src/server/api/routes.ts';
import { UserLimiter } from '../../../src/server/users/user-limiter.ts';
import { expectDescribed } from '../../support/api-answers.ts';
import { leaseDescription } from '../../support/api-description.ts';
import { breakLedger, newLedger, runSql } from '../../support/ledgers.ts';
import { IDS, recordedKeystone } from '../../support/recorded-identities.ts';
import { createLasting } from '../../support/requests.ts';
import { runServiceOf } from '../../support/running-service.ts';
import { ValidatingKeystone } from '../../support/validating-keystone.ts';
import { CLIMATE } from '../users/every-route.ts';
import { bodyOf, type RouteAnswer, type Routes, routesAt } from './route-calls.ts';

const WITH_A_BODY = API_ROUTES.filter(({ body }) => body !== undefined);
type Values = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

async function run(values: Values) {
  const running = await runServiceOf({
    ...values,
    service: {
      operator_tokens: ['op-1-0123456789abcdef'],
      tokens: ['blazar-1-0123456789abcdef'],
      ...values.service,
    },
  });
  return { ...running, ...routesAt(running) };
}

async function runOnLedger(values: Values = {}) {
  const connection = await newLedger();
  const enforcement = {
    enabled_filters: ['UsageBudgetFilter', 'MaxLeasesFilter', 'MaxLeaseDurationFilter'],
    max_leases_per_project: 3,
    max_lease_duration: 172_800,
  };
  const service = { decision_store: 'refused' };
  return { ...(await run({ ...values, service, enforcement, ledger: { connection } })), connection };
}

/** What can be wrong with a request to any route. */
async function mistaken({ call, all, bare }: Routes): Promise<RouteAnswer[]> {
  const answers = [
    ...(await all({ token: '' })),
    ...(await all({ token: 'wrong' })),
    ...(await all({ query: 'nonsense=1' })),
    ...(await all({ as: 'PUT' })),
    ...(await all({ token: 'blazar-1-0123456789abcdef' })),
    ...(await Promise.all(API_ROUTES.map(({ id }) => bare(id, [`X-Long: ${'x'.repeat(20_000)}`])))),
  ];
  for (const { id } of WITH_A_BODY) {
    const mistakes = await Promise.all([
      call(id, { text: { type: 'application/json', text: '{' } }),
      call(id, { body: [] }),
      call(id, { text: { type: 'text/plain', text: '{}' } }),
      call(id, { text: { type: 'application/json; charset=latin1', text: '{}' } }),
      call(id, { headers: { 'Content-Encoding': 'zstd' } }),
      bare(id, ['Content-Type: application/json', 'Content-Length: 8388609']),
    ]);
    answers.push(...mistakes);
  }
  return answers;
}

/** Budgets and leases, and everything that the routes say of them. */
async function fromALedger(): Promise<RouteAnswer[]> {
  const { connection, post, ...routes } = await runOnLedger();
  const { call, all } = routes;
  const answers = await mistaken(routes);
  const take = (answer: RouteAnswer) => {
    answers.push(answer);
    return answer;
  };
  const terms = { reason: 'the grant', amount: '100.5' };
  const climate = { project_id: 'climate' };
  const years = { valid_from: '2020-01-01', valid_until: '2090-01-01T00:00:00Z' };
  const first = take(await call('createBudget', { body: { ...climate, ...years, ...terms } }));
  const budget = { budget_id: first.json.id };
  const seen = { 'If-Match': first.headers.get('ETag') ?? '' };
  for (const body of [
    undefined,
    { ...climate, ...years, ...terms },
    { ...climate, ...years, ...terms, amount: '-1' },
  ]) {
    take(await call('createBudget', { body }));
  }
  const later = { ...climate, valid_from: '2095-01-01', valid_until: '2096-01-01', ...terms };
  take(await call('createBudget', { body: later }));
  const { context, lease } = createLasting(3600, { user_id: 'bob' });
  const hosts = [{ id: 'h', resource_type: 'physical:host', min: 1, max: 1 }];
  for (const its of [{ id: 'known', reservations: hosts }, { id: 'vague' }]) {
    await post(
      '/check-create',
      { context, lease: { ...lease, ...its } },
      { 'X-Auth-Token': 'blazar-1-0123456789abcdef' },
    );
  }
  for (const seconds of [3600, 3600, 864_000]) {
    await post('/check-create', createLasting(seconds), { 'X-Auth-Token': 'blazar-1-0123456789abcdef' });
  }
  for (const call1 of [
    { headers: seen, body: { reason: 'more', amount: 200 } },
    { headers: seen },
    { headers: { 'If-Match': '*' } },
    {},
    { headers: seen, body: { reason: '', amount: 1 } },
    { headers: seen, body: { reason: 'nothing' } },
  ]) {
    take(await call('amendBudget', { params: budget, ...call1 }));
  }
  const now = take(await call('getBudget', { params: budget }));
  const current = { 'If-Match': now.headers.get('ETag') ?? '' };
  take(
    await call('amendBudget', {
      params: budget,
      headers: current,
      body: { valid_until: '2095-06-01', reason: 'x' },
    }),
  );
  for (const removal of [
    { query: 'reason=x', headers: seen },
    { query: 'reason=x' },
    { query: 'reason=+', headers: current },
  ]) {
    take(await call('removeBudget', { params: budget, ...removal }));
  }
  answers.push(...(await requests(call)));
  await Promise.all(
    ['listBudgets', 'listBudgetChanges', 'listBudgetRequests', 'listProjects', 'listLedgerEntries'].flatMap(
      (id) => [
        call(id).then(take),
        call(id, { query: 'limit=1' }).then(take),
        call(id, { query: 'limit=0' }).then(take),
        call(id, { query: 'after=nonsense' }).then(take),
      ],
    ),
  );
  for (const id of ['getProject', 'listProjectLeases', 'getProjectUsage', 'listProjectDecisions']) {
    take(await call(id, { params: { project_id: 'climate' } }));
    take(await call(id, { params: { project_id: 'x'.repeat(256) } }));
  }
  for (const group of ['user', 'resource_type', 'day']) {
    take(await call('getProjectUsage', { params: climate, query: `group_by=${group}` }));
  }
  for (const query of ['by=user', 'by=month&format=csv', 'format=focus', 'by=resource_type', 'by=day']) {
    take(await call('reportUsage', { query }));
  }
  take(await call('listChangesOfBudget', { params: budget }));
  take(await call('listChangesOfBudget'));
  take(await call('listBudgetCharges', { query: 'project_id=climate' }));
  for (const query of [undefined, 'format=json', 'project_id=climate&valid_at=2026-01-01', 'format=xml']) {
    take(await call('exportBudgets', { query }));
  }
  for (const query of ['dry_run=true', 'reason=x', undefined]) {
    take(await call('importBudgets', { query }));
  }
  take(
    await call('importBudgets', { query: 'dry_run=true', text: { type: 'text/csv', text: 'a,b\r\n1,2' } }),
  );
  const example = bodyOf('estimateLease');
  const wanted = { ...example, start_date: '2089-12-20 09:00', end_date: '2089-12-21 09:00', user_id: 'u' };
  for (const body of [wanted, { ...wanted, end_date: '2089-12-30 09:00' }, example]) {
    take(await call('estimateLease', { params: climate, body }));
  }
  for (const lease_id of ['known', 'vague', 'unknown']) {
    const params = { ...climate, lease_id };
    for (const end_date of ['2054-12-02 09:00', '2060-12-22 09:00', 'soon']) {
      take(await call('estimateLeaseChange', { params, body: { end_date } }));
    }
  }
  await expect.poll(async () => (await call('listDecisions')).json.items).toHaveLength(2);
  const decisions = take(await call('listDecisions'));
  for (const { request_id } of decisions.json.items.slice(0, 1)) {
    take(await call('getDecisions', { params: { request_id } }));
  }
  take(await call('getDecisions'));
  take(await call('removeBudget', { params: budget, query: 'reason=over', headers: current }));
  take(await call('removeBudget', { params: budget, query: 'reason=over', headers: current }));
  take(await call('getBudget', { params: budget }));
  take(await call('amendBudget', { params: budget, headers: current }));
  runSql(
    connection,
    `CREATE TEMP TABLE other AS SELECT * FROM leases WHERE id = 1;
    UPDATE leases SET lease_id = 'twice' WHERE id = 1;
    UPDATE other SET id = 1000, lease_id = 'twice', region = 'elsewhere';
    INSERT INTO leases SELECT * FROM other`,
  );
  for (const lease_id of ['#1', 'twice']) {
    take(await call('getProjectLease', { params: { project_id: 'climate', lease_id } }));
  }
  for (const table of ['leases', 'budgets', 'budget_requests', 'decisions']) {
    breakLedger(connection, table);
  }
  return [...answers, ...(await all())];
}

/** Requests for more budget: asked for as often as a project may, and each step that is possible, and is not. */
async function requests(call: Routes['call']): Promise<RouteAnswer[]> {
  const example = { ...bodyOf('requestBudget'), project_id: 'requesting' };
  const answers = [await call('requestBudget', { body: { ...example, amount: '0' } })];
  for (let number = 0; number <= 20; number += 1) {
    answers.push(await call('requestBudget', { body: { ...example, reason: `${number}` } }));
  }
  const ids = answers.map(({ json }) => ({ request_id: json.id ?? '' })).slice(1);
  const steps = ['endorse', 'grant', 'refuse', 'withdraw'].map((kind) => `${kind}BudgetRequest`);
  for (const [index, id] of steps.entries()) {
    const params = ids[index] ?? {};
    answers.push(await call(id, { params, body: { reason: 'x'.repeat(1001) } }), await call(id, { params }));
    answers.push(await call('getBudgetRequest', { params }));
    const settled = ids[id === 'withdrawBudgetRequest' ? 1 : 19] ?? {};
    await call('withdrawBudgetRequest', { params: settled });
    answers.push(await call(id, { params: settled }));
  }
  return answers;
}

/** At the first service, the deadline is over before the requests have arrived. */
async function withoutALedger(): Promise<RouteAnswer[]> {
  const { bare } = await run({ service: { deadline: 1 } });
  const { all } = await run({});
  const halfABody = ['Content-Type: application/json', 'Content-Length: 100'];
  const late = API_ROUTES.map(({ id, body }) =>
    body === undefined ? bare(id, [], '') : bare(id, halfABody, '\r\n{'),
  );
  const needed = ['project_id=climate', 'reason=x', undefined];
  const answers = await Promise.all(late);
  for (const query of needed) {
    answers.push(...(await all({ query, headers: { 'If-Match': '"1"' } })));
  }
  return answers;
}

/** With tokens of Keystone: one without any role here, one that it does not know, and one about which it does not answer. */
async function fromKeystone(): Promise<RouteAnswer[]> {
  const keystone = await ValidatingKeystone.start();
  keystone.tokens.set('gAAAAAB-of-a-stranger', 'other-service').set('gAAAAAB-of-a-member', 'member');
  const { all, call } = await run({
    service: { keystone_auth: true },
    keystone: keystone.account,
    enforcement: { enabled_filters: ['UsageBudgetFilter'] },
    ledger: { connection: await newLedger() },
  });
  const forbidden = await all({ token: 'gAAAAAB-of-a-stranger' });
  const unknown = await all({ token: 'gAAAAAB-unknown' });
  const forAnother = await call('estimateLease', {
    token: 'gAAAAAB-of-a-member',
    params: { project_id: CLIMATE },
    body: { ...bodyOf('estimateLease'), user_id: 'bob' },
  });
  expect(forAnother).toMatchObject({ status: 403, json: { field: 'user_id' } });
  const asMember = { token: 'gAAAAAB-of-a-member', params: { project_id: CLIMATE } };
  const made = await call('makeCalendarLink', asMember);
  const listed = await call('listCalendarLinks', asMember);
  const params = { project_id: CLIMATE, link_id: made.json.link_id };
  const revoked = await call('revokeCalendarLink', { ...asMember, params });
  await keystone.stop();
  return [
    ...forbidden,
    ...unknown,
    forAnother,
    made,
    listed,
    revoked,
    ...(await all({ token: 'gAAAAAB-of-bob' })),
  ];
}

/** Keystone tells names and ids, until it stops. */
async function fromNames(): Promise<RouteAnswer[]> {
  const keystone = await recordedKeystone();
  const { call } = await runOnLedger({ keystone: keystone.options });
  const example = bodyOf('createBudget');
  const lists = [
    'listBudgets',
    'listBudgetChanges',
    'listBudgetRequests',
    'listBudgetCharges',
    'exportBudgets',
    'reportUsage',
    'listLedgerEntries',
  ];
  const listed = (name: string) =>
    Promise.all(lists.map((id) => call(id, { query: `project_id=${encodeURIComponent(name)}` })));
  const given = (project_id: string, user_id: string | null) =>
    call('createBudget', { body: { ...example, project_id, user_id } });
  const answers = [
    await given('climate@Default', IDS.dave),
    await given('nobody@Default', null),
    await call('requestBudget', { body: { ...bodyOf('requestBudget'), project_id: 'climate@Default' } }),
    await call('requestBudget', { body: { ...bodyOf('requestBudget'), project_id: 'nobody@Default' } }),
    ...(await listed('climate@Default')),
    ...(await listed('nobody@Default')),
    await call('getProject', { params: { project_id: IDS.climate } }),
  ];
  const entries = answers.filter(({ id }) => id === 'listLedgerEntries');
  expect(entries.map(({ status }) => status)).toEqual([200, 422]);
  const leasesOf = (user: string) =>
    call('listProjectLeases', { params: { project_id: IDS.climate }, query: `user_id=${user}` });
  const users = { status: 200, contentType: 'application/json', body: { users: [] } };
  keystone.answer('GET /v3/users?name=nobody&domain_id=default', users);
  answers.push(await leasesOf('id-of-one-who-is-gone'), await leasesOf('nobody%40Default'));
  await keystone.stop();
  answers.push(await leasesOf('alice%40Default'));
  expect(answers.slice(-3).map(({ status }) => status)).toEqual([200, 422, 503]);
  return [...answers, ...(await listed('physics@Default')), await given('physics@Default', null)];
}

/** To a wrong token, after many of them from the same address. */
async function fromGuesses(): Promise<RouteAnswer[]> {
  const { all } = await run({ service: { tokens: ['secret-0123456789abcdef'] } });
  const token = 'another';
  await all({ token });
  return all({ token });
}

async function fromAFault(): Promise<RouteAnswer[]> {
  vi.spyOn(UserLimiter.prototype, 'run').mockRejectedValue(new TypeError('a fault'));
  const { all } = await run({});
  const needed = ['project_id=climate', 'reason=x', undefined];
  return (await Promise.all(needed.map((query) => all({ query })))).flat();
}

it('gives every answer that is described, as it is described, and no other', async () => {
  const groups = await Promise.all([
    fromALedger(),
    withoutALedger(),
    fromKeystone(),
    fromNames(),
    fromGuesses(),
  ]);
  const answers = [...groups.flat(), ...(await fromAFault())];
  expectDescribed(leaseDescription, answers, (path) => API_ROUTES.some((one) => one.path === path));
  for (const answer of answers) {
    expect({ ...shown(answer), mistakes: mistakesIn(answer) }).toMatchObject({ mistakes: [] });
  }
});

function shown({ id, status, text }: RouteAnswer) {
  return { id, status, text: text.slice(0, 1000) };
}

/** What every answer of the API has besides what is described of each. */
function mistakesIn({ id, status, headers, json }: RouteAnswer): string[] {
  const own = API_ROUTES.find((one) => one.id === id)?.answers.find((one) => one.status === status);
  // /openapi.json says that objects may have more attributes. Here, none has.
  const parsed = json === undefined ? undefined : own?.schema?.safeParse(json);
  const isKept = ![405, 408, 431].includes(status) && headers.get('Cache-Control') !== 'no-store';
  const isWithoutMessage = json !== undefined && status >= 400 && typeof json.message !== 'string';
  const isList = status === 200 && json?.items !== undefined;
  return [
    ...(parsed?.success === false && own?.otherTypes === undefined ? [parsed.error.message] : []),
    ...(isKept ? ['it may be kept by caches'] : []),
    ...(isWithoutMessage ? ['it has no message'] : []),
    ...(isList && json.next === undefined ? ['it does not say whether there are more'] : []),
  ];
}
