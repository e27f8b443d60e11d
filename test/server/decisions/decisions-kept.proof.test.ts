/** Each decision of a real service is in its log and its metrics, with what the pages promise. */
import { existsSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { OverloadedError } from '../../../src/base/concurrency-limiter.ts';
import { waitFor } from '../../../src/base/deadline.ts';
import { DecisionLog } from '../../../src/decisions/log.ts';
import type { DecisionRecord } from '../../../src/decisions/record.ts';
import { UsageEnforcement } from '../../../src/index.ts';
import { aRecord, decisionsInFile, namedPipe, openPipe } from '../../support/decision-logs.ts';
import { temporaryFile, valuesOnly } from '../../support/files.ts';
import { filterSource, temporaryFolder } from '../../support/filter-folder.ts';
import { flood } from '../../support/load.ts';
import { recordingLogger } from '../../support/logger.ts';
import { policyServer } from '../../support/policy-server.ts';
import { createLasting, createPhysicalHost, endActive } from '../../support/requests.ts';
import { runApp, runService } from '../../support/running-service.ts';
import { readSamples, type Samples, samplesOf } from '../../support/samples.ts';

const logFile = () => join(temporaryFolder(), 'decisions.jsonl');

/** A service whose log is looked at when it has been closed. */
async function runLogged(options: Parameters<typeof runService>[0] = {}) {
  const file = logFile();
  const running = await runService({ ...options, service: { decision_log: file, ...options.service } });
  const decisions = async () => {
    await running.service.close();
    return decisionsInFile(file);
  };
  return { ...running, file, decisions };
}

const sum = (samples: Samples) => Object.values(samples).reduce((total, value) => total + value, 0);

describe('the log of a service', () => {
  it('loses no decision when the file is moved away again and again, and the service told', async () => {
    const { port, service, file, decisions, url } = await runLogged();
    let answered = 0;
    let stopped = false;
    const asking = (async () => {
      while (!stopped) {
        const statuses = await flood(port, 40, 4);
        answered += statuses['204'] ?? 0;
      }
    })();
    const moved: string[] = [];
    for (let rotation = 0; rotation < 5; rotation += 1) {
      await expect.poll(() => existsSync(file)).toBe(true);
      renameSync(file, `${file}.${rotation}`);
      moved.push(`${file}.${rotation}`);
      expect(await service.reload()).toBe(true);
    }
    stopped = true;
    await asking;
    const samples = await readSamples(url);
    const log: DecisionRecord[] = [...(await decisions()), ...moved.flatMap(decisionsInFile)];
    expect(answered).toBeGreaterThan(0);
    expect(log).toHaveLength(answered);
    expect(sum(samplesOf(samples, 'decisions_total'))).toBe(answered);
    expect(new Set(log.map(({ request_id }) => request_id)).size).toBe(answered);
  });
});

/** Writes until there is no room any more. Returns how many it took. */
async function fill(log: DecisionLog): Promise<number> {
  for (let taken = 0; ; taken += 1) {
    try {
      await log.write(aRecord(), waitFor(AbortSignal.timeout(2000)));
    } catch (thrown) {
      expect(thrown).toBeInstanceOf(OverloadedError);
      return taken;
    }
  }
}

describe('a log that can’t be written', () => {
  it('keeps nobody waiting, and is tried again: a disk that is full', async () => {
    const { post, url, logger, service } = await runService({
      service: { decision_log: '/dev/full', shutdown_grace: 1 },
    });
    expect((await post('/check-create', createLasting(60))).status).toBe(204);
    await expect.poll(async () => (await readSamples(url)).decision_log_errors_total).toBeGreaterThan(1);
    expect((await post('/check-create', createLasting(864_000))).status).toBe(403);
    expect(logger.lines.filter(({ message }) => message.includes('decision log'))).toEqual([
      expect.objectContaining({
        level: 'error',
        message: 'the decision log could not be written',
        fields: { file: '/dev/full', error: 'the disk is full' },
      }),
    ]);
    expect((await readSamples(url)).decision_log_dropped_total).toBe(0);
    await service.close();
    expect(logger.lines.at(-1)).toMatchObject({
      message: 'the end of the decision log was not written',
      fields: { decisions: 2 },
    });
  });

  it('lets no decision pass unlogged where it is to block: 503 past the deadline, and all goes on when it is read', async () => {
    const pipe = namedPipe();
    const heard = openPipe(pipe);
    let dropped = 0;
    const log = new DecisionLog({ destination: pipe, whenFull: 'block' }, recordingLogger(), {
      dropped: (count) => {
        dropped += count;
      },
      failed: () => {},
    });
    onTestFinished(() => log.close(0));
    const enforcement = await UsageEnforcement.load(
      valuesOnly({
        enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: 172_800 },
      }),
    );
    const { post, url } = await runApp(enforcement, [], { log, deadline: 5 });
    const before = await fill(log);
    const asked = vi.spyOn(enforcement, 'checkCreate');

    const late = await Promise.all([
      post('/check-create', createLasting(60)),
      // The rejected are told no sooner than the allowed.
      post('/check-create', createLasting(864_000)),
      post('/on-end', endActive()),
    ]);
    for (const { status, headers, json } of late) {
      expect([status, headers.get('Retry-After'), json]).toEqual([
        503,
        '1',
        { message: 'The decision could not be logged in time. Please try again.' },
      ]);
    }
    // What is recorded then would stay: the lease is not created.
    expect(asked).not.toHaveBeenCalled();
    const samples = await readSamples(url);
    expect(samples.overload_refusals_total).toBe(3);
    expect(samplesOf(samples, 'decisions_total')).toEqual({});

    const waiting = [createLasting(60), createLasting(864_000)].map((body) => post('/check-create', body));
    const read = heard.read();
    const answers = await Promise.all(waiting);
    expect(answers.map(({ status }) => status)).toEqual([204, 403]);
    await expect.poll(() => read.text.split('\n').length - 1).toBe(before + 2);
    expect(sum(samplesOf(await readSamples(url), 'decisions_total'))).toBe(2);
    expect(dropped).toBe(0);
  });
});

describe('secrets', () => {
  const SECRETS = {
    accepted: 'accepted-t0ken-of-the-service',
    fromFile: 'accepted-t0ken-from-a-file',
    wrong: 'wr0ng-token-that-somebody-sent',
    external: 'external-t0ken-sent-as-header',
    bearer: 'bearer-t0ken-sent-as-header',
    url: 'passw0rd-in-a-url',
  };

  it('stand in no line of either log and in no metric, whatever an external service sends back', async () => {
    const echo = () => `You sent ${SECRETS.external} and Bearer ${SECRETS.bearer}, ${SECRETS.external}!`;
    const external = await policyServer((_, response) => {
      response.writeHead(403, { 'X-Echo': SECRETS.external, 'Set-Cookie': `t=${SECRETS.bearer}` });
      response.end(JSON.stringify({ message: echo(), detail: echo() }));
    });
    const running = await runLogged({
      enforcement: {
        enabled_filters: ['ExternalServiceFilter', 'CredentialsFilter'],
        max_lease_duration: undefined,
        external_service_base_endpoint: external.url,
        external_service_token: SECRETS.external,
        external_service_bearer_token: SECRETS.bearer,
        external_service_breaker_failures: 0,
      },
      filters: {
        // Calls an address that somebody has put a password into.
        'credentials-filter.js': filterSource('CredentialsFilter', {
          create: `return this.services.http
            .createClient({ timeout: 1, connectRetries: 0, breakerFailures: 0, breakerCooldown: 1 })
            .postJson('http://user:${SECRETS.url}@127.0.0.1:1/', '{}').then(() => allow());`,
        }),
      },
      service: {
        tokens: [SECRETS.accepted],
        tokens_file: temporaryFile('tokens', `# further ones\n${SECRETS.fromFile}\n`),
      },
    });
    const ask = async (token: string) =>
      running.post('/check-create', createPhysicalHost(), { 'X-Auth-Token': token });
    const answers = [await ask(SECRETS.accepted), await ask(SECRETS.fromFile), await ask(SECRETS.wrong)];
    const bodies: [number, string][] = [
      [500, echo()],
      [403, echo()],
      [403, JSON.stringify({ message: { nested: echo() } })],
      [200, JSON.stringify({ message: echo() })],
      [403, JSON.stringify({ message: `\u0000${echo()}\u001b[2J` })],
      // Where the message is shortened stands a token.
      [403, JSON.stringify({ message: 'x'.repeat(1980) + SECRETS.external })],
      [204, ''],
    ];
    for (const [status, body] of bodies) {
      external.answer = { status, body };
      answers.push(await ask(SECRETS.accepted));
    }
    external.answer = (request) => void request.socket.destroy(new Error(echo()));
    answers.push(await ask(SECRETS.accepted));
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 401, ...Array(8).fill(403)]);
    expect(external.requests[0]?.headers['x-auth-token']).toBe(SECRETS.external);

    const metrics = (await running.request('/metrics')).text;
    await running.service.reload();
    const log = await running.decisions();
    expect(log).toHaveLength(10);
    expect(log[0]?.message).toContain('You sent **** and Bearer ****');
    const written = {
      'decision log': readFileSync(running.file, 'utf8'),
      log: JSON.stringify(running.logger.lines),
      metrics,
      answers: answers.map(({ text, headers }) => text + JSON.stringify([...headers])).join('\n'),
    };
    expect(written.log).toContain('user name or password');
    for (const [place, text] of Object.entries(written)) {
      for (const secret of Object.values(SECRETS)) {
        expect(text, place).not.toContain(secret);
      }
      expect(text, place).not.toContain(SECRETS.external.slice(0, 12));
    }
  });
});
