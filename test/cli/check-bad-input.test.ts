import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { capturedFile, projectFile, temporaryFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

const LIMIT = 8 * 1024 * 1024;

const CONTEXT = { user_id: 'alice', project_id: 'climate' };
const DATES = { start_date: '2026-12-01T09:00:00', end_date: '2026-12-02T09:00:00' };
const request = (lease: object, context: object = CONTEXT) => JSON.stringify({ context, lease });

/** Name → content of the file, and the message about it. */
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

const check = (files: readonly string[], stdin = '', ...flags: string[]) =>
  runProgramInProcess(
    ['check', 'create', ...files, '--config-file', projectFile('etc/policy-service.conf'), ...flags],
    { stdin },
  );
const refusal = (name: string, complaint: string) => ({
  code: 2,
  stdout: '',
  stderr: `error: ${name}: ${complaint}\n`,
});

describe('check of a file that is not a request', () => {
  it.for(Object.entries(BAD_FILES))(
    'exits with 2 and one line with the file and what was expected: %s',
    async ([name, [content, complaint]]) => {
      const file = temporaryFile(`${name}.json`, content);
      expect(await check([file])).toEqual(refusal(file, complaint));
    },
  );

  it('says that a file is missing, is a folder, or has no end', async () => {
    const folder = temporaryFolder();
    const missing = join(folder, 'missing.json');
    expect(await check([missing])).toEqual(refusal(missing, 'could not be read: there is no such file'));
    expect(await check([folder])).toEqual(refusal(folder, 'could not be read: it is a folder'));
    expect(await check(['/dev/zero'])).toEqual(
      refusal('/dev/zero', `could not be read: it is longer than ${LIMIT} bytes`),
    );
  });

  it('prints no answer when another file cannot be read', async () => {
    const files = [capturedFile('check-create-physical-host'), join(temporaryFolder(), 'missing.json')];
    expect(await check(files, '', '--format', 'json')).toMatchObject({ code: 2, stdout: '' });
  });

  it.for([
    ['empty', '', 'expected JSON'],
    ['not JSON', '{', 'expected JSON'],
    ['too long', ' '.repeat(LIMIT + 1), `could not be read: it is longer than ${LIMIT} bytes`],
  ] as const)('refuses standard input that is %s', async ([, stdin, complaint]) => {
    expect(await check(['-'], stdin)).toEqual(refusal('standard input', complaint));
  });
});

describe('check', () => {
  it('judges a request of exactly the maximum size', async () => {
    const file = temporaryFile('largest.json', request(DATES).padEnd(LIMIT));
    expect(await check([file])).toMatchObject({ code: 0, stderr: '' });
  });

  it('accepts attributes of any name and any depth', async () => {
    const depth = 50_000;
    const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const text = `{"context":{"user_id":"alice","project_id":"climate","__proto__":{"x":1}},"lease":{"start_date":"2026-12-01","end_date":"2026-12-02","__proto__":null,"constructor":1,"deep":${deep}}}`;
    expect(await check([temporaryFile('strange.json', text)])).toMatchObject({ code: 0, stderr: '' });
  });
});
