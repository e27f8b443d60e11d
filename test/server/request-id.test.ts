import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { decisionsInFile } from '../support/decision-logs.ts';
import { temporaryFile } from '../support/files.ts';
import { openRaw, postBytes } from '../support/raw-http.ts';
import { CAPTURED_POSTS, capturedText } from '../support/requests.ts';
import { runService } from '../support/running-service.ts';

const FITS = capturedText('check-create-physical-host.json');
const NINE_DAYS = capturedText('check-create-gpu-and-floating-ip.json');
const SENT = 'req-0D5B5D8e-1f4f-4f6e-9a76-00c0ffee0001';
const GIVEN = /^req-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const HEADER = 'X-Openstack-Request-Id';

/** What is no id: it would be the caller's text in our answers and logs. */
const NO_IDS = [
  '',
  SENT.slice(4),
  SENT.slice(0, -1),
  `${SENT}0`,
  SENT.replace('0D5B', 'wxyz'),
  `x ${SENT}`,
  `${SENT}, ${SENT}`,
  `${SENT}\tx`,
  '","allowed":true,"x":"',
  `req-${'0'.repeat(12_000)}`,
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

  it('is ignored when invalid, and appears nowhere', async () => {
    const log = temporaryFile('decisions.jsonl', '');
    const { url, logger, service } = await runService({ service: { decision_log: log } });
    const given: unknown[] = [];
    for (const text of NO_IDS) {
      const [answer] = await once(
        request(`${url}/check-create`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', [HEADER]: text },
        }).end(FITS),
        'response',
      );
      answer.resume();
      given.push(answer.headers['x-openstack-request-id']);
      expect(given.at(-1), text).toMatch(GIVEN);
    }
    await service.close();
    const lines = readFileSync(log, 'utf8');
    expect(decisionsInFile(log).map(({ request_id }) => request_id)).toEqual(given);
    for (const text of NO_IDS.filter((one) => one !== '')) {
      expect(lines + JSON.stringify(logger.lines)).not.toContain(text);
    }
  });

  it('cannot inject a header into the answer', async () => {
    const { port } = await runService();
    for (const end of ['\r\n', '\r\n ', '\n', '\r', '\u0000', '\u0085']) {
      const text = `${SENT}${end}X-Injected: yes`;
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
    const ids: string[] = [];
    for (const [index, [path, body]] of CAPTURED_POSTS.entries()) {
      const id = SENT.slice(0, -1) + index;
      await post(path, body, { [HEADER]: id });
      ids.push(id);
    }
    await service.close();
    const logged = decisionsInFile(log).map(({ request_id }) => request_id);
    expect(logged).toEqual(ids);
  });
});
