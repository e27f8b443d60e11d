/** The guide "Move from coral-credits" beside a real one: afterwards, the same leases are allowed and refused. */
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { UsageEnforcement } from '../../src/enforcement/enforcement.ts';
import { pageNamed } from '../docs/markdown.ts';
import { Chance } from '../simulation/schedule.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { peerProgram } from '../support/peers.ts';
import { COMMAND, scrubbedEnvironment } from '../support/run-command.ts';
import { RealCoralCredits } from './coral-credits.ts';

const program = peerProgram('CORAL_CREDITS_PEER');
const SEED = Number(process.env.CORAL_SEED ?? 1);
const GUIDE = pageNamed('docs/moving-from-coral-credits.md');
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const USER = 'c631173edec04bb7a0c3f7711153c06c';
const FLAVORS = [
  ['5a1c3f60-0a7e-4a3f-9d0e-6c3a6f0f2d11', 2],
  ['0f3d2c1b-77aa-4f0e-9d59-2b8b1b5b6a11', 8],
] as const;
/** As Keystone writes ids. The first is that of the peer. */
const TEAM = newProject();
const CLIMATE = newProject();
const OCEAN = newProject();
/** The most that leases of one project use at a time. */
const RUNNING = 16;
const now = Math.floor(Date.now() / HOUR) * HOUR;

interface Asked {
  readonly project: string;
  /** Hours from now. */
  readonly from: number;
  readonly hours: number;
  /** How many instances of which flavor. */
  readonly instances: number;
  readonly flavor: 0 | 1;
}

const contextOf = ({ project }: Asked) => ({
  user_id: USER,
  project_id: project,
  region_name: 'RegionOne',
  auth_url: 'https://keystone.example.org:5000/v3',
});

function leaseOf({ from, hours, instances, flavor }: Asked, id?: string) {
  const [flavor_id, vcpus] = FLAVORS[flavor];
  return {
    ...(id !== undefined && { id }),
    name: `run-${id ?? 'new'}`,
    start_date: date(now + from * HOUR),
    end_date: date(now + (from + hours) * HOUR),
    reservations: [{ resource_type: 'flavor:instance', flavor_id, amount: instances, affinity: null }],
    resource_requests: { VCPU: instances * vcpus, MEMORY_MB: instances },
  };
}

describe.skipIf(program === undefined)('the move from a real coral-credits', () => {
  it('works as the guide says, and the same leases are allowed and refused afterwards', async () => {
    const credits = { VCPU: 900, MEMORY_MB: 1_000_000 };
    const coral = await RealCoralCredits.startOrSkip(program ?? '', TEAM, credits);
    if (coral === undefined) {
      return;
    }
    onTestFinished(() => coral.stop());
    const folder = temporaryFolder();
    const leases = await fillIn(coral);
    writeFileSync(join(folder, 'leases.json'), listed(leases));
    writeFileSync(join(folder, 'coral.token'), coral.token, { mode: 0o600 });
    const file = writeConfiguration(folder);
    const begun = performance.now();
    const exported = leftIn(runGuide(folder, file, coral.url));
    const between = (performance.now() - begun) / HOUR;
    const left = leftIn(readFileSync(join(folder, 'budgets.csv'), 'utf8'));
    const hoursOf = (project: string) => left.flatMap(([one, hours]) => (one === project ? [hours] : []));
    expect(hoursOf(TEAM)).toEqual([900 - 8 * 8 - 48 * 8 - 10 * 16]);
    expect(hoursOf(CLIMATE)).toEqual([700 - 5 * 6 - 60 * 2]);
    expect(hoursOf(OCEAN)[1]).toBe(100);
    // A lease has ended early, nine hours after its start or somewhat later.
    const longest = (Date.now() - now) / HOUR + 9;
    expect(hoursOf(OCEAN)[0]).toBeGreaterThanOrEqual(400 - 10 * 6 - Math.ceil(longest * 8));
    expect(hoursOf(OCEAN)[0]).toBeLessThanOrEqual(400 - 10 * 6 - 9 * 8);
    // What leases have used between the two steps is not charged.
    expect(exported.map(([project]) => project)).toEqual(left.map(([project]) => project));
    for (const [index, [, hours]] of exported.entries()) {
      expect(hours).toBeGreaterThanOrEqual(left[index]?.[1] ?? 0);
      expect(hours).toBeLessThanOrEqual((left[index]?.[1] ?? 0) + between * RUNNING + 0.001);
    }
    const enforcement = await UsageEnforcement.load(
      { environment: {}, configFiles: [file] },
      { logger: recordingLogger() },
    );
    onTestFinished(() => enforcement.close());
    const chance = new Chance(SEED);
    const table: string[] = [];
    const outcomes = new Set<string>();
    for (let step = 0; step < 24; step += 1) {
      const asked = randomLease(chance);
      const context = contextOf(asked);
      const lease = leaseOf(asked, randomUUID());
      const { status } = await coral.post('/consumer/create', { context, lease });
      const ours = await enforcement.commitCreate({ context, lease });
      table.push(`${JSON.stringify(asked)}: ${status} ${ours.allowed} ${ours.message ?? ''}`);
      expect(status, table.join('\n')).toBe(ours.allowed ? 204 : 403);
      outcomes.add(`${asked.project} ${ours.allowed}`);
    }
    expect(outcomes.size, table.join('\n')).toBe(6);
  });
});

/** Credits, and leases that run, are to come, have ended, were deleted and were refused. What Blazar then has. */
async function fillIn(real: RealCoralCredits): Promise<ReadonlyMap<string, Asked>> {
  for (const [name, project, allocations] of [
    ['climate', CLIMATE, [{ hours: 700, from: -30 * DAY, until: 400 * DAY }]],
    [
      'ocean',
      OCEAN,
      [
        { hours: 5000, from: -400 * DAY, until: -35 * DAY },
        { hours: 400, from: -35 * DAY, until: 30 * DAY },
        { hours: 100, from: 30 * DAY, until: 400 * DAY },
      ],
    ],
    ['idle', randomUUID(), []],
  ] as const) {
    const account = (await real.post('/account', { name, email: `${name}@example.org` })).made;
    const provider = `${real.url}/resource_provider/1`;
    const owner = { account, provider, project_id: project };
    expect(await real.post('/resource_provider_account', owner)).toMatchObject({ status: 201 });
    for (const [index, { hours, from, until }] of allocations.entries()) {
      const credits = { name: `${name}-${index}`, account, start: date(now + from), end: date(now + until) };
      expect(await real.post('/allocation', credits)).toMatchObject({ status: 201 });
      const [id] = /\d+$/.exec(await lastAllocation(real)) ?? [];
      const resources = { VCPU: hours, MEMORY_MB: 1_000_000 };
      expect(await real.post(`/allocation/${id}/resources`, resources)).toMatchObject({ status: 201 });
    }
  }
  const leases = new Map<string, Asked>();
  const known: readonly (Asked & { readonly is: 'there' | 'over' | 'ended' | 'deleted' | 'refused' })[] = [
    { project: TEAM, from: -3, hours: 8, instances: 4, flavor: 0, is: 'there' },
    // From before the allocation is valid.
    { project: TEAM, from: -36, hours: 48, instances: 1, flavor: 1, is: 'there' },
    { project: TEAM, from: 24, hours: 10, instances: 2, flavor: 1, is: 'there' },
    { project: TEAM, from: 48, hours: 1000, instances: 2, flavor: 1, is: 'refused' },
    { project: CLIMATE, from: -20, hours: 5, instances: 3, flavor: 0, is: 'over' },
    { project: CLIMATE, from: -10, hours: 60, instances: 1, flavor: 0, is: 'there' },
    { project: CLIMATE, from: 72, hours: 10, instances: 5, flavor: 1, is: 'deleted' },
    // Half of it is in the time of the next allocation.
    { project: OCEAN, from: 30 * 24 - 5, hours: 10, instances: 3, flavor: 0, is: 'there' },
    { project: OCEAN, from: -9, hours: 20, instances: 1, flavor: 1, is: 'ended' },
  ];
  for (const asked of known) {
    const id = randomUUID();
    const context = contextOf(asked);
    const body = { context, lease: leaseOf(asked, id) };
    const status = asked.is === 'refused' ? 403 : 204;
    expect(await real.post('/consumer/create', body), JSON.stringify(asked)).toMatchObject({ status });
    if (asked.is === 'ended' || asked.is === 'deleted') {
      expect(await real.post('/consumer/on-end', body)).toMatchObject({ status: 204 });
    } else if (asked.is === 'there') {
      leases.set(id, asked);
    }
  }
  return leases;
}

/** As Blazar's API answers: without resource_requests, which it does not keep. */
function listed(leases: ReadonlyMap<string, Asked>): string {
  const rows = [...leases].map(([id, asked]) => {
    const { resource_requests: _, ...lease } = leaseOf(asked, id);
    return { ...lease, user_id: USER, project_id: asked.project, status: 'ACTIVE' };
  });
  return JSON.stringify({ leases: rows });
}

/** The one of the guide for budgets. Its path. */
function writeConfiguration(folder: string): string {
  const ini = GUIDE.blocks.find(({ language, text }) => language === 'ini' && text.includes('UsageBudget'));
  const file = join(folder, 'blazar.conf');
  const connection = `connection = sqlite://${join(folder, 'ledger.db')}`;
  writeFileSync(file, (ini?.text ?? '').replace(/^connection = .*$/m, connection));
  return file;
}

/** All commands of the guide, in a shell. What they print. */
function runGuide(folder: string, configuration: string, url: string): string {
  const program = join(folder, 'blazar-enforcement');
  const more = `[ "$2" = from-coral-credits ] || set -- "$@" --config-file '${configuration}'`;
  writeFileSync(program, `#!/bin/sh\n${more}\nexec '${process.execPath}' '${COMMAND}' "$@"\n`);
  chmodSync(program, 0o755);
  const script = GUIDE.blocks.flatMap(({ language, text }) =>
    language === 'sh' ? [text.replaceAll('https://credits.example.org', url)] : [],
  );
  expect(script).toHaveLength(3);
  const env = { ...scrubbedEnvironment(), PATH: `${folder}:${process.env.PATH}` };
  const commands = `set -e\nblazar-enforcement ledger upgrade\n${script.join('')}`;
  const done = spawnSync('sh', ['-c', commands], { cwd: folder, env, encoding: 'utf8' });
  expect(done.status, `${done.stdout}${done.stderr}`).toBe(0);
  return done.stdout;
}

/** Of the lines with budgets: the project, and the hours in the column `left`. */
function leftIn(text: string): (readonly [project: string, hours: number])[] {
  const cells = text.split('\r\n').map((line) => line.split(','));
  return cells.flatMap(([project = '', , , , , , hours]) =>
    /^[0-9a-f]{32}$/.test(project) ? [[project, Number(hours)] as const] : [],
  );
}

function randomLease(chance: Chance): Asked {
  return {
    project: chance.pick([TEAM, CLIMATE, OCEAN]),
    from: 2 + chance.below(20 * 24),
    hours: 1 + chance.below(40),
    instances: 1 + chance.below(4),
    flavor: chance.below(2) === 0 ? 0 : 1,
  };
}

/** The URL of the allocation that was made last. */
async function lastAllocation({ url, token }: RealCoralCredits): Promise<string> {
  const answer = await fetch(`${url}/allocation`, { headers: { Authorization: `Bearer ${token}` } });
  const all = (await answer.json()) as { readonly id: number }[];
  return String(all.reduce((last, { id }) => Math.max(last, id), 0));
}

function date(at: number): string {
  return new Date(at).toISOString().slice(0, 19);
}

function newProject(): string {
  return randomUUID().replaceAll('-', '');
}
