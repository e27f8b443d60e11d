/**
 * Tries the small cloud: a user is refused when the budget is over; then random operations, after each of which what Blazar has
 * allocated costs at most the budget; after each round of the ledger, ledger and Blazar agree to the unit.
 */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asked, Cloud } from './cloud.js';
import { randomOperations } from './operations.js';

const { KEYSTONE_PEER: keystone = '', BLAZAR_PEER: blazar = '' } = process.env;
const SEED = Number(process.env.SEED ?? 14);
const STEPS = Number(process.env.STEPS ?? 300);
/** In node-hours, of the project and of alice in it. */
const BUDGET = 600;
const OF_ALICE = 400;
/** Millionths of a node for a second; the rates of `policy-service.conf`. */
const HOUR = 3600n * 1_000_000n;
const RATES = { 'physical:host': 1_000_000n, 'virtual:instance': 250_000n };
/** Every so many operations there is a round, and something is stopped and started. */
const ROUND = 10;
const OUTAGE = 30;

if (keystone === '' || blazar === '') {
  process.stderr.write('Set KEYSTONE_PEER and BLAZAR_PEER to the programs that start them: see README.md.\n');
  process.exit(2);
}

const folder = await mkdtemp(join(tmpdir(), 'small-openstack-'));
const cloud = new Cloud(folder, { keystone, blazar });
const failures = [];
try {
  // The rounds are asked for here, one at a time, so that what they find can be compared at once.
  await cloud.start({ 'blazar.reconcile_interval': 0, 'blazar.reconcile_grace': 0 });
  await firstLease();
  await randomLeases();
} finally {
  await cloud.stop();
}
for (const failure of failures) {
  say(`FAILED: ${failure}`);
}
say(failures.length === 0 ? 'Everything held.' : `${failures.length} did not hold; see ${folder}`);
process.exitCode = failures.length === 0 ? 0 : 1;

/** What a user sees. */
async function firstLease() {
  const from = '2026-01-01';
  const until = '2040-01-01';
  const valid = ['--from', from, '--until', until];
  await cloud.command('budget', 'set', 'climate@Default', '--amount', String(BUDGET), ...valid);
  await cloud.command(
    ...[
      'budget',
      'set',
      'climate@Default',
      '--user',
      'alice@Default',
      '--amount',
      String(OF_ALICE),
      ...valid,
    ],
  );
  const lease = (/** @type {number} */ hosts) => ({
    name: 'first',
    start_date: date(Date.now() + 86_400_000),
    end_date: date(Date.now() + 2 * 86_400_000),
    reservations: [
      {
        resource_type: 'physical:host',
        min: hosts,
        max: hosts,
        hypervisor_properties: '',
        resource_properties: '',
      },
    ],
  });
  const granted = await cloud.ask('alice', 'POST', '/leases', lease(4));
  say(`alice asks for 4 hosts for a day: ${granted.status}`);
  hold(granted.status === 201, 'the first lease is granted');
  const refused = await cloud.ask('alice', 'POST', '/leases', {
    ...lease(8),
    end_date: date(Date.now() + 5 * 86_400_000),
  });
  say(`alice asks for 8 hosts for four days: ${refused.status} ${refused.body.error_message ?? ''}`);
  hold(
    refused.status >= 400 && /budget/i.test(JSON.stringify(refused.body)),
    'the second is refused, and says why',
  );
  say(await cloud.command('budget', 'list'));
  const own = await judged(await cloud.tokenOf('alice', 'climate'));
  say(`alice asks the policy service with a token of her own: ${own.status} ${own.body.message ?? ''}`);
  hold(own.status === 403, 'a member may not ask the policy service');
  const service = await judged(await cloud.tokenOf('blazar', 'service'));
  say(`the service user asks it: ${service.status}`);
  hold(service.status === 204, 'a service may');
  await cloud.ask('alice', 'DELETE', `/leases/${granted.body.lease?.id}`);
}

/** Asks the policy service about a lease of nothing. */
function judged(/** @type {string} */ token) {
  const { climate = '' } = cloud.ids.projects ?? {};
  const { alice = '' } = cloud.ids.users ?? {};
  const lease = { start_date: date(Date.now()), end_date: date(Date.now() + 3_600_000), reservations: [] };
  const request = { context: { user_id: alice, project_id: climate, region_name: 'RegionOne' }, lease };
  return asked(`${cloud.policyUrl}/on-end`, 'POST', request, { 'x-auth-token': token });
}

async function randomLeases() {
  /** @type {Map<string, number>} */
  const counts = new Map();
  let step = 0;
  for (const operation of randomOperations(SEED, STEPS)) {
    step += 1;
    const name = `${step} ${operation.kind} of ${operation.user}`;
    const status = await operation.run(cloud);
    const outcome = `${operation.kind} ${status}`;
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    const before = await costs();
    hold(
      before.project <= BigInt(BUDGET) * HOUR,
      `${name}: what Blazar has costs at most the budget of the project`,
    );
    hold(before.alice <= BigInt(OF_ALICE) * HOUR, `${name}: and what alice has, hers`);
    if (step % ROUND === 0) {
      await cloud.command('ledger', 'reconcile', '--blazar');
      const charged = await taken();
      const cost = await costs();
      hold(
        charged.project === cost.project && charged.alice === cost.alice,
        `${name}: ledger and Blazar agree: ${charged.project}, ${charged.alice} are charged for ${cost.project}, ${cost.alice}`,
      );
    }
    if (step % OUTAGE === 0) {
      await outage(step);
    }
  }
  say(
    `${step} operations: ${[...counts]
      .sort()
      .map(([what, times]) => `${what}: ${times}`)
      .join(', ')}`,
  );
}

/** The policy service and Keystone in turn. */
async function outage(/** @type {number} */ step) {
  if ((step / OUTAGE) % 2 === 1) {
    await cloud.stopPolicyService();
    const [{ status = 0 } = {}] = await Promise.all([cloud.ask('bob', 'POST', '/leases', oneHost())]);
    hold(status >= 400, `${step}: without the policy service no lease is granted`);
    await cloud.startPolicyService();
  } else {
    await cloud.stopKeystone();
    await cloud.startKeystone();
  }
}

function oneHost() {
  const properties = { hypervisor_properties: '', resource_properties: '' };
  return {
    name: 'run',
    start_date: date(Date.now() + 86_400_000),
    end_date: date(Date.now() + 90_000_000),
    reservations: [{ resource_type: 'physical:host', min: 1, max: 1, ...properties }],
  };
}

/** What Blazar has allocated. */
async function costs() {
  const { climate } = cloud.ids.projects ?? {};
  const owners = await leaseOwners();
  let project = 0n;
  let alice = 0n;
  for (const {
    lease_id,
    resource_type,
    resources,
    start_date,
    end_date,
    project_id,
    status,
  } of await cloud.truth()) {
    if (project_id === climate && status !== 'TERMINATED') {
      const seconds = BigInt((Date.parse(`${end_date}Z`) - Date.parse(`${start_date}Z`)) / 1000);
      const cost =
        (RATES[/** @type {keyof typeof RATES} */ (resource_type)] ?? 0n) * BigInt(resources) * seconds;
      project += cost;
      alice += owners.get(lease_id) === cloud.ids.users?.alice ? cost : 0n;
    }
  }
  return { project, alice };
}

/** @returns {Promise<Map<string, string>>} lease → user */
async function leaseOwners() {
  const { body } = await cloud.ask('alice', 'GET', '/leases');
  return new Map(body.leases.map((/** @type {any} */ { id, user_id }) => [id, user_id]));
}

/** What the ledger has charged. */
async function taken() {
  const budgets = JSON.parse(await cloud.command('budget', 'list', '--format', 'json'));
  const of = (/** @type {string | null} */ user) =>
    BigInt(budgets.find((/** @type {any} */ { user_id }) => user_id === user)?.taken.amount ?? 0);
  return { project: of(null), alice: of(cloud.ids.users?.alice ?? '') };
}

function hold(/** @type {boolean} */ isSo, /** @type {string} */ what) {
  if (!isSo) {
    failures.push(what);
  }
}

function date(/** @type {number} */ milliseconds) {
  return new Date(milliseconds).toISOString().slice(0, 16).replace('T', ' ');
}

function say(/** @type {string} */ line) {
  process.stdout.write(`${line}\n`);
}
