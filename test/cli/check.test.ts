import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { answers, check, FITS, NINE_DAYS, rows, TOO_LONG, TWO_DAYS } from '../support/check-command.ts';
import { capturedFile, confFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { runCommand } from '../support/run-command.ts';

describe('check', () => {
  it('prints a row a file, in the order of the files, and exits with 1 when one is rejected', async () => {
    const { code, stdout, stderr } = await check('create', [NINE_DAYS, FITS, NINE_DAYS]);
    const rejected = [NINE_DAYS, 'create', 'rejected', 'MaxLeaseDurationFilter', TOO_LONG];
    expect(rows(stdout)).toEqual([
      ['FILE', 'OPERATION', 'ANSWER', 'FILTER', 'MESSAGE'],
      rejected,
      [FITS, 'create', 'allowed'],
      rejected,
    ]);
    expect(stderr).toBe('');
    expect(code).toBe(1);
  });

  it('exits with 0 when all are allowed', async () => {
    expect(await check('create', [FITS, FITS])).toMatchObject({ code: 0, stderr: '' });
  });

  it('prints one JSON object a line with exactly the promised fields', async () => {
    const { code, stdout } = await check('create', [FITS, NINE_DAYS], '--format', 'json');
    expect(code).toBe(1);
    const [allowed, rejected] = answers(stdout);
    const names = ['file', 'operation', 'allowed', 'message', 'filter', 'failed', 'warnings', 'outcomes'];
    expect(Object.keys(allowed ?? {})).toEqual(names);
    expect(Object.keys(rejected ?? {})).toEqual(names);
    expect(allowed).toEqual({
      file: FITS,
      operation: 'create',
      allowed: true,
      message: null,
      filter: null,
      failed: false,
      warnings: [],
      outcomes: [
        {
          filter: 'MaxLeaseDurationFilter',
          allowed: true,
          message: null,
          failed: false,
          onError: false,
          audit: false,
          changed: false,
          milliseconds: expect.any(Number),
        },
      ],
    });
    expect(rejected).toMatchObject({
      file: NINE_DAYS,
      allowed: false,
      message: TOO_LONG,
      filter: 'MaxLeaseDurationFilter',
      failed: false,
      outcomes: [{ allowed: false, message: TOO_LONG }],
    });
    expect(answers(stdout)).toHaveLength(2);
  });

  it('judges a captured update', async () => {
    const { code, stdout } = await check('update', [capturedFile('check-update-extend')], '--format', 'json');
    expect(answers(stdout)).toMatchObject([
      { operation: 'update', allowed: false, message: expect.stringContaining('345600 seconds (4 days)') },
    ]);
    expect(code).toBe(1);
  });

  it('tells the filters of a captured end', async () => {
    const { code, stdout } = await check('end', [capturedFile('on-end-active')], '--format', 'json');
    expect(answers(stdout)).toMatchObject([
      { operation: 'end', allowed: true, message: null, filter: null, failed: false, warnings: [] },
    ]);
    expect(code).toBe(0);
  });

  it('says of an end that the filters were told, since nobody was asked', async () => {
    const end = capturedFile('on-end-active');
    const { code, stdout } = await check('end', [end]);
    expect(rows(stdout)[1]).toEqual([end, 'end', 'told']);
    expect(code).toBe(0);
  });

  it('reads standard input at -, in its place among the files', async () => {
    const { code, stdout } = await runCommand(
      ['check', 'create', FITS, '-', '--config-file', confFile(TWO_DAYS), '--format', 'json'],
      { stdin: readFileSync(NINE_DAYS) },
    );
    expect(answers(stdout)).toMatchObject([
      { file: FITS, allowed: true },
      { file: '-', allowed: false, message: TOO_LONG },
    ]);
    expect(code).toBe(1);
  });

  it('refuses to read standard input twice', async () => {
    const result = await runCommand(['check', 'create', '-', '-', '--config-file', confFile(TWO_DAYS)], {
      stdin: readFileSync(FITS),
    });
    expect(result).toEqual({
      code: 2,
      stdout: '',
      stderr: 'error: standard input (-) can be read once\n',
    });
  });

  it('reads the file that BLAZAR_ENFORCEMENT_CONFIG names', async () => {
    const env = { BLAZAR_ENFORCEMENT_CONFIG: confFile(TWO_DAYS) };
    expect(await runCommand(['check', 'create', NINE_DAYS], { env })).toMatchObject({ code: 1, stderr: '' });
    const laxer = { ...env, OS_ENFORCEMENT__MAX_LEASE_DURATION: '777600' };
    expect(await runCommand(['check', 'create', NINE_DAYS], { env: laxer })).toMatchObject({ code: 0 });
  });

  it('judges nothing with a configuration that has mistakes, and lists them all', async () => {
    const conf = confFile(`${TWO_DAYS}max_lease_duraton = 60\nexternal_service_timeout = soon\n`);
    const { code, stdout, stderr } = await runCommand(['check', 'create', FITS, '--config-file', conf]);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain(`error: ${conf}:4: [enforcement] max_lease_duraton: unknown option`);
    expect(stderr).toContain(`error: ${conf}:5: [enforcement] external_service_timeout: expected`);
  });
});

describe('check --explain', () => {
  it('asks every filter, also behind the first rejection', async () => {
    const folder = filterFolder({
      'late-filter.js': filterSource('LateFilter', { create: "return reject('late says no');" }),
    });
    const flags = ['--config', `enforcement.filters_path=${folder}`];
    flags.push('--config', 'enforcement.enabled_filters=MaxLeaseDurationFilter,LateFilter');
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
    expect(rows(stdout).slice(2)).toEqual([
      ['', 'rejected', 'MaxLeaseDurationFilter', TOO_LONG],
      ['', 'rejected', 'LateFilter', 'late says no'],
    ]);
    expect(code).toBe(1);
  });
});
