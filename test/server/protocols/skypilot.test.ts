/** What SkyPilot is answered. Source: SkyPilot docs, "Admin Policy Enforcement", and the requests of SkyPilot 0.13. */
import { describe, expect, it } from 'vitest';
import { postBytes } from '../../support/raw-http.ts';
import { body, FAILED, inside, wireBody } from '../../support/skypilot.ts';
import { PATH, runSkypilot } from '../../support/skypilot-service.ts';

const LABEL = `task.resources = { ...task.resources, labels: { ...task.resources?.labels, reviewed: 'yes' } };
  config.setNested(['kubernetes', 'custom_metadata', 'labels', 'reviewed'], 'yes');`;

describe('an allowed request', () => {
  it('gets a JSON string with two YAML texts', async () => {
    const { ask } = await runSkypilot({ LabelPolicy: LABEL });
    const { status, text, headers } = await ask(wireBody('launch-server'));
    expect(status).toBe(200);
    expect(headers.get('Content-Type')).toBe('application/json; charset=utf-8');
    expect(headers.get('X-Enforcement-Generation')).toBe('1');
    expect(headers.get('X-Openstack-Request-Id')).toMatch(/^req-/);
    expect(JSON.parse(text)).toBeTypeOf('string');
    const answer = inside(text);
    expect(Object.entries(answer).map(([name, value]) => [name, typeof value])).toEqual([
      ['task', 'string'],
      ['skypilot_config', 'string'],
    ]);
    expect(answer.task).toContain('    approved: \'yes\'\n    reviewed: "yes"\n');
  });

  it('is returned unchanged if no policy changes it', async () => {
    const { ask } = await runSkypilot({ IdlePolicy: '' });
    for (const name of ['launch-client', 'launch-server', 'validate-server', 'jobs-launch-server']) {
      const { task, skypilot_config } = inside(wireBody(name));
      const { status, text } = await ask(wireBody(name));
      expect({ name, status, answer: inside(text) }).toEqual({
        name,
        status: 200,
        answer: { task, skypilot_config },
      });
    }
  });
});

describe('a rejected request', () => {
  it('gets 400 and the reason as plain text', async () => {
    const { ask } = await runSkypilot({ RejectingPolicy: 'throw new PolicyRejected(task.run);' });
    for (const reason of ['größer als 8 · 大', 'two\nlines', '{"a": 1}', '<b>no</b>']) {
      const { status, text, headers } = await ask({ task: `run: ${JSON.stringify(reason)}` });
      expect({ status, text, type: headers.get('Content-Type') }).toEqual({
        status: 400,
        text: reason,
        type: 'text/plain; charset=utf-8',
      });
    }
  });
});

describe('a request at which a policy fails', () => {
  const WAYS = [
    "throw new Error('the cause, with a s3cret');",
    'return 7;',
    'task.at = new (class S3cret {})();',
    'task.list = Array.from({ length: 300_000 }, () => 1);',
  ];

  it('gets 500, a generic message and the request id', async () => {
    const { ask, logger } = await runSkypilot({
      BrokenPolicy: WAYS.map((way, index) => `if (task.run === ${index}) { ${way} }`).join('\n'),
    });
    for (const run of WAYS.keys()) {
      const { status, json, headers, text } = await ask({ task: `run: ${run}\n` });
      const request_id = headers.get('X-Openstack-Request-Id');
      expect({ status, json }, WAYS[run]).toMatchObject({
        status: 500,
        json: { message: FAILED, request_id },
      });
      expect(text).not.toMatch(/s3cret|cause/i);
      const fields = { request_id, policy: 'BrokenPolicy', stack: expect.any(String) };
      expect(logger.lines.at(-1)).toMatchObject({ level: 'error', fields, message: 'policy failed' });
    }
  });
});

describe('an invalid request', () => {
  const NO_REQUESTS = [
    ['no JSON', '{', /^expected a body in JSON$/],
    ['a text that is no JSON', '"s3cret"', /^the body: expected JSON in the JSON string$/],
    ['a task that is no YAML', body({ task: 's3cret: [' }), /^task: expected YAML, and line 1: /],
  ] as const;

  it('gets 422, and never a rejection', async () => {
    const { ask } = await runSkypilot({ IdlePolicy: '' });
    for (const [what, text, message] of NO_REQUESTS) {
      const { status, json, text: sent } = await ask(text);
      expect({ status, json }, what).toMatchObject({
        status: 422,
        json: { message: expect.stringMatching(message) },
      });
      expect(sent).not.toContain('s3cret');
    }
  });

  it('gets 415 if its type is not JSON, and 413 if it is too long', async () => {
    const { post, ask } = await runSkypilot({ IdlePolicy: '' }, { service: { body_limit: 2000 } });
    expect(await post(PATH, body(), { 'Content-Type': 'text/plain' })).toMatchObject({ status: 415 });
    expect(await ask({ task: `run: ${'x'.repeat(3000)}` })).toMatchObject({
      status: 413,
      json: { message: 'expected a body of at most 2000 bytes' },
    });
    expect((await ask()).status).toBe(200);
  });
});

describe('the path', () => {
  it('is the configured one, with an optional trailing slash', async () => {
    const { post } = await runSkypilot({ IdlePolicy: '' }, { skypilot: { path: '/sky/check.v1' } });
    for (const path of ['/sky/check.v1', '/sky/check.v1/']) {
      expect((await post(path, body())).status, path).toBe(200);
    }
    for (const other of [PATH, '/sky/check.v1//', '/Sky/check.v1', '/sky/check_v1', '/v1/sky/check.v1']) {
      expect((await post(other, body())).status, other).toBe(404);
    }
  });

  it('never redirects', async () => {
    const { raw } = await runSkypilot({ IdlePolicy: '' });
    const targets = [`${PATH}/`, `/${PATH}`, `${PATH}//`, `${PATH}?`, `${PATH}/..`, `${PATH}%2f`];
    const answers = await Promise.all(
      targets.map((target) => raw(postBytes(target, body(), 'Connection: close\r\n'))),
    );
    for (const [index, answer] of answers.entries()) {
      expect(answer, targets[index]).toMatch(/^HTTP\/1\.1 (200|400|404) /);
      expect(answer, targets[index]).not.toMatch(/^location:/im);
    }
  });
});

describe('the token', () => {
  const TOKEN = 'the~token.of_SkyPilot-0417';
  const run = () =>
    runSkypilot({ IdlePolicy: '' }, { skypilot: { tokens: [TOKEN, 'second-0123456789abcdef'] } });

  const RIGHT = [`?workspace=a&token=${TOKEN}`, '?token=%73econd-0123456789abcdef'];
  const WRONG = [
    '',
    '?token=',
    '?token=toString',
    '?token=%E0%A4%A',
    `?token=${TOKEN}x`,
    `?Token=${TOKEN}`,
    `?token[]=${TOKEN}`,
    `?token=${TOKEN}&token=${TOKEN}`,
    `?__proto__=${TOKEN}`,
  ];

  it('as a query parameter must occur once and be right', async () => {
    const { ask } = await run();
    for (const query of RIGHT) {
      expect((await ask({}, query)).status, query).toBe(200);
    }
    const message = 'expected a valid token as the password, or as the query parameter token';
    for (const query of WRONG) {
      expect(await ask({}, query), query).toMatchObject({ status: 401, json: { message } });
    }
    expect((await ask('{', '?token=wrong')).status, 'before the body').toBe(401);
  });

  it('is not that of leases, and not accepted in other headers', async () => {
    const { post } = await runSkypilot(
      { IdlePolicy: '' },
      { skypilot: { tokens: [TOKEN] }, service: { tokens: ['of-leases-0123456789abcdef'] } },
    );
    expect((await post(`${PATH}?token=of-leases-0123456789abcdef`, body())).status).toBe(401);
    expect((await post(PATH, body(), { 'X-Auth-Token': 'of-leases-0123456789abcdef' })).status).toBe(401);
    expect(
      (await post(PATH, body(), { 'X-Auth-Token': TOKEN, Authorization: `Bearer ${TOKEN}` })).status,
    ).toBe(401);
    expect((await post(`/check-create?token=${TOKEN}`, {}, {})).status).toBe(401);
    expect((await post('/check-create', {}, { 'X-Auth-Token': TOKEN })).status).toBe(401);
  });

  it('is not required if none is set', async () => {
    const { ask } = await runSkypilot(
      { IdlePolicy: '' },
      { service: { tokens: ['of-leases-0123456789abcdef'] } },
    );
    expect((await ask({}, '?token=anything')).status).toBe(200);
  });
});
