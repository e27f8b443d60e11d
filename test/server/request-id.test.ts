import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { UsageEnforcement } from '../../src/index.ts';
import { decisionsInFile } from '../support/decision-logs.ts';
import { temporaryFile } from '../support/files.ts';
import { filterSource } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { openRaw, postBytes } from '../support/raw-http.ts';
import { capturedText } from '../support/requests.ts';
import { runApp, runService } from '../support/running-service.ts';

const FITS = capturedText('check-create-physical-host.json');
const NINE_DAYS = capturedText('check-create-gpu-and-floating-ip.json');
const SENT = 'req-0D5B5D8e-1f4f-4f6e-9a76-00c0ffee0001';
const GIVEN = /^req-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const HEADER = 'X-Openstack-Request-Id';

/** What is no id: it would be the caller's text in our answers and logs. */
const NO_IDS: readonly [what: string, text: string][] = [
  ['empty', ''],
  ['a word', 'some-word'],
  ['a UUID alone', SENT.slice(4)],
  ['too short', SENT.slice(0, -1)],
  ['too long', `${SENT}0`],
  ['other letters', SENT.replace('0D5B', 'wxyz')],
  ['something behind', `${SENT} x`],
  ['something before', `x ${SENT}`],
  ['two', `${SENT}, ${SENT}`],
  ['a header behind it', `${SENT}; Set-Cookie: a=b`],
  ['a tab', `${SENT}\tx`],
  ['markup', '<script>alert(1)</script>'],
  ['a line of a log', '","allowed":true,"x":"'],
  ['huge', `req-${'0'.repeat(12_000)}`],
];

describe('X-Openstack-Request-Id', () => {
  it('is in every answer, whatever its status', async () => {
    const { request: send, post } = await runService({
      service: { tokens: ['s3cret-0123456789abcdef'], body_limit: 1_048_576 },
    });
    const headers = { [HEADER]: SENT, 'X-Auth-Token': 's3cret-0123456789abcdef' };
    const answers = [
      await post('/check-create', FITS, headers),
      await post('/v1/check-create', NINE_DAYS, headers),
      await post('/on-end', FITS, headers),
      await post('/check-create', '{', headers),
      await post('/check-create', FITS, { [HEADER]: SENT }),
      await post('/check-create', ' '.repeat(1_048_577), headers),
      await post('/check-create', FITS, { ...headers, 'Content-Type': 'text/plain' }),
      await send('/nowhere', { headers }),
      await send('/check-create', { headers }),
      await send('/check-create', { method: 'OPTIONS', headers }),
      await send('/healthz', { headers }),
      await send('/readyz', { headers }),
      await send('/metrics', { headers }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([
      204, 403, 204, 400, 401, 413, 415, 404, 405, 200, 200, 200, 200,
    ]);
    expect(answers.map((answer) => answer.headers.get(HEADER))).toEqual(answers.map(() => SENT));
  });

  it('is generated for each request without one', async () => {
    const { post } = await runService();
    const ids = new Set<string | null>();
    for (let count = 0; count < 20; count += 1) {
      ids.add((await post('/check-create', FITS)).headers.get(HEADER));
    }
    expect(ids.size).toBe(20);
    for (const id of ids) {
      expect(id).toMatch(GIVEN);
    }
  });

  it.for(NO_IDS)('is ignored when invalid, and appears nowhere: %s', async ([, text]) => {
    const log = temporaryFile('decisions.jsonl', '');
    const { url, logger, service } = await runService({ service: { decision_log: log } });
    const given = await new Promise((resolve, reject) => {
      request(`${url}/check-create`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', [HEADER]: text },
      })
        .on('response', (answer) => {
          answer.resume();
          resolve(answer.headers['x-openstack-request-id']);
        })
        .on('error', reject)
        .end(FITS);
    });
    expect(given).toMatch(GIVEN);
    await service.close();
    const [line = '', ...others] = readFileSync(log, 'utf8').trimEnd().split('\n');
    expect(others).toEqual([]);
    expect(JSON.parse(line)).toMatchObject({ request_id: given });
    if (text !== '') {
      expect(line + JSON.stringify(logger.lines)).not.toContain(text);
    }
  });

  it('cannot inject a header into the answer', async () => {
    const { port } = await runService();
    for (const text of [
      `${SENT}\r\nX-Injected: yes`,
      `${SENT}\r\n X-Injected: yes`,
      `${SENT}\nX-Injected: yes`,
      `${SENT}\rX-Injected: yes`,
      `${SENT}\u0000X-Injected: yes`,
      `${SENT}\u0085X-Injected: yes`,
    ]) {
      const connection = await openRaw(port);
      connection.socket.write(
        postBytes('/check-create', FITS, `${HEADER}: ${text}\r\nConnection: close\r\n`),
      );
      await connection.end;
      expect(connection.statuses()).toHaveLength(1);
      expect(connection.received()).not.toMatch(/injected/i);
    }
  });

  it('is ignored when sent twice', async () => {
    const { port } = await runService();
    const connection = await openRaw(port);
    const twice = `${HEADER}: ${SENT}\r\n`.repeat(2);
    connection.socket.write(postBytes('/check-create', FITS, `${twice}Connection: close\r\n`));
    await connection.end;
    expect(connection.received()).not.toContain(SENT);
    expect(connection.received()).toMatch(/^X-Openstack-Request-Id: req-\S{36}\r$/m);
  });

  it('is in the decision log, for every kind of decision', async () => {
    const log = temporaryFile('decisions.jsonl', '');
    const { post, service } = await runService({ service: { decision_log: log } });
    const bodies = {
      '/check-create': NINE_DAYS,
      '/v1/check-update': capturedText('check-update-extend.json'),
      '/commit-create': FITS,
      '/v1/commit-update': capturedText('check-update-extend.json'),
      '/on-end': FITS,
    };
    const ids: string[] = [];
    for (const [index, [path, body]] of Object.entries(bodies).entries()) {
      const id = SENT.slice(0, -1) + index;
      await post(path, body, { [HEADER]: id });
      ids.push(id);
    }
    await service.close();
    const logged = decisionsInFile(log).map(({ request_id }) => request_id);
    expect(logged).toEqual(ids);
  });

  it('is in the log of a filter that failed, for every operation', async () => {
    const fail = "throw new Error('broken');";
    const { post, logger } = await runService({
      filters: {
        'broken-filter.js': filterSource('BrokenFilter', { create: fail, update: fail, end: fail }),
      },
      enforcement: { enabled_filters: ['BrokenFilter'], max_lease_duration: undefined },
    });
    const headers = { [HEADER]: SENT };
    await post('/check-create', FITS, headers);
    await post('/check-update', capturedText('check-update-extend.json'), headers);
    await post('/on-end', FITS, headers);
    expect(logger.lines.filter(({ level }) => level === 'error')).toMatchObject(
      Array(3).fill({ message: 'filter failed', fields: { request_id: SENT, error: 'broken' } }),
    );
  });

  it('is in the log of an internal error', async () => {
    const enforcement = await UsageEnforcement.load(
      { environment: {}, configFiles: [] },
      { logger: recordingLogger() },
    );
    vi.spyOn(enforcement, 'checkCreate').mockRejectedValue(new Error('broken'));
    const { post, logger } = await runApp(enforcement);
    const { status, json, headers } = await post('/check-create', FITS, { [HEADER]: SENT });
    expect({ status, json, id: headers.get(HEADER) }).toEqual({
      status: 500,
      json: { request_id: SENT },
      id: SENT,
    });
    expect(logger.lines.filter(({ level }) => level === 'error')).toMatchObject([
      { message: 'request failed', fields: { request_id: SENT } },
    ]);
  });
});
