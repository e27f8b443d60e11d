/** A small cloud for people: a real Keystone, two policy services on one ledger in PostgreSQL, as commands, and a real Blazar that asks the first. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { giveBudget, ledgerAt, type newLedgers } from '../support/ledgers.ts';
import { type RunningCommand, startCommand } from '../support/run-command.ts';
import { RealBlazar } from './blazar.ts';
import type { RealKeystone } from './keystone.ts';

/** A lease of so many days may be asked for. */
export const LONGEST_DAYS = 10;
/** Of climate and of physics, in node-hours. */
export const PROJECT_HOURS = 200;
const BLAZAR_TOKEN = 'of-blazar-0123456789abcdef';
const DAY = 86_400_000;

export interface UserCloud {
  readonly keystone: RealKeystone;
  readonly blazar: RealBlazar;
  /** The first is asked by Blazar, unless something stands between them. */
  readonly replicas: readonly [string, string];
  /** A configuration, for a command that asks Blazar. */
  file(): string;
  /** `kill -9`, once it has not moved for `frozen` milliseconds, and a start at the same address. */
  restart(index: number, frozen: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startUserCloud(
  keystone: RealKeystone,
  blazarProgram: string,
  newLedger: ReturnType<typeof newLedgers>,
  proxy = async ([first]: UserCloud['replicas']) => first,
): Promise<UserCloud> {
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-people-'));
  const connection = await newLedger('postgresql');
  const ledger = await ledgerAt(connection, { now: () => new Date().toISOString() });
  for (const projectId of [keystone.ids.projects.climate, keystone.ids.projects.physics]) {
    const dates = { from: dayFromNow(-30), until: dayFromNow(300) };
    await giveBudget(ledger, { projectId, amount: String(PROJECT_HOURS), ...dates });
  }
  await ledger.close();
  const fileOf = (index: number) => join(folder, `replica-${index}.conf`);
  const commands: RunningCommand[] = [];
  // An address that is nobody else's: no connection can take the port while the replica is away.
  const write = (index: number, port: string) => {
    const place = `host = 127.0.0.${index + 2}\nport = ${port}`;
    writeFileSync(fileOf(index), configuration(connection, keystone.url, place), { mode: 0o600 });
  };
  const start = async (index: number) => {
    const command = startCommand(['serve', '--config-file', fileOf(index)]);
    commands[index] = command;
    const url = await addressOf(command);
    write(index, new URL(url).port);
    return url;
  };
  write(0, '0');
  write(1, '0');
  const replicas = await Promise.all([start(0), start(1)] as const);
  const options = ['--keystone', keystone.url, '--policy-token', BLAZAR_TOKEN];
  const blazar = await RealBlazar.start(blazarProgram, `${await proxy(replicas)}/v1/`, options);
  return {
    keystone,
    blazar,
    replicas,
    file: () => {
      const file = join(folder, 'followed.conf');
      writeFileSync(file, `${readFileSync(fileOf(0), 'utf8')}endpoint = ${blazar.url}\n`, { mode: 0o600 });
      return file;
    },
    restart: async (index, frozen) => {
      commands[index]?.process.kill('SIGSTOP');
      await pause(frozen);
      commands[index]?.process.kill('SIGKILL');
      await commands[index]?.ended;
      await start(index);
    },
    stop: async () => {
      await blazar.stop();
      for (const { process: child, ended } of commands) {
        child.kill();
        await ended;
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function addressOf(command: RunningCommand): Promise<string> {
  const [, url = ''] = await command.printed(/^Listening on (http:\S+)\n/m);
  return url;
}

function configuration(connection: string, keystone: string, place: string): string {
  return `[enforcement]
enabled_filters = MaxLeaseDurationFilter, UsageBudgetFilter
max_lease_duration = ${LONGEST_DAYS * 86_400}
[service]
${place}
trusted_proxies = 127.0.0.1
deadline = 30
tokens = ${BLAZAR_TOKEN}
keystone_auth = true
[ledger]
connection = ${connection}
doubt_folder =
[keystone]
auth_url = ${keystone}
timeout = 30
username = blazar
password = blazar
project_name = service
resolve_names = true
[blazar]
reconcile_interval = 0
`;
}

/** `2026-12-01`: midnight in UTC. */
export function dayFromNow(days: number): string {
  return new Date(Date.now() + days * DAY).toISOString().slice(0, 10);
}

/** A lease of hosts as people ask Blazar for it, from midnight to midnight unless said otherwise. */
export function leaseOf(name: string, days: readonly [from: number, until: number], hosts = 1) {
  return {
    name,
    start_date: `${dayFromNow(days[0])} 00:00`,
    end_date: `${dayFromNow(days[1])} 00:00`,
    reservations: [
      {
        resource_type: 'physical:host',
        min: hosts,
        max: hosts,
        hypervisor_properties: '',
        resource_properties: '',
      },
    ],
    events: [],
  };
}

/** Whose password is the name. Resolves to the id. */
export async function addUser(keystone: RealKeystone, name: string): Promise<string> {
  const user = { name, password: name, domain_id: 'default' };
  const { body } = await keystone.ask('POST', '/users', { user });
  return (body as { user: { id: string } }).user.id;
}

/** A user who manages a project, with the role that newer Keystones have from the start. */
export async function addManager(keystone: RealKeystone, name: string, projectId: string): Promise<void> {
  const user = await addUser(keystone, name);
  const { roles } = (await keystone.ask('GET', '/roles?name=manager')).body as { roles: { id: string }[] };
  const made = async () => (await keystone.ask('POST', '/roles', { role: { name: 'manager' } })).body;
  const role = roles[0]?.id ?? ((await made()) as { role: { id: string } }).role.id;
  await keystone.ask('PUT', `/projects/${projectId}/users/${user}/roles/${role}`);
}

/** Logs in to the console with Keystone, where passwords are the names of their users. */
export async function logInAs(page: Page, url: string, user: string, project: string): Promise<void> {
  await page.goto(url);
  await page.getByLabel('User name').fill(user);
  await page.getByLabel('Password').fill(user);
  await page.getByLabel('Project').fill(project);
  await page.getByRole('button', { name: 'Log in', exact: true }).first().click();
  await page.getByRole('button', { name: 'Log out' }).waitFor();
}
