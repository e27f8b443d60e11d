/** Names between backticks in prose exist: options, attributes, files, flags, scripts. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { knownOptions } from '../../src/cli/common/known-options.ts';
import { createProgram } from '../../src/cli/program.ts';
import * as library from '../../src/index.ts';
import {
  NEEDED_FOR_CALENDARS,
  NEEDED_FOR_DECISIONS,
  NEEDED_FOR_OUTBOX,
  NEEDED_FOR_REQUESTS,
  NEEDED_FOR_SESSIONS,
} from '../../src/ledger/storage/rights.ts';
import { projectFile } from '../support/files.ts';
import { codeSpans, isProjectPath, PAGES } from './markdown.ts';

/** Without the changelog, and without the example, which has names of its own. */
const pages = PAGES.filter(({ name }) => name !== 'CHANGELOG.md' && !name.startsWith('external-'));

/** The code blocks of the pages, and requests that a real Blazar sent. */
const shownText = [
  ...pages.flatMap(({ blocks }) => blocks.map(({ text }) => text)),
  ...readdirSync(projectFile('test/fixtures/blazar-wire')).map((name) =>
    readFileSync(projectFile(`test/fixtures/blazar-wire/${name}`), 'utf8'),
  ),
].join('\n');
const isShown = (word: string) => new RegExp(`\\b${word}(?![a-z])`).test(shownText);

const { commands } = await createProgram();
const COMMANDS = commands.map((command) => command.name());
/** Every command has the last two. */
const FLAGS = [
  ...commands.flatMap((command) => [command, ...command.commands]).flatMap(({ options }) => options),
  { long: '--help' },
  { long: '--version' },
].map(({ long }) => long);

const TABLES = Object.keys({
  ...NEEDED_FOR_OUTBOX,
  ...NEEDED_FOR_DECISIONS,
  ...NEEDED_FOR_SESSIONS,
  ...NEEDED_FOR_REQUESTS,
  ...NEEDED_FOR_CALENDARS,
});

/** Names of others, or only in the log: upstream's hook, the documented field, SkyPilot's alternatives, Blazar's flavors, parameters of PostgreSQL. */
const FOREIGN = [
  // Options of PgBouncer.
  'pool_mode',
  'ignore_startup_parameters',
  'default_pool_size',
  'query_wait_timeout',
  // Of lines of the log, about a trace.
  'trace_id',
  // Of a container, in rules about pods.
  'is_init',
  // Keys of cases about pods.
  'pod_file',
  'pod_paths',
  'service_account',
  // A table of the ledger.
  'decision_filters',
  'folds',
  'folded_balances',
  // Of a decision on a request of SkyPilot.
  'changes_left_out',
  'request_left_out',
  'on_end',
  'end_time',
  'any_of',
  'user_type',
  'allowed_users',
  'flavor_id',
  'os_region_name',
  'last_filter',
  'application_name',
  'client_encoding',
  'client_min_messages',
  'connect_timeout',
  'max_connections',
  'synchronous_commit',
  'synchronous_standby_names',
  // Of OpenID Connect.
  'backchannel_logout_supported',
  'backchannel_logout_uri',
  'invalid_grant',
  'jwks_uri',
  'offline_access',
  // Of Kolla-Ansible and OpenStack-Ansible.
  'blazar_blazar_conf_overrides',
  'haproxy_extra_services',
  // Of the Ansible role.
  'blazar_enforcement_blazar_conf',
  'blazar_enforcement_image',
  'blazar_enforcement_install',
  'blazar_enforcement_nginx_conf',
  'blazar_enforcement_options',
  'blazar_keystone_password',
  'blazar_service_password',
  'keystone_service_internaluri',
];
/** Keys of SkyPilot's configurations and tasks. */
const SKYPILOT = new Set(
  [...readFileSync(projectFile('src/skypilot/schema/data.json'), 'utf8').matchAll(/"(\w+)":/g)].map(
    ([, key]) => key,
  ),
);
/** operations.proof.test.ts compares them with the code. */
const METRIC = /^blazar_enforcement_/;

describe.each(pages)('$name', (page) => {
  const spans = codeSpans(page);
  /** Names in code spans that the pattern finds and that do not exist. */
  const strange = (pattern: RegExp, exists: (name: string) => boolean) =>
    spans
      .map(({ line, text }) => ({ line, name: pattern.exec(text)?.[1] }))
      .filter(({ name }) => name !== undefined && !exists(name));

  it('names options and attributes that exist', async () => {
    const options = (await knownOptions()).options.map(({ name }) => name);
    const exists = (name: string) =>
      options.includes(name) ||
      isShown(name) ||
      TABLES.includes(name) ||
      FOREIGN.includes(name) ||
      SKYPILOT.has(name) ||
      METRIC.test(name);
    expect(strange(/^([a-z]+(?:_[a-z]+)+)(?: = .*)?$/, exists)).toEqual([]);
  });

  it('names files and folders that exist', () => {
    const root = /^((?:src|filters|etc|examples|test|bench|docs|external-service-example)\/[^\s…*]*)$/;
    const invented = ['filters/my-rule-filter.ts', 'test/filters/my-rule-filter.test.ts'];
    expect(strange(root, (path) => isProjectPath(path) || invented.includes(path))).toEqual([]);
  });

  it('names scripts that exist', () => {
    const { scripts } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
    const known = [...Object.keys(scripts), 'ci', 'install', 'install-scripts', 'pack', 'version'];
    expect(strange(/^npm (?:run )?([a-z][a-z:-]*)/, (name) => known.includes(name))).toEqual([]);
  });

  it('names flags and commands that exist', () => {
    expect(strange(/^(?:blazar-enforcement .*)?(--[a-z-]+)/, (name) => FLAGS.includes(name))).toEqual([]);
    expect(strange(/^blazar-enforcement ([a-z-]+)/, (name) => COMMANDS.includes(name))).toEqual([]);
  });
});

it('everything that the package exports is explained on a page', () => {
  const text = pages.flatMap(({ lines }) => lines).join('\n');
  expect(Object.keys(library).filter((name) => !text.includes(name))).toEqual([]);
});
