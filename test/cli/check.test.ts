import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { answers, check, FITS, NINE_DAYS, rows, TOO_LONG, TWO_DAYS } from '../support/check-command.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { capturedFile, confFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { runCommand } from '../support/run-command.ts';

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
  });

  it('exits with 0 when all are allowed', async () => {
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

  it('judges a captured update', async () => {
    const { code, stdout } = await check('update', [capturedFile('check-update-extend')], '--format', 'json');
    expect(code).toBe(1);
    expect(answers(stdout)).toMatchObject([
      { operation: 'update', allowed: false, message: expect.stringContaining('345600 seconds (4 days)') },
    ]);
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
  });

  it('refuses to read standard input twice', async () => {
    expect(await check('create', ['-', '-'])).toEqual({
      code: 2,
      stdout: '',
      stderr: 'error: standard input (-) can be read once\n',
    });
  });

  it('takes a variable over the file that BLAZAR_ENFORCEMENT_CONFIG names', async () => {
    const env = { BLAZAR_ENFORCEMENT_CONFIG: confFile(TWO_DAYS) };
    const run = (variables: Record<string, string>) =>
      runProgramInProcess(['check', 'create', NINE_DAYS], { env: variables });
    expect(await run(env)).toMatchObject({ code: 1, stderr: '' });
    expect(await run({ ...env, OS_ENFORCEMENT__MAX_LEASE_DURATION: '777600' })).toMatchObject({ code: 0 });
  });

  it('judges nothing with a configuration that has mistakes, and lists them all', async () => {
    const conf = confFile(`${TWO_DAYS}max_lease_duraton = 60\nexternal_service_timeout = soon\n`);
    const { code, stdout, stderr } = await runProgramInProcess([
      ...['check', 'create', FITS, '--config-file', conf],
    ]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`error: ${conf}:4: [enforcement] max_lease_duraton: unknown option`);
    expect(stderr).toContain(`error: ${conf}:5: [enforcement] external_service_timeout: expected`);
  });

  it('--explain runs every filter, also after the first rejection', async () => {
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
    expect(code).toBe(1);
    expect(rows(stdout).slice(2)).toEqual([
      ['', 'rejected', 'MaxLeaseDurationFilter', TOO_LONG],
      ['', 'rejected', 'LateFilter', 'late says no'],
    ]);
  });
});
