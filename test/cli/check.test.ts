import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkCommand } from '../../src/cli/check.ts';
import { copiedLedgers } from '../ledger/recorded-leases.ts';
import {
  answers,
  check,
  FITS,
  filterFlags,
  NINE_DAYS,
  rows,
  TOO_LONG,
  TWO_DAYS,
} from '../support/check-command.ts';
import { runInProcess, runProgramInProcess } from '../support/command-in-process.ts';
import { capturedFile, confFile, projectFile, temporaryFile } from '../support/files.ts';
import { filterFolder, filterSource, folderOf, temporaryFolder } from '../support/filter-folder.ts';
import { confWith } from '../support/lease-cases.ts';
import { capturedText, createLasting } from '../support/requests.ts';
import { printed, refused, refusedWith, runCommand } from '../support/run-command.ts';
import { COMING, commandsOn, fill } from './ledger/setup.ts';

describe('check', () => {
  it('prints a row per file, in the order of the files, and exits with 1 when one is rejected', async () => {
    const rejected = [NINE_DAYS, 'create', 'rejected', 'MaxLeaseDurationFilter', TOO_LONG];
    const { code, stdout, stderr } = await check('create', [NINE_DAYS, FITS, NINE_DAYS]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(rows(stdout)).toEqual([
      ['FILE', 'OPERATION', 'ANSWER', 'FILTER', 'MESSAGE'],
      rejected,
      [FITS, 'create', 'allowed'],
      rejected,
    ]);
    expect(await check('create', [FITS, FITS])).toMatchObject({ code: 0, stderr: '' });
  });

  it('prints one JSON object a line with exactly the promised fields', async () => {
    const { code, stdout } = await check('create', [FITS, NINE_DAYS], '--format', 'json');
    expect(code).toBe(1);
    const outcome = {
      filter: 'MaxLeaseDurationFilter',
      allowed: true,
      message: null,
      failed: false,
      onError: false,
      audit: false,
      changed: false,
      milliseconds: expect.any(Number),
    };
    const common = { operation: 'create', failed: false, warnings: [] };
    const { filter } = outcome;
    const rejection = { allowed: false, message: TOO_LONG };
    expect(answers(stdout)).toEqual([
      { ...common, file: FITS, allowed: true, message: null, filter: null, outcomes: [outcome] },
      { ...common, file: NINE_DAYS, ...rejection, filter, outcomes: [{ ...outcome, ...rejection }] },
    ]);
    const names = ['file', 'operation', 'allowed', 'message', 'filter', 'failed', 'warnings', 'outcomes'];
    expect(answers(stdout).map(Object.keys)).toEqual([names, names]);
  });

  it('reports a captured end to the filters, and calls the answer "told"', async () => {
    const end = capturedFile('on-end-active');
    const json = await check('end', [end], '--format', 'json');
    expect(json.code).toBe(0);
    expect(answers(json.stdout)).toMatchObject([
      { operation: 'end', allowed: true, message: null, filter: null, failed: false, warnings: [] },
    ]);
    const table = await check('end', [end]);
    expect(table.code).toBe(0);
    expect(rows(table.stdout)[1]).toEqual([end, 'end', 'told']);
  });

  it('reads standard input at -, in its place among the files, and the file of BLAZAR_ENFORCEMENT_CONFIG', async () => {
    const { code, stdout } = await runCommand(['check', 'create', FITS, '-', '--format', 'json'], {
      env: { BLAZAR_ENFORCEMENT_CONFIG: confFile(TWO_DAYS) },
      stdin: readFileSync(NINE_DAYS),
    });
    expect(code).toBe(1);
    expect(answers(stdout)).toMatchObject([
      { file: FITS, allowed: true },
      { file: '-', allowed: false, message: TOO_LONG },
    ]);
    expect(await check('create', ['-', '-'])).toEqual(refused('standard input (-) can be read once'));
  });

  it('judges nothing with a configuration that has mistakes, and lists them all', async () => {
    const conf = confFile(`${TWO_DAYS}max_lease_duraton = 60\nexternal_service_timeout = soon\n`);
    const { code, stdout, stderr } = await runProgramInProcess([
      'check',
      'create',
      FITS,
      '--config-file',
      conf,
    ]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`error: ${conf}:4: [enforcement] max_lease_duraton: unknown option`);
    expect(stderr).toContain(`error: ${conf}:5: [enforcement] external_service_timeout: expected`);
  });

  it('--explain runs every filter, also after the first rejection', async () => {
    const folder = filterFolder({
      'late-filter.js': filterSource('LateFilter', { create: "return reject('late says no');" }),
    });
    const flags = filterFlags(folder, 'MaxLeaseDurationFilter', 'LateFilter');
    const json = [...flags, '--format', 'json'];

    const [short] = answers((await check('create', [NINE_DAYS], ...json)).stdout);
    expect(short?.outcomes.map(({ filter }) => filter)).toEqual(['MaxLeaseDurationFilter']);
    const [long] = answers((await check('create', [NINE_DAYS], ...json, '--explain')).stdout);
    expect(long).toMatchObject({
      message: TOO_LONG,
      filter: 'MaxLeaseDurationFilter',
      outcomes: [
        { filter: 'MaxLeaseDurationFilter', allowed: false },
        { filter: 'LateFilter', allowed: false, message: 'late says no' },
      ],
    });
    const { code, stdout } = await check('create', [NINE_DAYS], ...flags, '--explain');
    expect(code).toBe(1);
    expect(rows(stdout).slice(2)).toEqual([
      ['', 'rejected', 'MaxLeaseDurationFilter', TOO_LONG],
      ['', 'rejected', 'LateFilter', 'late says no'],
    ]);
  });
});

describe('check with a filter that fails', () => {
  const failing = filterSource('FailingFilter', {
    create:
      "if (context.project_id === 'climate') { throw new Error('the quota file is gone'); } return allow();",
    end: "throw new Error('nobody listens');",
  });
  const flags = () =>
    filterFlags(filterFolder({ 'failing-filter.js': failing }), 'FailingFilter', 'MaxLeaseDurationFilter');

  it('refuses the lease with a generic message, logs the cause and exits with 3, also beside rejections', async () => {
    const file = temporaryFile('climate.json', JSON.stringify(createLasting(60)));
    const json = await check('create', [NINE_DAYS, file], ...flags(), '--format', 'json');
    expect(json.code).toBe(3);
    expect(answers(json.stdout)).toMatchObject([
      { file: NINE_DAYS, allowed: false, failed: false, message: TOO_LONG },
      {
        file,
        allowed: false,
        failed: true,
        filter: 'FailingFilter',
        message: 'The lease could not be checked. Please try again later, or ask the operator.',
      },
    ]);
    expect(json.stdout).not.toContain('quota file');
    expect(JSON.parse(json.stderr)).toMatchObject({
      filter: 'FailingFilter',
      error: 'the quota file is gone',
      project_id: 'climate',
    });

    const table = await check('create', [file], ...flags());
    expect(rows(table.stdout)[1]?.slice(1, 4)).toEqual(['create', 'failed', 'FailingFilter']);
    expect(table.stdout).not.toContain('quota file');
    expect(table.code).toBe(3);
  });

  it('logs at the level of --log-level', async () => {
    const file = temporaryFile('climate.json', JSON.stringify(createLasting(60)));
    const silent = await check('create', [file], ...flags(), '--log-level', 'silent');
    expect(silent).toMatchObject({ code: 3, stderr: '' });
    const debug = await check('create', [file], ...flags(), '--log-level', 'debug');
    expect(debug.stderr).toContain('failing-filter.js:');
    expect(debug.stdout).not.toContain('failing-filter.js:');
  });

  it('reports an end to every filter, and exits with 3 when one of them fails', async () => {
    const end = capturedFile('on-end-active');
    const { code, stdout, stderr } = await check('end', [end], ...flags(), '--format', 'json');
    expect(code).toBe(3);
    expect(answers(stdout)).toMatchObject([
      {
        allowed: true,
        failed: true,
        warnings: ['FailingFilter could not be told that the lease has ended.'],
        outcomes: [{ filter: 'FailingFilter' }, { filter: 'MaxLeaseDurationFilter', failed: false }],
      },
    ]);
    expect(stderr).toContain('nobody listens');
  });
});

describe('a decision of check', () => {
  it('warns of what an audited filter would have rejected', async () => {
    const flags = ['--config', 'enforcement.audit_filters=MaxLeaseDurationFilter'];
    const warning = `MaxLeaseDurationFilter (tried, not enforced) would have rejected: ${TOO_LONG}`;
    const table = await check('create', [NINE_DAYS], ...flags);
    expect(rows(table.stdout).slice(1)).toEqual([
      [NINE_DAYS, 'create', 'allowed'],
      ['', 'warning', warning],
    ]);
    expect(table.code).toBe(0);
    const json = await check('create', [NINE_DAYS], ...flags, '--format', 'json');
    expect(answers(json.stdout)).toMatchObject([{ allowed: true, warnings: [warning] }]);
  });

  it('names the values to set when a filter changes the lease', async () => {
    const folder = filterFolder({
      'shorten-filter.js': filterSource('ShortenFilter', {
        create: "return allow({ ...lease, end_date: '2026-12-02T09:00:00' });",
      }),
    });
    const flags = filterFlags(folder, 'ShortenFilter');
    const { code, stdout } = await check('create', [FITS], ...flags, '--format', 'json');
    expect(answers(stdout)).toMatchObject([
      {
        allowed: false,
        failed: false,
        filter: 'ShortenFilter',
        message: expect.stringContaining('end_date = "2026-12-02T09:00:00"'),
      },
    ]);
    expect(code).toBe(1);
  });
});

const LIMIT = 8 * 1024 * 1024;

const CONTEXT = { user_id: 'alice', project_id: 'climate' };
const DATES = { start_date: '2026-12-01T09:00:00', end_date: '2026-12-02T09:00:00' };
const requestText = (lease: object, context: object = CONTEXT) => JSON.stringify({ context, lease });

/** Name → content of the file, and the message about it. */
const BAD_FILES: Record<string, [content: string | Uint8Array, complaint: string]> = {
  'not-json': ['{"context":', 'expected JSON'],
  'an-update': [
    capturedText('check-update-extend.json'),
    'current_lease: expected a request of the operation create, got one of an update',
  ],
  'not-utf-8': [Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), 'could not be read: it is not UTF-8 text'],
  huge: [requestText(DATES).padEnd(LIMIT + 1), `could not be read: it is longer than ${LIMIT} bytes`],
  deep: [
    requestText({ ...DATES, x: [0] }).replace('[0]', '['.repeat(100_000) + ']'.repeat(100_000)),
    'lease.x[0]: it is nested deeper than 100 levels',
  ],
};

const checkFiles = (files: readonly string[], stdin: string | Uint8Array = '', ...flags: string[]) =>
  runProgramInProcess(
    ['check', 'create', ...files, '--config-file', projectFile('etc/policy-service.conf'), ...flags],
    { stdin },
  );
const refusal = (name: string, complaint: string) => refused(`${name}: ${complaint}`);

describe('check of a file that is not a request', () => {
  it.for(Object.entries(BAD_FILES))(
    'exits with 2 and one line with the file and what was expected: %s',
    async ([name, [content, complaint]]) => {
      const file = temporaryFile(`${name}.json`, content);
      expect(await checkFiles([file])).toEqual(refusal(file, complaint));
      expect(await checkFiles(['-'], content)).toEqual(refusal('standard input', complaint));
    },
  );

  it('says that a file is missing, is a folder, or has no end', async () => {
    const folder = temporaryFolder();
    const missing = join(folder, 'missing.json');
    expect(await checkFiles([missing])).toEqual(refusal(missing, 'could not be read: there is no such file'));
    expect(await checkFiles([folder])).toEqual(refusal(folder, 'could not be read: it is a folder'));
    expect(await checkFiles(['/dev/zero'])).toEqual(
      refusal('/dev/zero', `could not be read: it is longer than ${LIMIT} bytes`),
    );
  });

  it('prints no answer when another file cannot be read', async () => {
    const files = [capturedFile('check-create-physical-host'), join(temporaryFolder(), 'missing.json')];
    expect(await checkFiles(files, '', '--format', 'json')).toMatchObject({ code: 2, stdout: '' });
  });
});

/** Rules that look at a lease with a secret of a plug-in, and a text that would change the screen. */
async function explained(rules: string, ...args: readonly string[]) {
  const folder = folderOf({ 'blazar.conf': confWith(''), 'rules.yaml': rules });
  const body = JSON.parse(capturedText('check-create-physical-host.json'));
  Object.assign(body.lease, { auth_token: 's3cret', note: '\u001b[2Jx', more: { password: 's3cret', n: 1 } });
  writeFileSync(join(folder, 'body.json'), JSON.stringify(body));
  return runProgramInProcess(
    ['check', 'create', 'body.json', '--explain', '--config-file', 'blazar.conf', ...args],
    { cwd: folder },
  );
}

const RULE = (allow: string, more = '') => `rules:\n  - {name: a, allow: '${allow}', message: No.${more}}\n`;

describe('check --explain', () => {
  it('shows every part of a rule with its value', async () => {
    const { code, stdout } = await explained(
      RULE('size(lease, "physical:host") > 100 || hours(lease) < 1.0'),
    );
    expect(code).toBe(1);
    const lines = stdout.split('\n').map((line) => line.trim());
    expect(lines.slice(2).filter((line) => line !== '')).toEqual([
      'rejected  RulesFilter  No.',
      'refused   rule a',
      expect.stringMatching(/^allow: size\(lease, "physical:host"\) = \d+$/),
      'allow: size(lease, "physical:host") > 100 = false',
      expect.stringMatching(/^allow: hours\(lease\) = \d+(?:\.\d+)?$/),
      'allow: hours(lease) < 1.0 = false',
      'allow: size(lease, "physical:host") > 100 || hours(lease) < 1.0 → false',
    ]);
  });

  it('has the same in JSON', async () => {
    const { stdout } = await explained(RULE('hours(lease) < 0.0'), '--format', 'json');
    expect(JSON.parse(stdout).rules).toEqual([
      {
        rule: 'a',
        said: 'refused',
        audit: false,
        file: 'rules.yaml',
        line: 2,
        explanations: [
          {
            of: 'allow',
            parts: [
              { text: 'hours(lease)', value: expect.any(String) },
              { text: 'hours(lease) < 0.0', value: 'false' },
            ],
          },
        ],
      },
    ]);
  });

  it.each([
    '(lease.name == "(" || hours(lease) < 1.0) && hours(lease) < (1.0 + hours(lease))',
    '((hours(lease) < 1.0) || (hours(lease) < 2.0)) == ( hours(lease) < 3.0 )',
  ])('shows parts with the brackets that they begin or end with', async (allow) => {
    const { stdout } = await explained(RULE(allow), '--format', 'json');
    const [{ explanations }] = JSON.parse(stdout).rules;
    const texts = explanations.flatMap(({ parts }: { parts: { text: string }[] }) =>
      parts.map(({ text }) => text),
    );
    expect(texts.at(-1)).toBe(allow);
    expect(texts.filter((text: string) => /^[^(]*\)|\([^)]*$/.test(text.replace('"("', '')))).toEqual([]);
  });

  it('shows no secret, and nothing that changes the screen', async () => {
    const rules = RULE(
      'lease.attributes.auth_token == "x" || lease.attributes.note == "x" || size(lease.attributes.more) == 0',
    );
    const { stdout } = await explained(rules);
    expect(stdout).toContain('lease.attributes.auth_token = ****');
    expect(stdout).toContain('lease.attributes.more = {password: ****, n: 1}');
    expect(stdout).not.toContain('s3cret');
    expect(stdout).not.toContain('\u001b');
  });

  it('says why a part has no value', async () => {
    const { code, stdout } = await explained(RULE('lease.attributes.nothing == "x"'));
    expect(code).toBe(3);
    expect(stdout).toMatch(/failed +rule a/);
    expect(stdout).toContain('lease.attributes.nothing = fails: ');
  });

  it('shows of a rule that does not apply why it does not', async () => {
    const { stdout } = await explained(RULE('false', ', match: hours(lease) < 0.0'));
    expect(stdout).toMatch(/skipped +rule a/);
    expect(stdout).toContain('match: hours(lease) < 0.0 → false');
    expect(stdout).not.toContain('allow:');
  });
});

const newLedger = copiedLedgers(fill);

it('check reads the ledger and records nothing', async () => {
  const connection = await newLedger();
  const { ledger } = commandsOn(connection);
  const before = (await ledger('export')).stdout;
  const conf = confFile(
    `[enforcement]\nenabled_filters = MaxLeasesFilter\nmax_leases_per_project = 2\n[ledger]\nconnection = ${connection}\n`,
  );
  const context = { user_id: 'alice', project_id: 'climate' };
  const lease = {
    id: 'lease-1',
    name: 'first',
    start_date: COMING.start,
    end_date: COMING.end,
    reservations: [],
  };
  const requests = {
    create: { context, lease: { ...lease, id: undefined, name: 'another' } },
    update: { context, currentLease: lease, lease: { end_date: '2096-12-09' } },
    end: { context, lease },
  };
  for (const [operation, request] of Object.entries(requests)) {
    const file = temporaryFile('request.json', JSON.stringify(request));
    const { code, stderr } = await runInProcess(checkCommand(), [operation, file, '--config-file', conf]);
    expect({ operation, code, stderr }).toEqual({ operation, code: 0, stderr: '' });
    expect((await ledger('export')).stdout).toBe(before);
  }
});

describe('check --estimate', () => {
  const context = { user_id: 'alice', project_id: 'climate' };
  const hosts = (max: number) => [{ id: 'h', resource_type: 'physical:host', min: 1, max }];
  const lease = { name: 'mine', start_date: '2096-12-01', end_date: '2096-12-02', reservations: hosts(1) };

  async function estimated(operation: string, request: object, ...flags: string[]) {
    const connection = await newLedger();
    const conf = confFile(
      `[enforcement]\nenabled_filters = UsageBudgetFilter\n[ledger]\nconnection = ${connection}\n`,
    );
    const file = temporaryFile('request.json', JSON.stringify(request));
    return runProgramInProcess(['check', operation, file, '--estimate', '--config-file', conf, ...flags]);
  }

  it('shows what a lease takes, and what is left after it', async () => {
    const stdout = printed(await estimated('create', { context, lease }));
    expect(rows(stdout).at(-1)).toEqual([
      '',
      'takes',
      'UsageBudgetFilter',
      '24 of usage_budget/1, 928 left after it',
    ]);
  });

  it('shows what would be allowed instead of a change that is rejected', async () => {
    const request = {
      context,
      current_lease: { ...lease, id: 'mine' },
      lease: { end_date: '2098-02-02', reservations: hosts(1) },
    };
    const { code, stdout } = await estimated('update', request, '--format', 'json');
    expect(code).toBe(1);
    expect(answers(stdout)).toMatchObject([
      {
        operation: 'update',
        allowed: false,
        filter: 'UsageBudgetFilter',
        charges: [
          { amount: '9504', left: expect.stringMatching(/^-/) },
          { left: expect.stringMatching(/^-/) },
        ],
        suggestions: [{ change: 'shorter', lease: { end_date: '2097-01-09T16:00:00Z' } }],
        searched: expect.stringContaining('Found none that is smaller.'),
      },
    ]);
    const table = await estimated('update', request);
    expect(rows(table.stdout).map(([, what]) => what)).toContain('instead');
  });

  it('is not for ends, and not beside --explain', async () => {
    expect(await estimated('end', { context, lease })).toEqual(
      refusedWith('expected the operation create or update'),
    );
    expect((await estimated('create', { context, lease }, '--explain')).code).toBe(2);
  });
});
