/** Long commands show on a terminal how far they are, and nothing elsewhere. */
import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { recordMany } from '../../ledger/many-leases.ts';
import { aRecord } from '../../support/decision-logs.ts';
import { confFile, temporaryFile } from '../../support/files.ts';
import { folderOf } from '../../support/filter-folder.ts';
import { confWith, RULES } from '../../support/lease-cases.ts';
import { newLedger } from '../../support/ledgers.ts';
import { listen } from '../../support/listening.ts';
import { inPipe, isClean, onTerminal, type Screen } from '../../support/on-terminal.ts';
import { policyServer } from '../../support/policy-server.ts';
import { recorded } from '../../support/recorded-identities.ts';
import { createHost } from '../../support/requests.ts';
import { policedDouble } from '../scheduling-policy/cluster.ts';

const TIMEOUT = 1_200_000;

const folderWithLog = (lines: number) => {
  const log = `${JSON.stringify({ ...aRecord(), request: createHost() })}\n`.repeat(lines);
  return folderOf({ 'blazar.conf': confWith(''), 'rules.yaml': RULES, log });
};
/** A policy service that takes its time, so that its test shows how far it is. */
async function slowService(): Promise<string> {
  const { url } = await policyServer((_, response) => {
    setTimeout(() => response.writeHead(403, { 'Content-Type': 'application/json' }).end('{}'), 20);
  });
  return url;
}

describe('conformance of a slow service', () => {
  const runs = async (screen: Screen) =>
    onTerminal('wait', ['conformance', await slowService()], { cwd: folderOf({}), ...screen });

  it(
    'shows how many checks are done, within the width of the terminal',
    async () => {
      const { code, out, terminal } = await runs({ columns: 20 });
      expect([code, out]).toEqual([1, expect.stringContaining('failed')]);
      const lines = terminal.split('\r\x1b[K');
      expect(lines.length).toBeGreaterThan(2);
      expect(lines[1]).toMatch(/^ *\d+ % {2}\d+ checks, /);
      expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(20);
      expect([lines[0], lines.at(-1)]).toEqual(['', '']);
    },
    TIMEOUT,
  );

  it(
    'shows nothing on a terminal that knows no codes',
    async () => {
      const { code, terminal } = await runs({ term: 'dumb' });
      expect([code, terminal]).toEqual([1, '']);
    },
    TIMEOUT,
  );
});

const WIDE = 80;
const NARROW = 30;

interface LongWork {
  /** A command line that can be run again and again. */
  readonly args: readonly string[];
  readonly cwd?: string;
  /** What it counts. */
  readonly items: string;
  /** Whether it knows how much there is. */
  readonly hasTotal: boolean;
}

async function manyLeases(count: number): Promise<string> {
  const connection = await newLedger();
  await recordMany(connection, count);
  return confFile(
    `[enforcement]\nenabled_filters = MaxLeasesFilter\nmax_leases_per_project = 1000\n[ledger]\nconnection = ${connection}\n`,
  );
}

/** Keystone, which takes its time, and has a project of every name. */
async function slowKeystone(): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://keystone');
    const name = searchParams.get('name') ?? '';
    const answer = pathname.endsWith('/auth/tokens')
      ? recorded('tokens-of-blazar')
      : pathname.endsWith('/domains')
        ? recorded('domains-list-default')
        : { ...recorded('projects-list-climate'), body: listOf(name) };
    const { status, contentType, body } = answer;
    setTimeout(() => {
      response.writeHead(status, { 'Content-Type': contentType, 'X-Subject-Token': 'harmless' });
      response.end(JSON.stringify(body));
    }, 20);
  });
  return `http://127.0.0.1:${(await listen(server)).port}/v3`;
}

function listOf(name: string) {
  const project = { id: `id-of-${name}`, name, domain_id: 'default', enabled: true, tags: [], options: {} };
  return { projects: [{ ...project, is_domain: false, parent_id: 'default' }], links: { next: null } };
}

const WORK: Readonly<Record<string, () => Promise<LongWork>>> = {
  'test --replay': async () => ({
    args: ['test', '--replay', 'log', '--config-file', 'blazar.conf', '--format', 'json'],
    cwd: folderWithLog(60_000),
    items: 'decisions',
    hasTotal: true,
  }),
  'ledger verify': async () => ({
    args: ['ledger', 'verify', '--config-file', await manyLeases(100_000)],
    items: 'leases',
    hasTotal: true,
  }),
  'ledger reconcile': async () => {
    const conf = await manyLeases(2000);
    const list = temporaryFile('leases.json', '[]');
    const flags = ['--empty', '--dry-run', '--config-file', conf];
    return { args: ['ledger', 'reconcile', list, ...flags], items: 'leases', hasTotal: true };
  },
  'budget import': async () => {
    const lines = Array.from(
      { length: 60 },
      (_, number) => `project-${number}@Default,,2090-01-01,2091-01-01,10`,
    );
    const file = temporaryFile(
      'budgets.csv',
      `project_id,user_id,valid_from,valid_until,amount\n${lines.join('\n')}\n`,
    );
    const conf = confFile(
      `[enforcement]\nenabled_filters = UsageBudgetFilter\n[ledger]\nconnection = ${await newLedger()}\n[keystone]\nauth_url = ${await slowKeystone()}\nusername = blazar\npassword = blazar\nproject_name = service\nresolve_names = true\n`,
    );
    return {
      args: ['budget', 'import', file, '--dry-run', '--config-file', conf],
      items: 'lines',
      hasTotal: true,
    };
  },
  'scheduling-policy scan': async () => {
    const { api, pod } = await policedDouble();
    for (let number = 0; number < 3000; number += 1) {
      pod('shop', `pod-${number}`);
    }
    // Each page takes its time.
    api.fault = ({ path }) => (path.endsWith('/pods') ? { delayMs: 200 } : undefined);
    return {
      args: ['scheduling-policy', 'scan', '--kubeconfig', api.kubeconfig()],
      items: 'pods',
      hasTotal: false,
    };
  },
};

describe.each(Object.keys(WORK))('%s', (name) => {
  it(
    'shows how far it is on a terminal, removes it, and shows nothing in a pipe',
    async () => {
      const { args, cwd, items, hasTotal } = await (WORK[name]?.() ?? Promise.reject());
      const shown = await onTerminal('wait', args, { columns: WIDE, cwd });
      const counts = `[\\d,]+ ${items}, [\\d,]+/s`;
      const line = new RegExp(hasTotal ? `^\\[#* *\\] +\\d+ %  ${counts}$` : `^${counts}$`);
      expect(shown.lines.length).toBeGreaterThan(0);
      for (const one of shown.lines) {
        expect(one).toMatch(line);
      }
      expect(isClean(shown)).toBe(true);
      expect(await inPipe(args, cwd)).toEqual({ out: shown.out, errors: '' });
    },
    TIMEOUT,
  );
});

it(
  'fits into a terminal that becomes narrower while it runs, and ends at a Ctrl-C with a clean line',
  async () => {
    const { args } = await (WORK['ledger verify']?.() ?? Promise.reject());
    const shown = await onTerminal({ resizeTo: NARROW }, args, { columns: WIDE });
    expect({ code: shown.code, out: shown.out }).toEqual({ code: -2, out: '' });
    const lengths = shown.lines.map(({ length }) => length);
    expect(Math.max(...lengths)).toBeLessThan(WIDE);
    expect(lengths.at(-1)).toBeLessThan(NARROW);
    expect(isClean(shown)).toBe(true);
  },
  TIMEOUT,
);
