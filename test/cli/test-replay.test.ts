import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { aRecord } from '../support/decision-logs.ts';
import { folderOf } from '../support/filter-folder.ts';
import { confWith, testIn } from '../support/lease-cases.ts';

const REASON = 'Students have leases of at most 2 days.';

/** A line of a log: a lease that starts soon and lasts so many hours. */
function line({ hours = 1, project = 'students', lease = {}, request = {}, ...changes }: Line = {}): string {
  const start = Date.parse('2026-12-01T09:00:00Z');
  const date = (at: number) => new Date(at).toISOString().slice(0, 19);
  const asked = {
    context: { user_id: 'alice', project_id: project },
    lease: {
      name: 'run',
      start_date: date(start),
      end_date: date(start + hours * 3_600_000),
      reservations: [{ resource_type: 'physical:host', min: 1, max: 1, resource_properties: '' }],
      ...lease,
    },
    ...request,
  };
  return JSON.stringify({ ...aRecord({ project_id: project }), request: asked, ...changes });
}
interface Line extends Readonly<Record<string, unknown>> {
  readonly hours?: number;
  readonly project?: string;
  readonly lease?: object;
  readonly request?: object;
}

const withoutRequest = (changes: object) => JSON.stringify({ ...aRecord(), ...changes });

const refused = { allowed: false, outcome: 'rejected', filter: 'RulesFilter', message: REASON };

async function replayedIn(files: Parameters<typeof testIn>[0], ...args: readonly string[]) {
  const { stdout, ...rest } = await testIn(
    files,
    ...['--config-file', 'blazar.conf', '--format', 'json', ...args],
  );
  return { ...rest, stdout, report: stdout.startsWith('{') ? JSON.parse(stdout) : undefined };
}
const logOf = (lines: readonly string[]) => lines.map((one) => `${one}\n`).join('');
const replayed = (lines: readonly string[], ...args: readonly string[]) =>
  replayedIn({ log: logOf(lines) }, '--replay', 'log', ...args);

describe('test --replay', () => {
  it('says which decisions would be others, and by which rule', async () => {
    const { code, report, stderr } = await replayed([
      line(),
      line({ hours: 72 }),
      line({ hours: 72, ...refused }),
      line({ hours: 2, ...refused }),
      line({ hours: 72, project: 'climate' }),
    ]);
    expect({ code, stderr, ...report }).toMatchObject({
      code: 1,
      stderr: '',
      decisions: 5,
      same: 3,
      now_refused: 1,
      now_allowed: 1,
      failed: 0,
      undecidable: 0,
      skipped: 0,
      damaged_lines: 0,
      causes: [
        { difference: 'now-refused', by: expect.stringMatching(/rules\.yaml:2: two-days$/), decisions: 1 },
        { difference: 'now-allowed', by: 'RulesFilter', decisions: 1 },
      ],
    });
    expect(report.examples[0]).toMatchObject({ before: { allowed: true }, after: { message: REASON } });
  });

  it('is a success only if every decision was judged', async () => {
    expect((await replayed([line(), line()])).code).toBe(0);
    const unknown = [line(), withoutRequest({ request_left_out: 'secret' })];
    expect((await replayed(unknown)).code).toBe(1);
    expect((await replayed(unknown, '--allow-undecidable')).code).toBe(0);
    expect((await replayed([line(), '{"time": "2026-1'])).code).toBe(1);
  });

  it.each([
    ['the log has no request', JSON.stringify(aRecord()), /not in the log/],
    ['it is no request', line({ lease: { start_date: 'soon' } }), /not one of Blazar/],
    ['it is about a pod', line({ operation: 'kubernetes.admission' }), /no pods/],
    ['it is about a task', line({ operation: 'skypilot.launch' }), /no tasks/],
  ])('cannot decide where %s', async (_, text, why) => {
    const { report } = await replayed([text]);
    expect(report).toMatchObject({ undecidable: 1, same: 0 });
    expect(report.causes[0].by).toMatch(why);
  });

  it('cannot say what a filter on the ledger would, unless it shall believe the log', async () => {
    const conf = { 'blazar.conf': confWith(', MaxLeasesFilter', 'max_leases_per_project = 3\n') };
    const answers = (outcome: string) => [{ ...answer, filter: 'MaxLeasesFilter', outcome }];
    const answer = { audit: false, message: null, duration_ms: 1 };
    const log = logOf([
      line({ filters: answers('allowed') }),
      line({ ...refused, filter: 'MaxLeasesFilter', filters: answers('rejected') }),
      // Rules refuse it, whatever is in the ledger.
      line({ hours: 72, filters: answers('allowed') }),
      line(),
    ]);
    const plain = await replayedIn({ ...conf, log }, '--replay', 'log');
    expect(plain.report).toMatchObject({ same: 0, now_refused: 1, undecidable: 3 });
    expect(plain.report.causes[0].by).toBe(
      'MaxLeasesFilter asks the ledger, whose content at that time is not known',
    );
    const assumed = await replayedIn({ ...conf, log }, '--replay', 'log', '--assume-recorded');
    expect(assumed.report).toMatchObject({ same: 2, now_refused: 1, undecidable: 1 });
  });

  it('decides what rules say whatever is in the ledger', async () => {
    const rules = `rules:
  - {name: two-days, allow: hours(lease) <= 48.0, message: At most two days.}
  - {name: four, match: context.project_id == "climate", allow: leases() < 4 || hours(lease) < 2.0, message: At most four.}
  - {name: named, allow: hours(lease) != 5.0, message: {expression: '"There are " + string(leases())'}}
  - {name: tried, mode: audit, allow: leases() < 2, message: At most two.}
`;
    const log = logOf([
      line({ project: 'students' }),
      line({ project: 'climate', hours: 1 }),
      line({ project: 'climate', hours: 3 }),
      line({ project: 'climate', hours: 72 }),
      line({ project: 'students', hours: 5 }),
    ]);
    const { report } = await replayedIn({ log, 'rules.yaml': rules }, '--replay', 'log');
    // Only that of three hours depends on it.
    expect(report).toMatchObject({ same: 2, now_refused: 2, undecidable: 1, failed: 0 });
    expect(report.examples.map(({ after }: { after: { message: string } }) => after?.message)).toEqual(
      expect.arrayContaining([
        'At most two days.',
        'The rule named refuses the lease; what it says depends on the ledger.',
      ]),
    );
  });

  it('is broken where a rule breaks', async () => {
    const rules =
      'rules:\n  - name: broken\n    allow: 1 / size(lease, "device") == 0\n    message: refused\n';
    const log = line({ lease: { nothing: 'text' } });
    expect(await replayedIn({ log, 'rules.yaml': rules }, '--replay', 'log')).toMatchObject({
      code: 3,
      report: { failed: 1, same: 0, now_refused: 0 },
    });
  });

  it('reads several logs, patterns and packed ones, and counts damaged lines with their numbers', async () => {
    const { code, report, stderr } = await replayedIn(
      {
        'd.log': `${line()}\n\n{"cut off\n${line()}`,
        'd.log.1': gzipSync(`${line()}\n${'x'.repeat(1024 * 1024 + 1)}\n[]\n${line()}\n`),
        'e.log': '',
      },
      ...['--replay', 'd.log*', '--replay', 'e.log'],
    );
    expect([code, report]).toMatchObject([1, { decisions: 4, same: 4, damaged_lines: 3 }]);
    expect(stderr).toBe(
      'warning: d.log:3: not a decision\nwarning: d.log.1:2: longer than 1 MiB\nwarning: d.log.1:3: not a decision\n',
    );
  });

  it('looks only at the decisions that are selected', async () => {
    const at = (time: string, project: string) => line({ hours: 72, time, project });
    const lines = [
      at('2026-11-01T00:00:00.000Z', 'students'),
      at('2026-11-02T00:00:00.000Z', 'students'),
      at('2026-11-02T00:00:00.000Z', 'climate'),
      at('2026-11-03T00:00:00.000Z', 'students'),
    ];
    const flags = ['--since', '2026-11-02', '--until', '2026-11-03', '--project', 'students'];
    expect((await replayed(lines, ...flags)).report).toMatchObject({ decisions: 1, now_refused: 1 });
    const none = await replayed(lines, '--project', '__proto__');
    expect([none.code, none.stderr]).toEqual([2, 'error: log: no decision to judge again\n']);
  });

  it('finds projects and users by id, and by the names that the log has', async () => {
    const named = (domain: string, user_name?: string) =>
      line({ hours: 72, project_name: 'ocean', project_domain: domain, user_name, user_domain: 'Default' });
    const lines = [named('Default', 'ada'), named('Other'), named(''), line({ hours: 72 })];
    const found = async (...args: readonly string[]) =>
      (await replayed(lines, ...args)).report?.decisions ?? 0;
    expect(await found('--project', 'ocean@Default')).toBe(1);
    expect(await found('--user', 'ada@Default', '--project', 'ocean@Other')).toBe(0);
    expect(await found('--project', 'students')).toBe(4);
    expect(await found('--project', 'ocean')).toBe(0);
  });

  it.each(['table', 'junit', 'tap'])(
    'shows hostile names as texts in %s, and few examples',
    async (format) => {
      const hostile = '\u001b[31m\u202e\n<b>]]>';
      const lines = Array.from({ length: 5 }, () =>
        line({ hours: 72, lease_name: hostile, user_id: '__proto__' }),
      );
      const { stdout } = await replayed(lines, '--format', format, '--examples', '2');
      // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there.
      expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
      expect(stdout.match(/now refused.*__proto__/g)).toHaveLength(2);
    },
  );

  it.each([
    [['--replay', 'nowhere*'], /no file has such a name/],
    [['--replay', '-', '--replay', '-'], /read once/],
    [['--replay', 'log', 'cases'], /cases: expected no folder/],
    [['--replay', 'log', '--record', 'log'], /cannot be used with/],
    [['--since', '1d'], /--since: expected --replay or --record/],
    [['--replay', 'log', '--since', 'soon'], /--since: expected a date/],
  ])('refuses %s', async (args, why) => {
    const { code, stdout, stderr } = await testIn({ log: line() }, ...args, '--config-file', 'blazar.conf');
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(why);
  });
});

describe('test --record', () => {
  const record = (folder: string, ...more: readonly string[]) =>
    runProgramInProcess(['test', '--record', 'log', '--config-file', 'blazar.conf', ...more], {
      cwd: folder,
    });

  it('writes a case for each different decision, which passes', async () => {
    const log = [
      line(),
      line({ time: '2026-11-20T09:00:00.000Z' }),
      line({ hours: 72, ...refused }),
      line({ lease: JSON.parse('{"__proto__": {"a": [1, null]}, "name": "\\u001b[31m: - ☃", "no": "~"}') }),
      line({ operation: 'end' }),
      JSON.stringify(aRecord()),
    ].join('\n');
    const { folder, code, stdout } = await testIn(
      { log },
      ...['--record', 'log', '--config-file', 'blazar.conf'],
    );
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(
        /^cases\/recorded: 3 cases written\n {2}1 decisions like one before\n {2}1 decisions without/,
      ),
    ]);
    const files = readdirSync(join(folder, 'cases/recorded'));
    expect(files.sort()).toEqual([
      expect.stringMatching(/^create-allowed-[0-9a-f]{16}\.yaml$/),
      expect.stringMatching(/^create-allowed-[0-9a-f]{16}\.yaml$/),
      expect.stringMatching(/^create-rejected-by-rulesfilter-[0-9a-f]{16}\.yaml$/),
    ]);
    const tested = await runProgramInProcess(['test'], { cwd: folder });
    expect([tested.code, tested.stdout]).toEqual([0, expect.stringContaining('3 passed')]);
  });

  it('replaces nothing without --force', async () => {
    const folder = folderOf({
      'blazar.conf': '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 172800\n',
      log: line(),
    });
    await record(folder);
    expect((await record(folder)).stdout).toContain('0 cases written\n  1 cases there already');
    const [file = ''] = readdirSync(join(folder, 'cases/recorded'));
    const path = join(folder, 'cases/recorded', file);
    writeFileSync(path, 'mine');
    expect(await record(folder)).toMatchObject({
      code: 2,
      stdout: expect.stringContaining('1 cases there that'),
    });
    expect(readFileSync(path, 'utf8')).toBe('mine');
    expect((await record(folder, '--force')).code).toBe(0);
    expect(readFileSync(path, 'utf8')).toContain('"expect": "allowed"');
  });
});
