import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { capturedFile, projectFile } from '../support/files.ts';
import { runCommand } from '../support/run-command.ts';

const LIMIT = 8 * 1024 * 1024;
const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CONTEXT = { user_id: 'alice', project_id: 'climate' };
const DATES = { start_date: '2026-12-01T09:00:00', end_date: '2026-12-02T09:00:00' };
const request = (lease: object, context: object = CONTEXT) => JSON.stringify({ context, lease });

/** Name → what the file holds, and what is said about it. */
const BAD_FILES: Record<string, [content: string | Uint8Array, complaint: string]> = {
  'not-json': ['{"context":', 'expected JSON'],
  empty: ['', 'expected JSON'],
  'not-utf-8': [Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), 'could not be read: it is not UTF-8 text'],
  huge: [request(DATES).padEnd(LIMIT + 1), `could not be read: it is longer than ${LIMIT} bytes`],
  array: ['[]', 'expected an object, got a list'],
  'no-context': ['{"lease":{}}', 'context: expected an object, got nothing'],
  'user-id-number': [request(DATES, { ...CONTEXT, user_id: 7 }), 'context.user_id: expected a text, got 7'],
  'project-id-empty': [
    request(DATES, { ...CONTEXT, project_id: '' }),
    'context.project_id: expected a text that is not empty, got ""',
  ],
  'date-wrong': [
    request({ ...DATES, end_date: 'tomorrow' }),
    'lease.end_date: expected an ISO 8601 date, got "tomorrow"',
  ],
  'end-before-start': [
    request({ ...DATES, end_date: '2026-11-30T09:00:00' }),
    'lease.end_date: expected a date that is not before start_date, got "2026-11-30T09:00:00"',
  ],
  'reservations-object': [
    request({ ...DATES, reservations: {} }),
    'lease.reservations: expected a list, got an object',
  ],
};

function check(files: readonly string[], ...flags: string[]) {
  return runProgramInProcess([
    'check',
    'create',
    ...files,
    '--config-file',
    projectFile('etc/policy-service.conf'),
    ...flags,
  ]);
}

describe('check of a file that is no request', () => {
  it.for(Object.entries(BAD_FILES))(
    'exits with 2 and one line that names the file and what was expected: %s',
    async ([name, [content, complaint]]) => {
      const file = join(folder, `${name}.json`);
      writeFileSync(file, content);
      expect(await check([file])).toEqual({ code: 2, stdout: '', stderr: `error: ${file}: ${complaint}\n` });
    },
  );

  it('says so of a file that is missing, and of a folder', async () => {
    const missing = join(folder, 'missing.json');
    expect(await check([missing])).toEqual({
      code: 2,
      stdout: '',
      stderr: `error: ${missing}: could not be read: there is no such file\n`,
    });
    expect(await check([folder])).toMatchObject({
      code: 2,
      stderr: `error: ${folder}: could not be read: it is a folder\n`,
    });
  });

  it('reads of a file without an end no more than the limit', async () => {
    expect(await check(['/dev/zero'])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: `error: /dev/zero: could not be read: it is longer than ${LIMIT} bytes\n`,
    });
  });

  it('finds what can not be read before it prints the answer to what can', async () => {
    const good = capturedFile('check-create-physical-host');
    const missing = join(folder, 'missing.json');
    expect(await check([good, missing], '--format', 'json')).toMatchObject({ code: 2, stdout: '' });
  });

  it('judges a request of exactly the size that is allowed', async () => {
    const file = join(folder, 'as-large-as-may-be.json');
    writeFileSync(file, request(DATES).padEnd(LIMIT));
    expect(await check([file])).toMatchObject({ code: 0, stderr: '' });
  });

  it('says the same of standard input: empty, no JSON, or too long', async () => {
    const args = ['check', 'create', '-', '--config-file', projectFile('etc/policy-service.conf')];
    const answer = (complaint: string) => ({
      code: 2,
      stdout: '',
      stderr: `error: standard input: ${complaint}\n`,
    });
    expect(await runCommand(args)).toEqual(answer('expected JSON'));
    expect(await runCommand(args, { stdin: '{' })).toEqual(answer('expected JSON'));
    expect(await runCommand(args, { stdin: ' '.repeat(LIMIT + 1) })).toEqual(
      answer(`could not be read: it is longer than ${LIMIT} bytes`),
    );
  });

  it('takes attributes for attributes, whatever they are called and however deep they go', async () => {
    const depth = 50_000;
    const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const text = `{"context":{"user_id":"alice","project_id":"climate","__proto__":{"x":1}},"lease":{"start_date":"2026-12-01","end_date":"2026-12-02","__proto__":null,"constructor":1,"deep":${deep}}}`;
    const file = join(folder, 'strange.json');
    writeFileSync(file, text);
    expect(await check([file])).toMatchObject({ code: 0, stderr: '' });
  });
});
