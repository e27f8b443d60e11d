/** `open()` of filters is called once, before any check. If it throws, the configuration is refused. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ConfigurationError, UsageEnforcement } from '../../src/index.ts';
import { valuesOnly } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { createLasting } from '../support/requests.ts';
import { runService } from '../support/running-service.ts';

const AWAITED = 'await new Promise((resolve) => setTimeout(resolve, 5));';
const MISTAKES = `throw new ConfigurationError([
  { severity: 'error', origin: { kind: 'file', file: '/etc/list.yaml', line: 7 }, message: 'expected a name' },
  { severity: 'warning', message: 'it is long' },
  { severity: 'error', section: 'enforcement', option: 'a_list', message: 'expected a list' },
]);`;

let notes: string[] = [];

beforeEach(() => {
  notes = [];
  vi.stubGlobal('notes', notes);
});

/** Filters by name, with these bodies of `open`. Each records the calls that it gets. */
function filtersThatOpen(bodies: Readonly<Record<string, string>>) {
  const files = Object.entries(bodies).map(([letter, body]) => {
    const extra = `constructor(options, services) { super(options, services); notes.push('new ${letter}'); }
  async open() { notes.push('opening ${letter}'); ${body} notes.push('open ${letter}'); }
  close() { notes.push('closed ${letter}'); }`;
    const create = `notes.push('asked ${letter}'); return allow();`;
    const source = filterSource(`${letter}Filter`, { extra, create });
    return [
      `${letter.toLowerCase()}-filter.js`,
      `import { ConfigurationError } from 'blazar-enforcement';\n${source}`,
    ];
  });
  const names = Object.keys(bodies).map((letter) => `${letter}Filter`);
  return { files: Object.fromEntries(files) as Record<string, string>, names };
}

async function load(bodies: Readonly<Record<string, string>>, options: Record<string, unknown> = {}) {
  const { files, names } = filtersThatOpen(bodies);
  const values = { enforcement: { enabled_filters: names, filters_path: [filterFolder(files)], ...options } };
  const sources = valuesOnly(values);
  return UsageEnforcement.load(sources, { logger: recordingLogger() });
}

async function problemsOf(loading: Promise<unknown>) {
  const thrown: unknown = await loading.catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(ConfigurationError);
  return (thrown as ConfigurationError).problems;
}

describe('open', () => {
  it('is called once for each filter, one after the other, and awaited before any check', async () => {
    const enforcement = await load({ B: AWAITED, A: AWAITED });
    const opened = ['new B', 'opening B', 'open B', 'new A', 'opening A', 'open A'];
    expect(notes).toEqual(opened);
    await enforcement.checkCreate(createLasting(60));
    await enforcement.checkCreate(createLasting(60));
    expect(notes).toEqual([...opened, 'asked B', 'asked A', 'asked B', 'asked A']);
    await enforcement.close();
    expect(notes.slice(-2).sort()).toEqual(['closed A', 'closed B']);
  });

  it('is called for audited filters too', async () => {
    await load({ A: AWAITED }, { enabled_filters: [], audit_filters: ['AFilter'] });
    expect(notes).toContain('open A');
  });

  it('may be left out', async () => {
    const files = { 'plain-filter.js': filterSource('PlainFilter') };
    const values = { enforcement: { enabled_filters: ['PlainFilter'], filters_path: [filterFolder(files)] } };
    const enforcement = await UsageEnforcement.load(valuesOnly(values));
    expect((await enforcement.checkCreate(createLasting(60))).allowed).toBe(true);
  });

  it.each([
    ['throws', "throw new Error('no such host');"],
    ['rejects later', `${AWAITED} throw new Error('no such host');`],
    ['throws a value that is not an error', "throw 'no such host';"],
  ])(
    'that %s refuses the configuration, names the filter, and closes the opened filters',
    async (_, body) => {
      const problems = await problemsOf(load({ A: '', B: body, C: '' }));
      expect(problems).toEqual([
        {
          severity: 'error',
          origin: { kind: 'code' },
          section: 'enforcement',
          option: 'enabled_filters',
          message: expect.stringContaining('BFilter could not be set up: '),
        },
      ]);
      expect(problems[0]?.message).toContain('no such host');
      expect(notes).toEqual(expect.arrayContaining(['closed A', 'closed B']));
      expect(notes.join()).not.toContain('C');
    },
  );

  it('that takes more than a minute refuses the configuration', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    const problems = problemsOf(load({ A: 'await new Promise(() => {});' }));
    while (!notes.includes('opening A')) {
      await new Promise((done) => setImmediate(done));
    }
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await problems).toMatchObject([{ message: 'AFilter could not be set up: no answer within 60 s' }]);
  });

  it('that throws a ConfigurationError keeps its problems, and closes the opened filters', async () => {
    const problems = await problemsOf(load({ A: '', B: MISTAKES }));
    expect(problems).toEqual([
      {
        severity: 'error',
        origin: { kind: 'file', file: '/etc/list.yaml', line: 7 },
        message: 'expected a name',
      },
      { severity: 'warning', message: 'it is long' },
      { severity: 'error', section: 'enforcement', option: 'a_list', message: 'expected a list' },
    ]);
    expect(notes).toEqual(expect.arrayContaining(['closed A', 'closed B']));
  });
});

describe('in a service', () => {
  it('filters are opened before the port answers', async () => {
    const { files, names } = filtersThatOpen({ A: AWAITED });
    const { post } = await runService({ filters: files, enforcement: { enabled_filters: names } });
    expect(notes).toEqual(['new A', 'opening A', 'open A']);
    expect((await post('/check-create', createLasting(60))).status).toBe(204);
  });
});
