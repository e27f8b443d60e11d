/** `npm run bench`, as a developer types it: its topics, its options, what it prints. With PostgreSQL and the peers that are there. */
import { execFile, spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { Result } from '../../bench/harness/results.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

const MAIN = fileURLToPath(new URL('../../dist/bench/main.js', import.meta.url));
const TIMEOUT = 1_800_000;

function bench(...flags: string[]): Promise<{ stdout: string; stderr: string }> {
  return benchWith({}, ...flags);
}

function benchWith(environment: NodeJS.ProcessEnv, ...flags: string[]) {
  return promisify(execFile)(process.execPath, [MAIN, ...flags], { env: { ...process.env, ...environment } });
}

const ONE_TOPIC = ['--quick', '--runs', '1', '--only', 'cold-start'];
const pageIn = (folder: string) => readFileSync(join(folder, 'performance.md'), 'utf8');

/** What is promised, row by row. */
const TARGETS: Readonly<Record<string, unknown>> = {
  'check: one filter, allowed': { atMost: 0.35 },
  'check: one filter, allowed, compact': null,
  'check: ten filters, allowed': { atMost: 0.75 },
  'check: large lease, allowed': { atMost: 1.2 },
  'check: one filter, rejected': { atMost: 0.4 },
  'check: one filter, rejected, compact': null,
  'check: ten filters, rejected': { atMost: 0.85 },
  'check: large lease, rejected': { atMost: 1.2 },
  'peers: cedar-wasm, allowed': { atLeast: 5 },
  'peers: cedar-wasm, rejected': { atLeast: 5 },
  'peers: casbin, enforce, allowed': { atLeast: 5 },
  'peers: casbin, enforce, rejected': { atLeast: 5 },
  'peers: casbin, enforceSync, allowed': null,
  'peers: casbin, enforceSync, rejected': null,
  'upstream: formatting included': { atLeast: 2.4 },
  'upstream: formatting included, by processor time': null,
  'upstream: without formatting': null,
  'upstream: as Blazar calls it': null,
  'rules: fifty rules': { atMost: 2 },
  'rules: fifty rules, compact': null,
  'rules: ten rules, allowed': { atMost: 0.95 },
  'rules: ten rules, rejected by the last': { atMost: 1.15 },
  'rules: 100 rules beside 10': null,
  'rules: 1,000 rules beside 10': null,
  'rules: cedar-wasm, allowed': { atLeast: 25 },
  'rules: cedar-wasm, rejected': { atLeast: 12 },
  'rules: casbin, enforce, allowed': { atLeast: 8 },
  'rules: casbin, enforce, rejected': { atLeast: 3.9 },
  'rules: casbin, enforceSync, allowed': null,
  'rules: casbin, enforceSync, rejected': null,
  'rules: cel-js, evaluate, allowed': null,
  'rules: cel-js, evaluate, rejected': null,
  'replay: decisions': { atLeast: 0.75 },
  'replay: peak memory': { atMost: 1.2 },
  'external-service: calls': { atLeast: 0.8 },
  'external-service: calls of plain axios': null,
  'outbox: deliveries of on-end, SQLite': { atLeast: 0.5 },
  'cold-start: check create': { atMost: 3 },
  'cold-start: check create --format json': { atMost: 3 },
  'skypilot-review: three policies': { atMost: 5 },
  'skypilot-review: three policies in threads': { atMost: 3 },
  'skypilot-review: eight policies in threads, 2,000 lines': { atMost: 3 },
  'skypilot-review: eight policies alone, 2,000 lines': { atMost: 1 },
  'skypilot-review: eight policies alone in threads, 2,000 lines': null,
  'skypilot-review: eight policies and the YAML of 2,000 lines': null,
  'skypilot-review: no policy': null,
  'admission: requests': { atLeast: 0.6 },
  'admission: requests, by its processor': null,
  'admission: requests, policies of a cluster': { atMost: 1.15 },
  'admission: policies of a cluster': { atMost: 1.15 },
  'admission: policies of others': { atMost: 1.2 },
  'people-lists: projects, SQLite': { atMost: 2 },
  'people-lists: projects, searched, SQLite': { atMost: 2 },
  'people-lists: leases, SQLite': { atMost: 2 },
  'people-lists: leases of a user that ended, SQLite': { atMost: 2 },
  'people-lists: leases around a day, SQLite': { atMost: 2 },
  'people-lists: open leases, SQLite': { atMost: 2 },
  'people-lists: entries, SQLite': { atMost: 2 },
  'people-lists: clusters, SQLite': { atMost: 2 },
  'people-lists: open leases of a region without any, SQLite': { atMost: 2 },
  'people-lists: usage of three days, SQLite': { atMost: 2 },
  'people-lists: course of a budget over three days, SQLite': { atMost: 2 },
  'people-lists: usage of a year, SQLite': { atMost: 1 },
  'people-lists: leases of a user without any, SQLite': { atMost: 1 },
  'people-lists: the longest turn of any of them, SQLite': { atMost: 1 },
  'people-lists: projects, PostgreSQL': { atMost: 2 },
  'people-lists: projects, searched, PostgreSQL': { atMost: 2 },
  'people-lists: leases, PostgreSQL': { atMost: 2 },
  'people-lists: leases of a user that ended, PostgreSQL': { atMost: 2 },
  'people-lists: leases around a day, PostgreSQL': { atMost: 2 },
  'people-lists: open leases, PostgreSQL': { atMost: 2 },
  'people-lists: entries, PostgreSQL': { atMost: 2 },
  'people-lists: clusters, PostgreSQL': { atMost: 2 },
  'people-lists: open leases of a region without any, PostgreSQL': { atMost: 2 },
  'people-lists: usage of three days, PostgreSQL': { atMost: 2 },
  'people-lists: course of a budget over three days, PostgreSQL': { atMost: 2 },
  'people-lists: usage of a year, PostgreSQL': { atMost: 1 },
  'people-lists: leases of a user without any, PostgreSQL': { atMost: 1 },
  'people-lists: the longest turn of any of them, PostgreSQL': { atMost: 1 },
  'blazar: a round over 10,000 leases with nothing to do': { atMost: 1 },
  'blazar: a round that corrects 10,000 leases': null,
  'blazar: its memory, beside the service': { atMost: 1 },
  'blazar: checks during rounds with nothing to do': { atLeast: 0.7 },
  'blazar: the longest time for which a round with nothing to do holds the process': { atMost: 1 },
  'ledger: check and commit, SQLite': { atLeast: 0.5 },
  'ledger: check and commit, 64 at once, SQLite': { atLeast: 5 },
  'ledger: rows in one transaction, SQLite': null,
  'ledger: check and commit, beside one row, SQLite': null,
  'ledger: check and commit, PostgreSQL': { atLeast: 1.4 },
  'growth: check, 10,000 leases, SQLite': { atMost: 1.15 },
  'growth: check, 100,000 leases, SQLite': { atMost: 1.15 },
  'growth: check, 1,000,000 leases, SQLite': { atMost: 1.15 },
  'growth: check and commit, 10,000 leases, SQLite': { atMost: 1.15 },
  'growth: check and commit, 100,000 leases, SQLite': { atMost: 1.15 },
  'growth: check and commit, 1,000,000 leases, SQLite': { atMost: 1.15 },
  'growth: opening, 1,000,000 leases, SQLite': { atMost: 1 },
  'growth: opening, 1,000,000 leases, PostgreSQL': { atMost: 1 },
  'growth: check, 10,000 leases, PostgreSQL': { atMost: 1.15 },
  'growth: check, 100,000 leases, PostgreSQL': { atMost: 1.15 },
  'growth: check, 1,000,000 leases, PostgreSQL': { atMost: 1.15 },
  'growth: check and commit, 10,000 leases, PostgreSQL': { atMost: 1.15 },
  'growth: check and commit, 100,000 leases, PostgreSQL': { atMost: 1.15 },
  'growth: check and commit, 1,000,000 leases, PostgreSQL': { atMost: 1.15 },
  'ledger-clients: 1 client, 1 project': { atLeast: 1.2 },
  'ledger-clients: 4 clients, 1 project': { atLeast: 1.3 },
  'ledger-clients: 16 clients, 1 project': { atLeast: 2.5 },
  'ledger-clients: 64 clients, 1 project': { atLeast: 4.8 },
  'ledger-clients: 1 client, 64 projects': { atLeast: 1.4 },
  'ledger-clients: 4 clients, 64 projects': { atLeast: 0.9 },
  'ledger-clients: 16 clients, 64 projects': { atLeast: 0.9 },
  'ledger-clients: 64 clients, 64 projects': { atLeast: 1.8 },
  'ledger-clients: 16 projects at once, beside one': { atLeast: 8 },
  'ledger-clients: 16 projects at once, beside one, of pgbench': null,
  'ledger-clients: 16 commits at once, beside one, of pgbench': null,
  'decision-store: checks, SQLite': { atLeast: 0.9 },
  'decision-store: checks, by its processor, SQLite': null,
  'decision-store: decisions stored of checks, SQLite': { atLeast: 1 },
  'decision-store: checks without a filter on the ledger, SQLite': { atLeast: 0.9 },
  'decision-store: checks without a filter on the ledger, by its processor, SQLite': null,
  'decision-store: decisions stored of checks without a filter on the ledger, SQLite': { atLeast: 1 },
  'decision-store: checks, PostgreSQL': { atLeast: 0.9 },
  'decision-store: checks, by its processor, PostgreSQL': null,
  'decision-store: decisions stored of checks, PostgreSQL': { atLeast: 1 },
  'decision-store: checks without a filter on the ledger, PostgreSQL': { atLeast: 0.9 },
  'decision-store: checks without a filter on the ledger, by its processor, PostgreSQL': null,
  'decision-store: decisions stored of checks without a filter on the ledger, PostgreSQL': { atLeast: 1 },
  'estimate: allowed, beside a check, SQLite': { atMost: 3 },
  'estimate: refused, beside a check and commit, SQLite': { atMost: 3 },
  'estimate: refused, beside a check, SQLite': null,
  'estimate: allowed, beside a check, PostgreSQL': { atMost: 3 },
  'estimate: refused, beside a check and commit, PostgreSQL': { atMost: 3 },
  'estimate: refused, beside a check, PostgreSQL': null,
  'estimate: refused, beside a check, another service': { atMost: 3 },
  'estimate: calls of the service by one estimate': { atMost: 1 },
  'service: requests': { atLeast: 0.7 },
  'service: requests, by its processor': null,
  'service: decision log': { atLeast: 0.95 },
  'service: decision log, by its processor': null,
  'service: empty Koa': null,
  'service: Koa that reads': null,
  'tracing: checkCreate': { atMost: 1.01 },
  'tracing: checkCreate, beside itself': null,
  'tracing: POST /check-create': { atMost: 1.01 },
  'tracing: POST /check-create, beside itself': null,
  'tokens: check': { atMost: 1.1 },
  'tokens: check, by its processor': null,
  'latency: p99': { atMost: 1 },
  'latency: p99 beside node:http': { atMost: 3 },
  'latency: p99 beside node:http, with a reload each second': { atMost: 5 },
  'latency: p50 beside node:http': null,
  'memory: requests': { atMost: 1.1 },
  'memory: reloads': { atMost: 1.1 },
  'memory: reloads, heap': { atMost: 1.1 },
  'service-worst-case: /check-create, held': { atMost: 1 },
  'service-worst-case: /check-create, memory': { atMost: 16 },
  'service-worst-case: /check-update, held': { atMost: 1 },
  'service-worst-case: /check-update, memory': { atMost: 16 },
  'service-worst-case: /on-end, held': { atMost: 1 },
  'service-worst-case: /on-end, memory': { atMost: 16 },
  'service-worst-case: /kubernetes/admission, held': { atMost: 1 },
  'service-worst-case: /kubernetes/admission, memory': { atMost: 16 },
  'service-worst-case: /kubernetes/validation, held': { atMost: 1 },
  'service-worst-case: /kubernetes/validation, memory': { atMost: 16 },
  'service-worst-case: /skypilot/admin-policy, held': { atMost: 1 },
  'service-worst-case: /skypilot/admin-policy, memory': { atMost: 16 },
  'service-worst-case: /, held': { atMost: 1 },
  'service-worst-case: /, memory': { atMost: 16 },
  'faults: connection refused': { atMost: 1.1 },
  'faults: silent': { atMost: 1.1 },
  'faults: one byte a second': { atMost: 1.1 },
  'faults: headers, one byte a second': { atMost: 1.1 },
  'faults: reset': { atMost: 1.1 },
  'faults: wrong status': { atMost: 1.1 },
  'faults: endless body': { atMost: 1.1 },
  'faults: broken JSON': { atMost: 1.1 },
  'faults: redirect': { atMost: 1.1 },
  'faults: expired certificate': { atMost: 1.1 },
  'faults: name that does not resolve': { atMost: 1.1 },
  'faults: breaker open': { atMost: 1 },
  'faults: leases refused': { atLeast: 1 },
  'fuzz: mutated requests': { atLeast: 1 },
};

describe('npm run bench', () => {
  it(
    'measures every row once and reports it as JSON',
    async () => {
      const { stdout } = await bench('--quick', '--runs', '1', '--format', 'json');
      const { results, notMeasured, notes } = JSON.parse(stdout) as {
        results: Result[];
        notMeasured: Record<string, string>;
        notes: Record<string, string[]>;
      };
      const targets = results.map(({ suite, name, target }) => [`${suite}: ${name}`, target]);
      // Its peer may be missing, which the bench says aloud.
      const promised = Object.entries(TARGETS).filter(
        ([row]) => !Object.keys(notMeasured).some((topic) => row.startsWith(`${topic}: `)),
      );
      expect(Object.fromEntries(targets)).toEqual(Object.fromEntries(promised));
      expect(Object.keys(notMeasured).filter((topic) => topic !== 'upstream')).toEqual([]);
      for (const { name, measured, comparedWith, ratio, spread, target, met } of results) {
        // A small request may take no memory that can be seen.
        expect(measured.value, name).toBeGreaterThanOrEqual(name.endsWith(', memory') ? 0 : Number.MIN_VALUE);
        expect(comparedWith.value).toBeGreaterThan(0);
        expect(ratio).toBeCloseTo(measured.value / comparedWith.value, 9);
        expect(spread).toEqual({ min: ratio, max: ratio });
        expect(typeof met).toBe(target === null ? 'object' : 'boolean');
      }
      expect(Object.keys(notes)).toEqual([
        'check',
        'peers',
        'upstream',
        'rules',
        'replay',
        'external-service',
        'outbox',
        'cold-start',
        'skypilot-review',
        'admission',
        'ledger',
        'growth',
        'ledger-clients',
        'decision-store',
        'estimate',
        'people-lists',
        'blazar',
        'service',
        'tracing',
        'tokens',
        'latency',
        'memory',
        'service-worst-case',
        'faults',
        'fuzz',
      ]);
    },
    TIMEOUT,
  );

  it(
    'prints a table of the chosen topics, followed by the notes',
    async () => {
      const { stdout, stderr } = await bench('--quick', '--runs', '2', '--only', 'cold-start');
      const [head, row, ...rest] = stdout.split('\n');
      expect(head).toMatch(/^NAME +MEASURED +COMPARED WITH +RATIO +SPREAD +TARGET +MET$/);
      expect(row).toMatch(
        /^cold-start: check create +check create +[\d.]+ m?s +node -e 0 +[\d.]+ m?s +[\d.]+ +[\d.]+ – [\d.]+ +<= 3 +(yes|NO)$/,
      );
      expect(rest.join('\n')).toContain('Medians of 2 run(s)');
      expect(rest.join('\n')).toContain('\ncold-start\n  - One operation is one process');
      expect(stdout).not.toContain('casbin');
      expect(stderr).toBe('cold-start: run 1 of 2\ncold-start: run 2 of 2\n');
    },
    TIMEOUT,
  );

  it(
    'runs steady measurements once, and shows bytes and counts with their units',
    async () => {
      const { stdout, stderr } = await bench(
        ...['--quick', '--runs', '2', '--only', 'memory', 'fuzz', '--requests', '100'],
      );
      expect(stdout).toMatch(
        /^memory: requests +after all requests +[\d.]+ MiB +after a tenth +[\d.]+ MiB +[\d.]+ /m,
      );
      expect(stdout).toMatch(/^fuzz: mutated requests +answered as a direct check +125 +sent +125 +1\.00 /m);
      expect(stderr).toContain('memory: run 1 of 1\n');
      expect(stderr).toContain('fuzz: run 1 of 1\n');
    },
    TIMEOUT,
  );

  it(
    'writes the page, and replaces what it says about the topics that were measured again',
    async () => {
      const folder = temporaryFolder();
      await bench(...ONE_TOPIC, '--output', folder);
      const first = pageIn(folder);
      expect(first).toContain('| check create | check create |');
      // What else is in the record stays.
      const path = join(folder, 'performance.json');
      const { topics } = JSON.parse(readFileSync(path, 'utf8'));
      topics.check = { ...topics['cold-start'], date: 'long ago' };
      topics['cold-start'].date = 'long ago as well';
      writeFileSync(path, JSON.stringify({ topics }));
      await bench('--render', '--output', folder);
      expect(pageIn(folder)).toContain('long ago as well, 1 run');
      await bench(...ONE_TOPIC, '--output', folder);
      expect(pageIn(folder)).toContain('long ago, 1 run');
      expect(pageIn(folder)).not.toContain('long ago as well');
    },
    TIMEOUT,
  );

  it(
    'leaves the page as it was when it is killed, or told not to write',
    async () => {
      const folder = temporaryFolder();
      await bench(...ONE_TOPIC, '--output', folder);
      const [page, names] = [pageIn(folder), readdirSync(folder)];
      await bench(...ONE_TOPIC, '--output', folder, '--no-write');
      expect(pageIn(folder)).toBe(page);
      const child = spawn(process.execPath, [MAIN, ...ONE_TOPIC, '--runs', '5', '--output', folder], {
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      let said = '';
      for await (const data of child.stderr) {
        said += data;
        if (said.includes('run 2 of 5')) {
          child.kill('SIGKILL');
        }
      }
      expect(said).toContain('run 2 of 5');
      expect(pageIn(folder)).toBe(page);
      expect(readdirSync(folder)).toEqual(names);
    },
    TIMEOUT,
  );

  it(
    'goes on without a peer that is not there, and says so aloud and on the page',
    async () => {
      const folder = temporaryFolder();
      const flags = ['--quick', '--runs', '1', '--only', 'upstream', 'cold-start', '--output', folder];
      const { stdout, stderr } = await benchWith({ BLAZAR_SOURCE: '/nowhere' }, ...flags);
      expect(stderr).toMatch(/^SKIPPED: upstream: .+$/m);
      expect(stdout).toMatch(/^upstream: not measured: .+$/m);
      expect(stdout).toContain('cold-start: check create');
      expect(pageIn(folder)).toMatch(/### upstream\n\nNot measured: .+\.\n/);
    },
    TIMEOUT,
  );

  it(
    'fails when a topic does, and measures the others all the same',
    async () => {
      const folder = temporaryFolder();
      // Its folders can be made nowhere.
      const flags = ['--quick', '--runs', '1', '--only', 'cold-start', 'memory', '--output', folder];
      await expect(benchWith({ TMPDIR: '/nowhere' }, ...flags)).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringContaining('FAILED: memory: '),
        stdout: expect.stringContaining('cold-start: check create'),
      });
      expect(pageIn(folder)).toContain('### memory\n\nNot measured: it failed.');
      expect(pageIn(folder)).toContain('| check create | check create |');
    },
    TIMEOUT,
  );

  it.each([
    ['--runs', '0'],
    ['--requests', '1.5'],
    ['--runs', 'many'],
    ['--only', 'everything'],
    ['--format', 'xml'],
  ])('refuses %s %s in one line', async (...flags) => {
    await expect(bench(...flags)).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^error: .+\n$/),
    });
  });
});
