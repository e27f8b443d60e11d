/** For blazar-reconciliation.ts: the process that reconciles. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createLogger } from '../src/base/logger.ts';
import { UsageEnforcement } from '../src/index.ts';
import { setBudget } from '../src/ledger/budgets/budgets.ts';
import { openLedger } from '../src/ledger/open.ts';
import { upgradeTables } from '../src/ledger/storage/migrations/index.ts';
import { follow } from '../src/server/followers/follow-blazar.ts';
import { headerKeystone } from '../test/peers/header-keystone.ts';
import type { Measured } from './blazar-reconciliation.ts';

const LEASES = Number(process.argv[2]);
const PROJECTS = 200;

/** Copies of the recorded lease, each in its own project, with two hosts each of at most four. */
const SERVER = `
const lease = JSON.parse(process.env.LEASE), leases = [], hosts = [[], []];
for (let i = 0; i < ${LEASES}; i += 1) {
  const text = JSON.stringify(lease).replace(/0000(\\d{4})-0000/g, (_, id) => String(i).padStart(4, '0') + id + '-0000');
  const one = JSON.parse(text);
  one.project_id = 'project-' + (i % ${PROJECTS}); one.created_at = process.env.CREATED;
  one.reservations[0].max = 4;
  one.start_date = new Date(Date.UTC(2030, 0, 1) + i * 60000).toISOString().slice(0, 19); one.end_date = new Date(Date.UTC(2030, 0, 2) + i * 60000).toISOString().slice(0, 19);
  leases.push(one);
  for (const host of hosts) host.push({ id: one.reservations[0].id, lease_id: one.id, start_date: one.start_date, end_date: one.end_date });
}
const answers = {
  '/v1/leases': JSON.stringify({ leases }),
  '/v1/os-hosts/allocations': JSON.stringify({ allocations: hosts.map((reservations, i) => ({ resource_id: String(i + 1), reservations })) }),
  '/v1/os-hosts': process.env.HOSTS,
};
require('node:http').createServer((request, response) => response.end(answers[request.url])).listen(0, function () { console.log(this.address().port); });
`;

async function startBlazar(created: string): Promise<{ url: string; child: ChildProcess }> {
  const { body } = JSON.parse(readFileSync(join('test', 'fixtures', 'blazar', 'leases.json'), 'utf8')) as {
    body: { leases: unknown[] };
  };
  const hosts = JSON.parse(readFileSync(join('test', 'fixtures', 'blazar', 'hosts.json'), 'utf8')) as {
    body: unknown;
  };
  const child = spawn(process.execPath, ['-e', SERVER], {
    env: {
      LEASE: JSON.stringify(body.leases[0]),
      HOSTS: JSON.stringify(hosts.body),
      CREATED: created,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  return { url: `http://127.0.0.1:${String(port).trim()}`, child };
}

const folder = mkdtempSync(join(tmpdir(), 'bench-reconciliation-'));
const file = join(folder, 'ledger.db');
const connection = `sqlite://${file}`;
await upgradeTables({ dialect: 'sqlite', file });
const logger = createLogger('error');
const values = {
  ledger: { connection },
  enforcement: { enabled_filters: ['UsageBudgetFilter', 'MaxLeasesFilter'] },
};
const enforcement = await UsageEnforcement.load({ environment: {}, configFiles: [], values }, { logger });
const { ledger } = openLedger(
  { connection, commit: 'check', timeout: 30, pool_size: 4 },
  { clock: { now: () => new Date() }, observer: undefined },
);
const wait = { signal: undefined, throwIfOver() {} };
for (let project = 0; project < PROJECTS; project += 1) {
  const budget = { projectId: `project-${project}`, userId: null, validFrom: 0n, validUntil: 4_000_000_000n };
  await setBudget(ledger, { ...budget, amount: 10n ** 16n }, { who: 'bench', reason: null }, wait);
}
const request = (index: number) => {
  const start = Date.UTC(2030, 0, 1) + index * 60_000;
  const date = (time: number) => new Date(time).toISOString();
  return {
    context: { project_id: `project-${index % PROJECTS}`, user_id: 'alice', region_name: 'RegionOne' },
    lease: {
      name: 'run',
      start_date: date(start),
      end_date: date(start + 86_400_000),
      reservations: [{ resource_type: 'physical:host', min: 1, max: 4 }],
    },
  };
};
for (let index = 0; index < LEASES; index += 1) {
  const { allowed, message } = await enforcement.checkCreate(request(index));
  if (!allowed) {
    throw new Error(message ?? 'refused');
  }
}
const { url, child } = await startBlazar(new Date().toISOString().slice(0, 19).replace('T', ' '));
const keystone = headerKeystone(`${url}/v1`);

async function reconciliation(changes: number): Promise<number> {
  let reported = 0;
  const started = performance.now();
  const followed = await follow({
    ledger,
    keystone,
    endpoint: undefined,
    region: undefined,
    claimants: enforcement.claimants,
    exemptProjects: [],
    grace: 600,
    isDryRun: false,
    holder: 'bench',
    every: 0,
    who: 'bench',
    reason: null,
    signal: undefined,
    report: ({ outcome }) => {
      reported += outcome === 'corrected' ? 1 : 0;
    },
  });
  if (followed.kind !== 'done' || followed.doubts.length > 0 || reported !== changes) {
    throw new Error(`expected ${changes} changes, got ${reported}: ${JSON.stringify(followed, null, 1)}`);
  }
  return performance.now() - started;
}

let stop = false;
/** Runs checks one after the other until `stop`; resolves to checks per second. */
async function checks(): Promise<number> {
  const started = performance.now();
  let done = 0;
  while (!stop) {
    await enforcement.checkCreate(request(done % LEASES), { dryRun: true });
    done += 1;
    await nextTurn();
  }
  return (done / (performance.now() - started)) * 1000;
}

stop = false;
setTimeout(() => {
  stop = true;
}, 2000);
const alone = await checks();

globalThis.gc?.();
const before = process.memoryUsage().rss;
let most = before;
const sampling = setInterval(() => {
  most = Math.max(most, process.memoryUsage().rss);
}, 5);
const correcting = await reconciliation(LEASES);
// A SQLite commit blocks the process for the duration of the disk write, so it is not measured here.
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const idle = await reconciliation(0);
const held = delay.max / 1e6;
delay.disable();
clearInterval(sampling);

stop = false;
const checking = checks();
await reconciliation(0);
await reconciliation(0);
stop = true;
const during = await checking;

const measured: Measured = { correcting, idle, memory: most - before, alone, during, held };
process.send?.(measured);
child.kill();
await keystone.close();
await ledger.close();
await enforcement.close();
rmSync(folder, { recursive: true });
process.exit(0);
