/** Lists and errors are alike on all routes of the API, and the errors of Blazar's protocol stay as they were. */
import { STATUS_CODES } from 'node:http';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { API_ROUTES } from '../../../src/server/api/routes.ts';
import { newLedger } from '../../support/ledgers.ts';
import { runServiceOf } from '../../support/running-service.ts';
import { routesAt } from './route-calls.ts';

const namesOf = (query: unknown) => (query instanceof z.ZodObject ? Object.keys(query.shape) : []);
const LISTS = API_ROUTES.filter(({ query }) => namesOf(query).includes('limit'));

async function service() {
  const running = await runServiceOf({
    service: { operator_tokens: ['op-1-0123456789abcdef'], tokens: ['blazar-0123456789abcdef'] },
    ledger: { connection: await newLedger() },
    enforcement: { enabled_filters: ['UsageBudgetFilter'] },
  });
  return { ...running, ...routesAt(running) };
}

const typeOf = ({ headers }: { readonly headers: Headers }) => headers.get('Content-Type');

it('lists take the same parameters for pages and times, and refuse the same', async () => {
  expect(LISTS.length).toBeGreaterThan(8);
  const { call } = await service();
  for (const { id, query } of LISTS) {
    const names = namesOf(query);
    expect({ id, names }).toMatchObject({ names: expect.arrayContaining(['limit', 'after']) });
    expect({ id, hasBoth: names.includes('from') === names.includes('until') }).toMatchObject({
      hasBoth: true,
    });
    const more = names.includes('project_id') ? 'project_id=x&' : '';
    for (const [sent, field] of [
      ...[0, 1001, 'x', -1, '', '1e2'].map((limit) => [`limit=${limit}`, 'limit']),
      ['nonsense=1', 'nonsense'],
      ['limit=1&limit=2', 'limit'],
      ...(names.includes('from') ? [['from=2026-01-02&until=2026-01-01', 'until']] : []),
    ]) {
      const { status, json } = await call(id, { query: `${more}${sent}` });
      expect({ id, sent, status, json }).toMatchObject({ status: 400, json: { field } });
    }
  }
});

it('every error of the API is a problem of RFC 9457, as JSON unless the client names its type', async () => {
  const { url, all, call, post } = await service();
  const answers = [
    ...(await all({ token: '' })),
    ...(await all({ token: 'blazar-0123456789abcdef' })),
    ...(await all({ query: 'nonsense=1' })),
    ...(await all({ as: 'PUT' })),
    await call('getBudget', { params: { budget_id: '77' } }),
    await call('createBudget', { text: { type: 'text/plain', text: '{}' } }),
    await call('createBudget', { text: { type: 'application/json', text: '{' } }),
    await call('importBudgets', { text: { type: 'text/csv', text: 'nonsense\n' } }),
  ].filter(({ status }) => status >= 400);
  for (const { id, text, status, json, ...answer } of answers) {
    expect({ id, status, json, type: typeOf(answer) }).toEqual({
      id,
      status,
      type: 'application/json; charset=utf-8',
      json: expect.objectContaining({
        type: 'about:blank',
        title: STATUS_CODES[status],
        status,
        detail: json.message,
        message: expect.stringMatching(/./),
      }),
    });
  }
  expect([...new Set(answers.map(({ status }) => status))].sort()).toEqual([
    400, 401, 403, 404, 405, 415, 422,
  ]);
  for (const [accept, type] of [
    ['application/json, application/problem+json', 'application/problem+json'],
    ['application/problem+json;q=0.5', 'application/problem+json'],
    ['*/*', 'application/json; charset=utf-8'],
    ['application/problem+jsonx', 'application/json; charset=utf-8'],
    ['application/json', 'application/json; charset=utf-8'],
  ] as const) {
    for (const path of ['/v1/budgets', '/v1/nothing']) {
      const answer = await fetch(`${url}${path}`, { headers: { Accept: accept } });
      expect({ accept, type: typeOf(answer) }).toEqual({ accept, type });
      expect(await answer.json()).toMatchObject({ status: answer.status });
    }
  }
  const headers = { 'X-Auth-Token': 'op-1-0123456789abcdef', Accept: 'application/problem+json' };
  const listed = await fetch(`${url}/v1/budgets`, { headers });
  expect({ status: listed.status, type: typeOf(listed) }).toEqual({
    status: 200,
    type: 'application/json; charset=utf-8',
  });
  // The protocol of Blazar is next to it.
  for (const path of ['/check-create', '/v1/check-create', '/v1/on-end', '/nothing']) {
    const accepting = { Accept: 'application/problem+json' };
    for (const answer of [
      await post(path, {}, accepting),
      await post(path, {}, { ...accepting, 'X-Auth-Token': 'blazar-0123456789abcdef' }),
      await fetch(`${url}${path}`, { headers: accepting }),
    ]) {
      const body = JSON.parse(
        'text' in answer && typeof answer.text === 'string' ? answer.text : await (answer as Response).text(),
      );
      expect({ path, type: typeOf(answer), names: Object.keys(body) }).toEqual({
        path,
        type: 'application/json; charset=utf-8',
        names: body.field === undefined ? ['message'] : ['message', 'field'],
      });
    }
  }
});
