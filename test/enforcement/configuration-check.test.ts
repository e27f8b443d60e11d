/** The checks that sections and filters make of their own values, after the schema has accepted them. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import type { Problem } from '../../src/base/errors.ts';
import type { FurtherSection } from '../../src/config/option-groups.ts';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { configFile, shown } from '../config/helpers.ts';
import { filterFolder } from '../support/filter-folder.ts';

let asked: unknown[] = [];

beforeEach(() => {
  asked = [];
  vi.stubGlobal('asked', asked);
});

/** A filter with the options `checked_path` and `checked_number`, and this body of `check`. It can't be constructed. */
const source = (body: string, schemaRules = '') => `import { BaseFilter, allow } from 'blazar-enforcement';
import { z } from 'zod';
export class CheckedFilter extends BaseFilter {
  static options = z.object({ checked_path: z.string().default('none'), checked_number: z.int().default(1) })${schemaRules};
  static check(options) { asked.push(options); ${body} }
  constructor() { throw new Error('constructed'); }
  checkCreate() { return allow(); }
  checkUpdate() { return allow(); }
  onEnd() {}
}
`;

async function problemsOf(filter: string, ...lines: readonly string[]): Promise<string[]> {
  const folder = filterFolder({ 'checked-filter.js': filter });
  const text = ['[enforcement]', `filters_path = ${folder}`, ...lines].join('\n');
  const configFiles = [configFile(text)];
  const { problems: found } = await readConfiguration({ configFiles, environment: {} });
  return found.map((problem) => `${problem.severity}: ${shown([problem])[0]}`);
}

const problems = (body: string, ...lines: readonly string[]) => problemsOf(source(body), ...lines);
const enabled = 'enabled_filters = CheckedFilter';
const AT_OPTION = "return [{ option: 'checked_path', message: 'expected a path' }];";
const IN_FILE = `return [
  { severity: 'error', origin: { kind: 'file', file: '/etc/zones.yaml', line: 9 }, message: 'zone: expected a text' },
  { severity: 'warning', origin: { kind: 'file', file: '/etc/zones.yaml', line: 2 }, message: 'zone: it is empty' },
];`;

describe('the check of a filter', () => {
  it('gets the values as the schema returns them, and constructs no filter', async () => {
    expect(await problems('return [];', enabled, 'checked_path = here')).toEqual([]);
    expect(asked).toEqual([{ checked_path: 'here', checked_number: 1 }]);
  });

  it('may report a mistake in an option, which gets the file and line of the option', async () => {
    expect(await problems(AT_OPTION, enabled, 'checked_number = 7', 'checked_path = here')).toEqual([
      'error: blazar.conf:5: [enforcement] checked_path: expected a path',
    ]);
  });

  it('is awaited', async () => {
    const later = `return new Promise((resolve) => setTimeout(resolve, 5)).then(() => { ${AT_OPTION} });`;
    expect(await problems(later, enabled, 'checked_path = here')).toEqual([
      'error: blazar.conf:4: [enforcement] checked_path: expected a path',
    ]);
  });

  it('may report problems in its own file, with place and severity, after those in blazar.conf', async () => {
    expect(await problems(IN_FILE, enabled, 'colour = red', 'checked_path = here')).toEqual([
      expect.stringMatching(/^(error|warning): blazar\.conf:4: .*colour/),
      'error: zones.yaml:9: zone: expected a text',
      'warning: zones.yaml:2: zone: it is empty',
    ]);
  });

  it('is not asked where the schema has something against the values', async () => {
    expect(await problems(AT_OPTION, enabled, 'checked_number = one')).toEqual([
      expect.stringMatching(/^error: blazar\.conf:4: \[enforcement\] checked_number: expected /),
    ]);
    expect(asked).toEqual([]);
  });

  it('is not called for a filter that is not enabled, but for one that is audited', async () => {
    await problems(AT_OPTION, 'checked_path = here');
    expect(asked).toEqual([]);
    const audited = await problems(AT_OPTION, 'audit_filters = CheckedFilter', 'checked_path = here');
    expect(audited).toContain('error: blazar.conf:4: [enforcement] checked_path: expected a path');
    expect(asked).toHaveLength(1);
  });

  it('that throws is one more mistake, and hides no other mistake', async () => {
    for (const filter of [
      source("throw new Error('no luck');"),
      source("return Promise.reject(new Error('no luck'));"),
      source('', ".superRefine(() => { throw new Error('no luck'); })"),
      source('return []; } static needsLedger() { throw new Error("no luck");'),
    ]) {
      expect(await problemsOf(filter, enabled, 'colour = red')).toEqual([
        'error: blazar.conf:3: [enforcement] enabled_filters: CheckedFilter could not check its options: no luck',
        expect.stringMatching(/^error: blazar\.conf:4: \[enforcement\] colour: /),
      ]);
    }
  });

  it('that takes more than a minute is one more mistake', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    const found = problems('return new Promise(() => {});', enabled);
    while (asked.length === 0) {
      await new Promise((done) => setImmediate(done));
    }
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await found).toEqual([
      expect.stringContaining('could not check its options: no answer within 60 s'),
    ]);
  });

  it('may be a static method that uses its class', async () => {
    expect(await problems('return this.name === "CheckedFilter" ? [] : [7];', enabled)).toEqual([]);
  });
});

describe('the check of a section', () => {
  const schema = z.object({
    checked_path: z.string().default('none'),
    a_list: z.array(z.string()).default([]),
  });
  const read = async (check: FurtherSection['check'], text: string) => {
    const further = { section: 'further', schema, check };
    const { problems: found } = await readConfiguration(
      { configFiles: [configFile(text)], environment: {} },
      [further],
    );
    return shown(found, 'error');
  };
  const inFile = (line: number): Problem => ({
    severity: 'error',
    origin: { kind: 'file', file: '/etc/zones.yaml', line },
    message: `wrong ${line}`,
  });

  it('may be asynchronous, and report problems of options and of files', async () => {
    const check = async () => [inFile(12), inFile(3), { option: 'checked_path', message: 'expected a path' }];
    expect(await read(check, '[further]\n\nchecked_path = x\n')).toEqual([
      'blazar.conf:3: [further] checked_path: expected a path',
      'zones.yaml:12: wrong 12',
      'zones.yaml:3: wrong 3',
    ]);
  });

  it('is not asked where the schema has something against the values', async () => {
    const check = vi.fn(() => [inFile(1)]);
    const further = { section: 'further', schema: z.object({ checked_number: z.int().default(1) }), check };
    const sources = { configFiles: [configFile('[further]\nchecked_number = one\n')], environment: {} };
    const { problems: found } = await readConfiguration(sources, [further]);
    expect(shown(found, 'error')).toEqual([
      expect.stringMatching(/^blazar\.conf:2: \[further\] checked_number: expected /),
    ]);
    expect(check).not.toHaveBeenCalled();
  });
});

describe('the watched files', () => {
  const watched = z.object({
    checked_path: z.string().optional().meta({ watched: true }),
    paths: z.array(z.string()).default([]).meta({ watched: true }),
    other: z.string().default('/etc/other'),
  });
  const named = async (text: string) => {
    const further = { section: 'further', schema: watched };
    const sources = { configFiles: [configFile(text)], environment: {} };
    return (await readConfiguration(sources, [further])).namedFiles;
  };

  it('are the files that watched options name, in texts and lists', async () => {
    expect(await named('[further]\nchecked_path = /etc/a\npaths = /etc/b, /etc/c\nother = /etc/d\n')).toEqual(
      ['/etc/a', '/etc/b', '/etc/c'],
    );
    expect(await named('')).toEqual([]);
  });
});

describe('an option that is deprecated', () => {
  const filter = source('').replace('default(1)', "default(1).meta({ deprecation: 'use checked_path' })");
  const found = (...lines: readonly string[]) => problemsOf(filter, enabled, ...lines);

  it('is read as before, with a warning that says where it is set and what to write instead', async () => {
    expect(await found('checked_number = 2')).toEqual([
      'warning: blazar.conf:4: [enforcement] checked_number: deprecated: use checked_path',
    ]);
    expect(asked).toEqual([{ checked_path: 'none', checked_number: 2 }]);
  });

  it('is not mentioned where it is not set', async () => {
    expect(await found()).toEqual([]);
  });
});
