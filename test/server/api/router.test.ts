import { createServer } from 'node:http';
import Koa from 'koa';
import { expect, it, onTestFinished } from 'vitest';
import { route } from '../../../src/server/api/route.ts';
import { apiRoutes } from '../../../src/server/api/router.ts';
import { tokenCaller } from '../../../src/server/users/caller.ts';
import { UserLimiter } from '../../../src/server/users/user-limiter.ts';
import { listen } from '../../support/listening.ts';
import { withResolvers } from '../../support/with-resolvers.ts';
import { usersByToken } from '../served-generation.ts';

/** A file whose second half comes with `goOn`, and how many requests hold the configuration. */
async function fileInHalves() {
  const held = { count: 0 };
  const { promise: rest, resolve: goOn } = withResolvers();
  const generation = {
    options: { deadline: 10 },
    enter: () => (held.count += 1),
    leave: () => (held.count -= 1),
  };
  const file = route({
    id: 'file',
    method: 'GET',
    path: '/v1/file',
    action: 'list-budgets',
    summary: '',
    description: '',
    answers: [],
    answer: async () => ({
      content: {
        type: 'text/csv',
        text: (async function* () {
          yield 'first,';
          await rest;
          yield 'second';
        })(),
      },
    }),
  });
  const users = usersByToken({ '': tokenCaller('operator', 'operator token') });
  const routes = apiRoutes([file], { users, line: new UserLimiter() });
  const app = new Koa().on('error', () => {});
  app.use((ctx, next) => {
    Object.assign(ctx.state, { generation, requestId: 'req-1' });
    return next();
  });
  const server = createServer(app.use(routes.routes()).callback());
  onTestFinished(() => void server.close());
  return { held, goOn, url: `http://127.0.0.1:${(await listen(server)).port}/v1/file` };
}

it('holds the configuration until a file is sent, so that a reload does not cut it off', async () => {
  const { held, goOn, url } = await fileInHalves();
  const answer = await fetch(url);
  expect(held.count).toBe(1);
  goOn();
  expect(await answer.text()).toBe('first,second');
  await expect.poll(() => held.count).toBe(0);
});

it('holds it no longer than the client is there', async () => {
  const { held, url } = await fileInHalves();
  const leaving = new AbortController();
  await fetch(url, { signal: leaving.signal });
  expect(held.count).toBe(1);
  leaving.abort();
  await expect.poll(() => held.count).toBe(0);
});
