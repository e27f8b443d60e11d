import { describe, expect, it } from 'vitest';
import { answers, check, FITS, NINE_DAYS, rows, TOO_LONG } from '../support/check-command.ts';
import { capturedFile, temporaryFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { createLasting } from '../support/requests.ts';

describe('check with a filter that fails', () => {
  const failing = filterSource('FailingFilter', {
    create:
      "if (context.project_id === 'climate') { throw new Error('the quota file is gone'); } return allow();",
    end: "throw new Error('nobody listens');",
  });
  const flags = () => {
    const folder = filterFolder({ 'failing-filter.js': failing });
    return [
      ...['--config', `enforcement.filters_path=${folder}`],
      ...['--config', 'enforcement.enabled_filters=FailingFilter,MaxLeaseDurationFilter'],
    ];
  };

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

describe('check', () => {
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

  it('runs no filter for an exempt project, and says so', async () => {
    const flags = ['--config', 'enforcement.exempt_projects=a0b86a98b0d343cb948e00689182efd4'];
    const { code, stdout } = await check('create', [NINE_DAYS], ...flags, '--format', 'json');
    expect(answers(stdout)).toMatchObject([
      { allowed: true, outcomes: [], warnings: [expect.stringContaining('exempt_projects')] },
    ]);
    expect(code).toBe(0);
  });

  it('names the values to set when a filter changes the lease', async () => {
    const folder = filterFolder({
      'shorten-filter.js': filterSource('ShortenFilter', {
        create: "return allow({ ...lease, end_date: '2026-12-02T09:00:00' });",
      }),
    });
    const { code, stdout } = await check(
      'create',
      [FITS],
      ...['--config', `enforcement.filters_path=${folder}`],
      ...['--config', 'enforcement.enabled_filters=ShortenFilter'],
      ...['--format', 'json'],
    );
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
