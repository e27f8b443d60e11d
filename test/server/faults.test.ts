import { describe, expect, it } from 'vitest';
import { UsageEnforcement } from '../../src/index.ts';
import { recordingLogger } from '../support/logger.ts';
import { capturedText } from '../support/requests.ts';
import { runApp, runService } from '../support/running-service.ts';

const FITS = capturedText('check-create-physical-host.json');
/** An enforcement with a bug of ours: it throws what no enforcement throws. */
async function brokenEnforcement(thrown: () => unknown): Promise<UsageEnforcement> {
  const enforcement = await UsageEnforcement.load(
    { environment: {}, configFiles: [] },
    { logger: recordingLogger() },
  );
  const fail = () => Promise.reject(thrown());
  return Object.assign(enforcement, { checkCreate: fail, checkUpdate: fail, onEnd: fail });
}

describe('a bug of ours', () => {
  it('gets 500 with a request id and nothing else, and the log has the cause under it', async () => {
    const enforcement = await brokenEnforcement(() => new TypeError('cannot read s3cret of undefined'));
    const { post, logger } = await runApp(enforcement);
    const ids = new Set<string>();
    for (const path of ['/check-create', '/check-update', '/v1/on-end']) {
      const { status, json, text } = await post(path, FITS);
      expect({ status, json }).toEqual({
        status: 500,
        json: { request_id: expect.stringMatching(/^req-[0-9a-f-]{36}$/) },
      });
      expect(text).not.toContain('s3cret');
      const { request_id } = json as { request_id: string };
      ids.add(request_id);
      expect(logger.lines.findLast(({ level }) => level === 'error')).toMatchObject({
        fields: {
          request_id,
          method: 'POST',
          path,
          error: 'cannot read s3cret of undefined',
        },
      });
    }
    expect(ids.size).toBe(3);
  });

  const bare = (fields: object) => () => Object.assign(new Error('s3cret'), fields);
  it.for<[what: string, thrown: () => unknown]>([
    ['an error that says it may be shown', bare({ status: 404, expose: true })],
    ['a text', () => 's3cret'],
    ['null', () => null],
  ])('is no less a bug when what was thrown is %s', async ([, thrown]) => {
    const { post, logger } = await runApp(await brokenEnforcement(thrown));
    const { status, json } = await post('/check-create', FITS);
    expect(status).toBe(500);
    expect(Object.keys(json as object)).toEqual(['request_id']);
    expect(logger.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  });
});

describe('bytes that are no HTTP', () => {
  it('close the connection that they came on, and no other', async () => {
    const { raw, request } = await runService();
    for (const garbage of [
      '\u0000\u0001\u0002\r\n\r\n',
      'hello\r\n\r\n',
      'GET\r\n\r\n',
      '{"context":{}}\r\n\r\n',
    ]) {
      expect(await raw(garbage)).toMatch(/^HTTP\/1\.1 400 /);
    }
    expect(await request('/healthz')).toMatchObject({ status: 200 });
  });
});
