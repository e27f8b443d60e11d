import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { decisionsInFile } from '../support/decision-logs.ts';
import { temporaryFile } from '../support/files.ts';
import { filterSource } from '../support/filter-folder.ts';
import { openRaw, postBytes } from '../support/raw-http.ts';
import { capturedText, createLasting } from '../support/requests.ts';
import { errorsOf, figures, runService, type ServiceOptions } from '../support/running-service.ts';

const FITS = capturedText('check-create-physical-host.json');
const REFUSED = 'The lease could not be checked. Please try again later, or ask the operator.';

const lasting = (project_id: string) => JSON.stringify(createLasting(60, { project_id }));

/** A filter that tells which projects it is asked about, and answers them when `let_in` is called. */
async function runGate(service: ServiceOptions['service'], log?: string) {
  const asked: string[] = [];
  const gates = new Map<string, () => void>();
  vi.stubGlobal('gate', (project: string) => {
    asked.push(project);
    return new Promise<void>((open) => gates.set(project, open));
  });
  onTestFinished(() => {
    for (const open of gates.values()) {
      open();
    }
  });
  const running = await runService({
    filters: {
      'gate-filter.js': filterSource('GateFilter', {
        create: 'return gate(context.project_id).then(() => allow());',
      }),
    },
    enforcement: { enabled_filters: ['GateFilter'], max_lease_duration: undefined },
    service: { ...service, ...(log && { decision_log: log }) },
  });
  return { ...running, asked, answer: (project: string) => gates.get(project)?.() };
}

describe('body_limit', () => {
  it('is the longest body that is judged, compressed and uncompressed', async () => {
    const { post } = await runService({ service: { body_limit: 2048 } });
    const fits = lasting('climate').padEnd(2048);
    const more = lasting('climate').padEnd(2049);
    expect(await post('/check-create', fits)).toMatchObject({ status: 204 });
    const tooLong = { status: 413, json: { message: 'expected a body of at most 2048 bytes' } };
    expect(await post('/check-create', more)).toMatchObject(tooLong);
    const headers = { 'Content-Encoding': 'gzip' };
    expect(await post('/check-create', gzipSync(fits), headers)).toMatchObject({ status: 204 });
    expect(await post('/check-create', gzipSync(more), headers)).toMatchObject(tooLong);
  });
});

describe('max_concurrent and max_queued', () => {
  it('limit the running and queued decisions, in order; further requests get 503 at once', async () => {
    const log = temporaryFile('decisions.jsonl', '');
    const running = await runGate({ max_concurrent: 2, max_queued: 2 }, log);
    const { post, asked, answer } = running;
    const projects = ['a', 'b', 'c', 'd'];
    const answers: Promise<{ status: number }>[] = [];
    for (const [index, project] of projects.entries()) {
      answers.push(post('/check-create', lasting(project)));
      await expect
        .poll(async () => {
          const { underWay, queued } = await figures(running);
          return underWay + queued;
        })
        .toBe(index + 1);
    }
    expect(asked).toEqual(['a', 'b']);
    expect(await figures(running)).toEqual({ underWay: 2, queued: 2, decisions: 0, refusals: 0 });
    for (const project of ['e', 'f']) {
      const { status, json, headers } = await post('/check-create', lasting(project));
      expect({
        status,
        json,
        retry: headers.get('Retry-After'),
        made: headers.get('X-Enforcement-Generation'),
      }).toEqual({
        status: 503,
        json: { message: 'Too many decisions are under way and waiting. Please try again.' },
        retry: '1',
        made: null,
      });
    }
    answer('b');
    await expect.poll(() => asked).toEqual(['a', 'b', 'c']);
    // Its place in the line is free for another.
    const late = post('/check-create', lasting('g'));
    await expect.poll(async () => (await figures(running)).queued).toBe(2);
    answer('a');
    await expect.poll(() => asked).toEqual(['a', 'b', 'c', 'd']);
    answer('c');
    await expect.poll(() => asked).toEqual(['a', 'b', 'c', 'd', 'g']);
    answer('d');
    answer('g');
    const decided = await Promise.all([...answers, late]);
    expect(decided.map(({ status }) => status)).toEqual(Array(5).fill(204));

    // Who was refused for want of room is no decision.
    expect(await figures(running)).toEqual({ underWay: 0, queued: 0, decisions: 5, refusals: 2 });
    await running.service.close();
    const logged = decisionsInFile(log).map(({ project_id }) => project_id);
    expect(logged.sort()).toEqual(['a', 'b', 'c', 'd', 'g']);
  });

  it('of 1 and 0 allow one decision and no queue; requests without a decision are answered', async () => {
    const running = await runGate({ max_concurrent: 1, max_queued: 0, tokens: ['s3cret-0123456789abcdef'] });
    const { post, request, asked, answer } = running;
    const token = { 'X-Auth-Token': 's3cret-0123456789abcdef' };
    const first = post('/check-create', lasting('a'), token);
    await expect.poll(() => asked).toEqual(['a']);
    for (const path of ['/check-create', '/v1/check-update', '/v1/commit-create', '/on-end']) {
      const body = path.endsWith('-update') ? capturedText('check-update-extend.json') : FITS;
      expect(await post(path, body, token), path).toMatchObject({ status: 503 });
    }
    expect(await post('/check-create', FITS)).toMatchObject({ status: 401 });
    expect(await post('/check-create', '{', token)).toMatchObject({ status: 400 });
    expect(await request('/healthz')).toMatchObject({ status: 200 });
    expect(await request('/readyz')).toMatchObject({ status: 200 });
    answer('a');
    expect(await first).toMatchObject({ status: 204 });
    const next = post('/check-create', lasting('b'), token);
    await expect.poll(() => asked).toEqual(['a', 'b']);
    answer('b');
    expect(await next).toMatchObject({ status: 204 });
  });

  it('skip a client that left while it waited', async () => {
    const running = await runGate({ max_concurrent: 1, max_queued: 10 });
    const { port, post, asked, answer } = running;
    const first = post('/check-create', lasting('a'));
    await expect.poll(() => asked).toEqual(['a']);
    const gone = await openRaw(port);
    gone.socket.write(postBytes('/check-create', lasting('gone')));
    await expect.poll(async () => (await figures(running)).queued).toBe(1);
    gone.socket.resetAndDestroy();
    const next = post('/check-create', lasting('b'));
    await expect.poll(async () => (await figures(running)).queued).toBe(2);
    answer('a');
    await expect.poll(() => asked).toContain('gone');
    answer('gone');
    await expect.poll(() => asked).toContain('b');
    answer('b');
    expect([(await first).status, (await next).status]).toEqual([204, 204]);
    expect(await figures(running)).toMatchObject({ underWay: 0, queued: 0 });
    expect(errorsOf(running)).toEqual([]);
  });
});

describe('deadline', () => {
  it('refuses what comes too late: of a filter that blocks the process, gives up when told, or never answers', async () => {
    const blocking =
      'const late = performance.now() + 1100; while (performance.now() < late); return allow();';
    const giving =
      'return new Promise((_, fail) => call.signal.addEventListener("abort", () => fail(call.signal.reason)));';
    const running = await runService({
      filters: {
        'late-filter.js': filterSource('LateFilter', {
          create: blocking,
          update: giving,
          end: 'return new Promise(() => {});',
        }),
      },
      enforcement: { enabled_filters: ['LateFilter'], max_lease_duration: undefined },
      service: { deadline: 1 },
    });
    const answers = [
      await running.post('/check-create', FITS),
      await running.post('/check-update', capturedText('check-update-extend.json')),
      await running.post('/on-end', capturedText('on-end-active.json')),
    ];
    expect(answers.map(({ status, json }) => [status, json])).toEqual([
      [403, { message: REFUSED }],
      [403, { message: REFUSED }],
      [204, undefined],
    ]);
    expect(errorsOf(running).map(({ fields }) => fields.error)).toEqual(
      Array(3).fill('no answer within 1 s'),
    );
  });
});
