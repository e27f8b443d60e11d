import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { runProgramInProcess } from '../../support/command-in-process.ts';
import { sectionText, temporaryFile } from '../../support/files.ts';
import { filterFolder, filterSource } from '../../support/filter-folder.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { metric } from '../../support/metric.ts';
import { IDS, recorded, recordedKeystone } from '../../support/recorded-identities.ts';
import { capturedText, createLasting } from '../../support/requests.ts';
import { runServiceOn, runServiceOnFile } from '../../support/running-service.ts';

const TWO_DAYS = capturedText('check-create-physical-host.json');
const ONE_HOUR = 'enabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 3600\n';
const THREE_DAYS = 'enabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 259200\n';

const written = (enforcement: string, service: string) =>
  `[enforcement]\n${enforcement}\n[service]\nport = 0\n${service}\n`;

/** What /readyz says of a mistake: the place alone. */
const withoutMessage = (line: string) =>
  line.replace(/^((?:\S+:\d+: )?(?:\[\w+\] )?(?:\w+: )?).*$/, (_, place: string) => `${place}not valid`);
const NOT_VALID = ['configuration: not valid'];

/** `change`: of both sections. */
async function onFile(enforcement: string, service = '') {
  const { change, ...running } = await runServiceOnFile(written(enforcement, service));
  const said = (message: string) =>
    expect(running.logger.lines.map((line) => line.message)).toContain(message);
  return {
    ...running,
    change: (next: string, other = '') => change(written(next, other)),
    rewrite: change,
    said,
  };
}

const generationOf = ({ headers }: { headers: Headers }) => headers.get('X-Enforcement-Generation');

/** Filters that tell, in the order in which it happens, what becomes of them; `open` lets the requests that wait go on. */
function watchedFilters() {
  const heard: string[] = [];
  const authenticators = new Map<string, () => void>();
  const authenticator = (name: string) => {
    heard.push(`${name} asked`);
    return new Promise<void>((open) => authenticators.set(name, open));
  };
  vi.stubGlobal('heard', heard);
  vi.stubGlobal('authenticator', authenticator);
  const slow = (name: string) =>
    filterSource(name, {
      create: `return authenticator('${name}').then(() => reject('says ${name}'));`,
      extra: `close() { heard.push('${name} closed'); }`,
    });
  const folder = filterFolder({
    'old-filter.js': slow('OldFilter'),
    'new-filter.js': slow('NewFilter'),
    'broken-filter.js': filterSource('BrokenFilter', {
      extra: "constructor(options, services) { super(options, services); throw new Error('no licence'); }",
    }),
  });
  const filter = (names: string) => `filters_path = ${folder}\nenabled_filters = ${names}\n`;
  return { filter, heard, open: (name: string) => authenticators.get(name)?.() };
}

it.each(['a reload', 'the start'])(
  '%s with watch misses no change of a file that it reads first',
  async (when) => {
    const filter = (text: string) => filterSource('OwnFilter', { create: `return reject('${text}');` });
    const folder = filterFolder({});
    const file = join(folder, 'own-filter.js');
    // It replaces itself while it is loaded.
    writeFileSync(
      file,
      `import { writeFileSync } from 'node:fs';
writeFileSync(${JSON.stringify(file)}, ${JSON.stringify(filter('the second version'))});
${filter('the first version')}`,
    );
    const configured = written(`enabled_filters = OwnFilter\nfilters_path = ${folder}`, '');
    const first = when === 'the start' ? configured : written('enabled_filters =', '');
    const { change, post } = await runServiceOnFile(first, { watch: true, pollMs: 3_600_000 });
    if (when === 'a reload') {
      await expect(change(configured)).resolves.toBe(true);
    }
    expect((await post('/v1/check-create', TWO_DAYS)).json).toEqual({ message: 'the second version' });
  },
);

describe('a reload', () => {
  it('takes over: the next request is decided by the new rules, limits and tokens', async () => {
    const { change, post, request } = await onFile(THREE_DAYS);
    const before = await post('/check-create', TWO_DAYS);
    expect([before.status, generationOf(before)]).toEqual([204, '1']);

    await expect(change(ONE_HOUR, 'tokens = s3cret-0123456789abcdef\nbody_limit = 1024')).resolves.toBe(true);
    expect(await post('/check-create', TWO_DAYS)).toMatchObject({ status: 401 });
    const token = { 'X-Auth-Token': 's3cret-0123456789abcdef' };
    const short = JSON.stringify(createLasting(3600));
    const fits = await post('/check-create', short, token);
    expect([fits.status, generationOf(fits)]).toEqual([204, '2']);
    expect(await post('/check-create', JSON.stringify(createLasting(3601)), token)).toMatchObject({
      status: 403,
    });
    expect(await post('/check-create', short.padEnd(1025), token)).toMatchObject({ status: 413 });
    expect(await request('/readyz')).toMatchObject({ status: 200, json: { generation: 2, problems: [] } });
    const { text } = await request('/metrics');
    expect(metric(text, 'blazar_enforcement_generation')).toBe(2);
    expect(metric(text, 'blazar_enforcement_reloads_total', { outcome: 'applied' })).toBe(1);
    expect(metric(text, 'blazar_enforcement_reloads_total', { outcome: 'refused' })).toBe(0);
  });

  it('with mistakes changes nothing: they are logged in the words of config validate, counted and shown', async () => {
    const log = temporaryFile('decisions.jsonl', '');
    const { conf, change, post, request, logger } = await onFile(THREE_DAYS, `decision_log = ${log}`);
    const wrong =
      'enabled_filters = MaxLeaseDurationFilter, NoFilter\nmax_lease_duration = one day\nmax_lease = 1\n';
    await expect(change(wrong, 'body_limit = 10\ntls_cert_file = /nowhere')).resolves.toBe(false);

    const validated = await runProgramInProcess(['config', 'validate', '--config-file', conf]);
    expect(validated.code).toBe(2);
    const mistakes = validated.stderr.trimEnd().split('\n');
    expect(mistakes.length).toBeGreaterThanOrEqual(5);
    const words = mistakes.map((line) => line.replace(/^error: /, ''));
    expect(logger.lines.filter(({ level }) => level === 'error').map(({ message }) => message)).toEqual([
      ...words,
      'configuration not reloaded: the previous one stays in use',
    ]);
    expect(await request('/readyz')).toMatchObject({
      status: 503,
      json: { status: 'configuration not valid', generation: 1, problems: words.map(withoutMessage) },
    });
    expect(await request('/healthz')).toMatchObject({ status: 200 });
    const { text } = await request('/metrics');
    expect(metric(text, 'blazar_enforcement_reloads_total', { outcome: 'refused' })).toBe(1);
    expect(metric(text, 'blazar_enforcement_configuration_valid')).toBe(0);
    const decided = await post('/check-create', TWO_DAYS);
    expect([decided.status, generationOf(decided)]).toEqual([204, '1']);

    await expect(change(ONE_HOUR, `decision_log = ${log}`)).resolves.toBe(true);
    expect(await request('/readyz')).toMatchObject({ status: 200, json: { status: 'ready', problems: [] } });
    expect(metric((await request('/metrics')).text, 'blazar_enforcement_configuration_valid')).toBe(1);
    const rejected = await post('/check-create', TWO_DAYS);
    expect([rejected.status, generationOf(rejected)]).toEqual([403, '2']);
    await expect
      .poll(() => jsonLines(readFileSync(log, 'utf8')))
      .toMatchObject([
        { generation: 1, allowed: true },
        { generation: 2, allowed: false },
      ]);
  });

  it('whose file has gone, or is no text, is refused, and the rules before it still decide', async () => {
    const { conf, service, post, request, said } = await onFile(ONE_HOUR);
    for (const [change, reason] of [
      [() => writeFileSync(conf, Buffer.from([0xff, 0xfe])), 'it is not UTF-8 text'],
      [() => rmSync(conf), 'there is no such file'],
    ] as const) {
      change();
      await expect(service.reload()).resolves.toBe(false);
      said(`${conf}: could not be read: ${reason}`);
      expect(await request('/readyz')).toMatchObject({ status: 503, json: { problems: NOT_VALID } });
    }
    expect(await post('/check-create', TWO_DAYS)).toMatchObject({ status: 403 });
  });

  it('lets requests under way finish on the filters that they started with, and closes those then, once', async () => {
    const { filter, heard, open } = watchedFilters();
    const { change, post, request, service } = await onFile(filter('OldFilter'));
    const asked = post('/check-create', TWO_DAYS);
    await expect.poll(() => heard).toEqual(['OldFilter asked']);

    await expect(change(filter('NewFilter'))).resolves.toBe(true);
    const next = post('/check-create', TWO_DAYS);
    await expect.poll(() => heard).toEqual(['OldFilter asked', 'NewFilter asked']);
    // Both count, whichever configuration they are decided by.
    const { text } = await request('/metrics');
    expect(metric(text, 'blazar_enforcement_decisions_under_way')).toBe(2);

    open('OldFilter');
    const old = await asked;
    expect([old.json, generationOf(old)]).toEqual([{ message: 'says OldFilter' }, '1']);
    await expect.poll(() => heard.slice(2)).toEqual(['OldFilter closed']);
    open('NewFilter');
    const young = await next;
    expect([young.json, generationOf(young)]).toEqual([{ message: 'says NewFilter' }, '2']);
    expect(heard.slice(2)).toEqual(['OldFilter closed']);
    await service.close();
    expect(heard.slice(2)).toEqual(['OldFilter closed', 'NewFilter closed']);
  });

  it('with a file that has become empty changes nothing: it was cut off, most likely', async () => {
    const { conf, rewrite, post, request, said } = await onFile(ONE_HOUR);
    for (const text of ['', '[enforcement]\n']) {
      await expect(rewrite(text)).resolves.toBe(false);
      expect(await post('/check-create', TWO_DAYS)).toMatchObject({ status: 403 });
    }
    said(`${conf}: the file became empty; restart to accept it`);
    expect((await request('/readyz')).json).toMatchObject({ problems: NOT_VALID });
    await expect(rewrite(written('enabled_filters =', ''))).resolves.toBe(true);
    expect(await post('/check-create', TWO_DAYS)).toMatchObject({ status: 204 });
  });

  it('with a file that ends within a line, and did not before, changes nothing', async () => {
    const { conf, rewrite, post, said } = await onFile(ONE_HOUR);
    const whole = readFileSync(conf, 'utf8');
    // Still without a mistake, and without the limit.
    const cut = whole.slice(0, whole.indexOf('max_lease_duration')).trimEnd();
    await expect(rewrite(cut)).resolves.toBe(false);
    expect(await post('/check-create', TWO_DAYS)).toMatchObject({ status: 403 });
    said(
      `${conf}: the file no longer ends with a line break, so it was most likely cut off; add one, or restart to accept it`,
    );
    await expect(rewrite(`${cut}\n`)).resolves.toBe(true);
    expect(await post('/check-create', TWO_DAYS)).toMatchObject({ status: 204 });
  });

  it('with a folder that has lost all its files changes nothing: it is not mounted, most likely', async () => {
    const file = temporaryFile('10.conf', written(ONE_HOUR, ''));
    const folder = dirname(file);
    const running = await runServiceOn({ environment: {}, configDirs: [`${folder}/`] });
    rmSync(file);
    await expect(running.service.reload()).resolves.toBe(false);
    expect(await running.post('/check-create', TWO_DAYS)).toMatchObject({ status: 403 });
    expect(running.logger.lines.map(({ message }) => message)).toContain(
      `${folder}/: the folder has no configuration files any more; restart to accept it`,
    );
    writeFileSync(join(folder, '20.conf'), written(THREE_DAYS, ''));
    await expect(running.service.reload()).resolves.toBe(true);
    expect(await running.post('/check-create', TWO_DAYS)).toMatchObject({ status: 204 });
    expect(running.logger.lines).toContainEqual({
      level: 'warn',
      message: 'configuration files are gone: what they have set is no longer in force',
      fields: { gone: [file] },
    });
  });

  it('with a filter that can not be set up changes nothing, and lets go of what was built before it', async () => {
    const { filter, heard, open } = watchedFilters();
    const { change, conf, post, request, logger } = await onFile(filter('OldFilter'));
    await expect(change(filter('NewFilter, BrokenFilter'))).resolves.toBe(false);
    expect(heard).toEqual(['NewFilter closed']);
    const [message = ''] = logger.lines.flatMap(
      (line) => line.message.match(/.* could not be set up: .*/) ?? [],
    );
    const place = `${conf}:3: [enforcement] enabled_filters: BrokenFilter could not be set up: no licence (`;
    expect(message.slice(0, place.length)).toBe(place);
    expect(message).toMatch(/\/broken-filter\.js:\d+\)$/);
    const problems = [withoutMessage(message)];
    expect(await request('/readyz')).toMatchObject({ status: 503, json: { problems } });
    const asked = post('/check-create', TWO_DAYS);
    await expect.poll(() => heard).toContain('OldFilter asked');
    open('OldFilter');
    expect((await asked).json).toEqual({ message: 'says OldFilter' });
    expect(heard).not.toContain('OldFilter closed');
  });

  it('of what is read at the start warns of it in one line, and takes over the rest', async () => {
    const { change, post, logger } = await onFile(THREE_DAYS);
    await change(ONE_HOUR, 'host = 127.0.0.2\nlog_level = debug\ndecision_log = /nowhere/at/all');
    expect(logger.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)).toEqual([
      '[service] host, log_level, decision_log: the change takes effect at the next start',
    ]);
    expect(await post('/check-create', TWO_DAYS)).toMatchObject({ status: 403 });
  });

  it('is not made any more once the service is told to stop', async () => {
    const { filter, heard, open } = watchedFilters();
    const { service, change, post } = await onFile(filter('OldFilter'));
    const asked = post('/check-create', TWO_DAYS);
    await expect.poll(() => heard).toEqual(['OldFilter asked']);
    const closed = service.close();
    await expect(change(filter('NewFilter'))).resolves.toBe(false);
    open('OldFilter');
    expect((await asked).json).toEqual({ message: 'says OldFilter' });
    await closed;
    await expect(service.reload()).resolves.toBe(false);
    expect(heard).toEqual(['OldFilter asked', 'OldFilter closed']);
  });
});

it('names of projects and users that Keystone does not have are warned of at the start and after a reload', async () => {
  const keystone = await recordedKeystone();
  const ask = 'GET /v3/users?name=climat&domain_id=default';
  keystone.answer(ask, { status: 200, contentType: 'application/json', body: { users: [] } });
  keystone.answer('GET /v3/projects?name=climate&domain_id=default', recorded('projects-list-climate'));
  const text = (projects: string, types: string) =>
    `[service]\nport = 0\n[enforcement]\nenabled_filters = MaxLeaseDurationFilter, MaxReservationSizeFilter\nmax_lease_duration_project_limits = ${projects}:60\nmax_reservation_size_project_limits = ${types}/physical:host:1\n${sectionText('keystone', keystone.options)}`;
  const { logger, change } = await runServiceOnFile(text('climat@Default', 'climate@Default'));
  const said = () =>
    logger.lines.flatMap(({ fields, message }) => (message.startsWith('Keystone finds no') ? [fields] : []));
  const first = { option: '[enforcement] max_lease_duration_project_limits', name: 'climat@Default' };
  await expect.poll(said).toEqual([first]);
  expect(await change(text('climate@Default', 'climat@Default'))).toBe(true);
  const second = { option: '[enforcement] max_reservation_size_project_limits', name: 'climat@Default' };
  await expect.poll(said).toEqual([first, second]);
  expect(await change(text(IDS.climate, 'climate'))).toBe(true);
  await expect.poll(said).toEqual([first, second, { ...second, name: 'climate' }]);
});
