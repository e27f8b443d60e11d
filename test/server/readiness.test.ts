import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { openRaw } from '../support/raw-http.ts';
import { runService, runServiceOnFile } from '../support/running-service.ts';

const TOKEN = 's3cret-0123456789abcdef';
const RIGHT = `[enforcement]\nenabled_filters = MaxLeaseDurationFilter\n[service]\nport = 0\ntokens = ${TOKEN}\n`;

describe('GET /readyz', () => {
  it('names every mistake of the last reload until it is mended, and counts what took over', async () => {
    const { request, service, conf, change } = await runServiceOnFile(RIGHT);
    const readyAfter = async (text: string) => {
      await change(text);
      const { status, json } = await request('/readyz');
      return { httpStatus: status, ...(json as object) };
    };
    expect(await readyAfter(`${RIGHT}deadline = never\nbody_limit = 1\n`)).toEqual({
      httpStatus: 503,
      status: 'configuration not valid',
      generation: 1,
      problems: [`${conf}:6: [service] deadline: not valid`, `${conf}:7: [service] body_limit: not valid`],
    });
    // Other mistakes take the place of those before.
    expect(await readyAfter(`${RIGHT}max_queued = -1\n`)).toMatchObject({
      httpStatus: 503,
      problems: [expect.stringContaining(':6: [service] max_queued')],
    });
    const ready = { httpStatus: 200, status: 'ready', problems: [] };
    expect(await readyAfter(RIGHT)).toEqual({ ...ready, generation: 2 });
    // What is only a warning keeps nobody from deciding.
    expect(await readyAfter(`${RIGHT}[enforcement]\nenabled_filters =\n`)).toEqual({
      ...ready,
      generation: 3,
    });
    rmSync(conf);
    await service.reload();
    expect(await request('/readyz')).toMatchObject({ status: 503, json: { generation: 3 } });
  });

  it('asks for no token, and tells no secret', async () => {
    const { request, change, logger } = await runServiceOnFile(RIGHT);
    expect(await request('/readyz')).toMatchObject({ status: 200 });
    await change(RIGHT.replace(TOKEN, `${TOKEN},,n3xt-0123456789abcdef`));
    const { status, text } = await request('/readyz');
    expect(status).toBe(503);
    expect(text).toContain('[service] tokens: not valid');
    expect(text + JSON.stringify(logger.lines)).not.toMatch(/s3cret|n3xt/);
  });

  it('names a mistyped URL by its option, and neither it, the log nor the console repeats the URL', async () => {
    const { request, conf, change, logger } = await runServiceOnFile(RIGHT);
    const isTaken = await change(
      `${RIGHT}reader_tokens = t0ken-of-a-reader
[enforcement]
external_service_base_endpoint = https//policy/PATHKEY?key=QUERYKEY
[keystone]
auth_url = https:/keystone/PATHKEY?key=QUERYKEY
[oidc]
issuer = htps//issuer/PATHKEY?key=QUERYKEY
`,
    );
    expect(isTaken).toBe(false);
    const { json, text } = await request('/readyz');
    expect(json).toMatchObject({
      problems: expect.arrayContaining([
        `${conf}:8: [enforcement] external_service_base_endpoint: not valid`,
        `${conf}:10: [keystone] auth_url: not valid`,
        `${conf}:12: [oidc] issuer: not valid`,
      ]),
    });
    expect(text + JSON.stringify(logger.lines)).not.toMatch(/PATHKEY|QUERYKEY/);
    expect(JSON.stringify(logger.lines)).toContain('[oidc] issuer: expected a URL, got a value that is not');
  });

  it('is answered to HEAD and HTTP/1.0 too, as load balancers ask', async () => {
    const { request, port } = await runService();
    expect(await request('/readyz', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
    const old = await openRaw(port);
    old.socket.write('GET /readyz HTTP/1.0\r\n\r\n');
    await old.end;
    expect(old.statuses()).toEqual([200]);
  });
});
