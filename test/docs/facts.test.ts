/** Tables and figures on the pages, checked against the code. */
import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { knownOptions } from '../../src/cli/common/known-options.ts';
import { ExitCode } from '../../src/cli/common/output.ts';
import { optionsTable } from '../../src/config/text.ts';
import type {
  CheckOptions,
  ConfigSources,
  EnforcementServices,
  FilterServices,
  LogLevel,
} from '../../src/index.ts';
import {
  NEEDED_FOR_CALENDARS,
  NEEDED_FOR_DECISIONS,
  NEEDED_FOR_OUTBOX,
  NEEDED_FOR_SESSIONS,
} from '../../src/ledger/storage/rights.ts';
import { loadValues } from '../filters/loaded.ts';
import { projectFile } from '../support/files.ts';
import { createPhysicalHost, endActive } from '../support/requests.ts';
import { namesUnder, PAGES, pageNamed, tableUnder } from './markdown.ts';

const manifest = JSON.parse(readFileSync(projectFile('package.json'), 'utf8')) as {
  dependencies: Readonly<Record<string, string>>;
  optionalDependencies: Readonly<Record<string, string>>;
  engines: { node: string };
  version: string;
};

/** Markdown without what the formatter does to it. */
const bare = (markdown: string) => markdown.trim().replace(/ +/g, ' ').replace(/-{3,}/g, '---');

describe('README.md', () => {
  const page = pageNamed('README.md');

  it('fits on a screen and a half and has the two commands', () => {
    expect(page.lines.length).toBeLessThanOrEqual(90);
    const text = page.lines.join('\n');
    expect(text).toContain('npm ci && npm start');
    expect(text).toContain('npm ci && npm test');
  });

  it('names the oldest Node.js that will do', () => {
    expect(page.lines.join('\n')).toContain(`Node.js ${manifest.engines.node.replace('>=', '')} or newer`);
  });
});

it('CHANGELOG.md has the version of package.json', () => {
  expect(pageNamed('CHANGELOG.md').lines.join('\n')).toMatch(
    new RegExp(`^## \\[${manifest.version.replaceAll('.', '\\.')}\\] - \\d{4}-\\d\\d-\\d\\d$`, 'm'),
  );
});

it('docs/architecture.md explains every dependency', () => {
  expect(namesUnder(pageNamed('docs/architecture.md'), 'Dependencies').sort()).toEqual(
    Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }).sort(),
  );
});

it('every page quotes the sentence for a failure exactly', async () => {
  const { enforcement } = await loadValues({ enabled_filters: ['MaxLeaseDurationFilter'] });
  const options = { signal: AbortSignal.abort() };
  const { failed, message } = await enforcement.checkCreate(createPhysicalHost(), options);
  expect(failed).toBe(true);
  const sentences = PAGES.flatMap(
    ({ lines }) => lines.join('\n').match(/The lease could not be[^`|"\n]*/g) ?? [],
  );
  expect(new Set(sentences.map((text) => text.trim()))).toEqual(new Set([message]));
});

describe('docs/reference', () => {
  const page = (name: string) => pageNamed(`docs/reference/${name}.md`);

  it('has the generated table of options', async () => {
    const text = page('options').lines.join('\n');
    const [, table = ''] = /<!-- options -->(.*)<!-- \/options -->/s.exec(text) ?? [];
    expect(bare(table)).toBe(bare(optionsTable((await knownOptions()).options)));
  });

  it('names every level of the log, with its number', () => {
    const { error, warn, info, debug } = pino.levels.values;
    const levels: Record<LogLevel, number | undefined> = { silent: undefined, error, warn, info, debug };
    expect(tableUnder(page('log'), 'Levels').map(([level, number]) => [level, number])).toEqual(
      Object.entries(levels).map(([level, number]) => [`\`${level}\``, String(number ?? '')]),
    );
  });

  it('names every exit code', () => {
    expect(namesUnder(page('exit-codes'), 'Exit codes').map(Number)).toEqual(Object.values(ExitCode));
  });
});

describe('docs/reference/ledger.md', () => {
  it('names the rights that stores besides the ledger need', () => {
    const rights = pageNamed('docs/reference/ledger.md').lines.find((line) =>
      line.startsWith('- **Rights:**'),
    );
    const code = (names: readonly string[]) =>
      names
        .map((name) => `\`${name}\``)
        .join(', ')
        .replace(/, (?=[^,]*$)/, ' and ');
    const { kysely_migration: _, ...decisions } = NEEDED_FOR_DECISIONS;
    expect(rights).toContain(`${code(NEEDED_FOR_OUTBOX.outbox)} on \`outbox\``);
    expect(rights).toContain(`${code(decisions.decisions)} on ${code(Object.keys(decisions))}`);
    expect(decisions.decision_filters).toEqual(decisions.decisions);
    const { kysely_migration: __, ...sessions } = NEEDED_FOR_SESSIONS;
    expect(rights).toContain(`${code(sessions.sessions)} on ${code(Object.keys(sessions))}`);
    expect(sessions.login_counts).toEqual(sessions.sessions);
    expect(rights).toContain(`${code(NEEDED_FOR_CALENDARS.calendar_links)} on \`calendar_links\``);
  });
});

describe('docs/filter-author.md', () => {
  const page = pageNamed('docs/filter-author.md');

  it('starts from the smallest filter as it is shipped', () => {
    const block = page.blocks.find(({ file }) => file?.endsWith('/no-op-filter.js'));
    expect(block?.text).toBe(readFileSync(projectFile('examples/filters/no-op-filter.js'), 'utf8'));
  });
});

describe('docs/reference/filter-contract.md', () => {
  const page = pageNamed('docs/reference/filter-contract.md');

  it('names everything that a schema can say about an option', () => {
    const source = readFileSync(projectFile('src/config/option.ts'), 'utf8');
    const [, members = ''] = /interface GlobalMeta \{(.*?)\n {2}\}/s.exec(source) ?? [];
    const keys = [...members.matchAll(/^ +(\w+)\?:/gm)].map(([, key]) => key);
    expect(namesUnder(page, 'Meta')).toEqual(['description', ...keys]);
  });
});

it('docs/reference/library.md names the fields of decisions, outcomes and reports', async () => {
  const { enforcement } = await loadValues({ enabled_filters: ['MaxLeaseDurationFilter'] });
  const decision = await enforcement.checkCreate(createPhysicalHost());
  const report = await enforcement.onEnd(endActive());
  const page = pageNamed('docs/reference/library.md');
  expect(namesUnder(page, 'Decision').sort()).toEqual(Object.keys(decision).sort());
  expect(namesUnder(page, 'Outcome').sort()).toEqual(Object.keys(decision.outcomes[0] ?? {}).sort());
  expect(namesUnder(page, 'EndReport').sort()).toEqual(Object.keys(report).sort());
});

/** Every name of an interface, in the order of the page: the compiler refuses one that is missing here or unknown. */
const named = <T>(names: Record<keyof T, true>) => Object.keys(names);

it.each([
  [
    'docs/reference/library.md',
    'Sources',
    named<ConfigSources>({
      configFiles: true,
      configDirs: true,
      environment: true,
      config: true,
      values: true,
    }),
  ],
  [
    'docs/reference/library.md',
    'Services',
    named<EnforcementServices>({
      logger: true,
      httpObserver: true,
      ledgerObserver: true,
      namesObserver: true,
      clock: true,
    }),
  ],
  [
    'docs/reference/library.md',
    'CheckOptions',
    named<CheckOptions>({
      signal: true,
      deadline: true,
      explain: true,
      acceptsChanges: true,
      dryRun: true,
      requestId: true,
      idempotencyKey: true,
    }),
  ],
  [
    'docs/reference/filter-contract.md',
    'Services',
    named<FilterServices>({
      logger: true,
      clock: true,
      http: true,
      ledger: true,
      keystone: true,
      outbox: true,
      ruleObserver: true,
    }),
  ],
])('%s names all %s', (name, heading, names) => {
  expect(namesUnder(pageNamed(name), heading)).toEqual(names);
});
