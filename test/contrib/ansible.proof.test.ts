/** Proves that the Ansible role makes a real Blazar refuse with our reason, changes nothing the second time, and changes nothing if a value is wrong. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { packagedUnit } from '../../tools/debian-package/packaged-unit.ts';
import { RealBlazar } from '../peers/blazar.ts';
import { RealKeystone } from '../peers/keystone.ts';
import { commandEnd } from '../support/containers.ts';
import {
  cleanDebian,
  cleaningAfterAll,
  MINIMAL_ENVIRONMENT,
  madePackage,
  need,
} from '../support/debian-root.ts';
import { confFile, projectFile } from '../support/files.ts';
import { peerProgram, skipAloud } from '../support/peers.ts';
import { unusedPort } from '../support/unused-port.ts';

const HAS_ANSIBLE = spawnSync('ansible-playbook', ['--version']).status === 0;
if (!HAS_ANSIBLE) {
  skipAloud('ansible', 'there is no command ansible-playbook');
}
const blazarPeer = peerProgram('BLAZAR_PEER');
const afterwards = cleaningAfterAll();
const ROLE = 'contrib/ansible';
const TOKEN = 'a-token-of-the-proof';
const ENVIRONMENT = { ...MINIMAL_ENVIRONMENT, LC_ALL: 'C.UTF-8', HOME: '/root' };

/** Runs the playbook; `variables` are those of a site. */
async function play(folder: string, variables: object, ...flags: readonly string[]) {
  writeFileSync(join(folder, 'variables.json'), JSON.stringify(variables));
  const args = ['-i', join(folder, 'inventory.yml'), 'policy-service.yml', '-e', `@${folder}/variables.json`];
  const ended = await commandEnd(['ansible-playbook', ...args, ...flags], {
    cwd: projectFile(ROLE),
    env: ENVIRONMENT,
  });
  const [, changed, failed] = /changed=(\d+) .* failed=(\d+)/.exec(ended.stdout) ?? [];
  return { ...ended, changed: Number(changed), failed: Number(failed) };
}

describe.skipIf(!HAS_ANSIBLE || blazarPeer === undefined)('the Ansible role', () => {
  it('lets a real Blazar refuse with our reason, and changes nothing the second time', async (context) => {
    need(context, 'dpkg-deb', 'strip', 'debootstrap', 'chroot');
    const keystone = await RealKeystone.start();
    if (keystone === undefined || blazarPeer === undefined) {
      return context.skip('there is no Keystone');
    }
    onTestFinished(() => keystone.remove());
    // `systemctl` of this package starts, reloads and restarts units without systemd as the first process.
    const root = await cleanDebian(context, afterwards, ['python3', 'python3-apt', 'procps', 'systemctl']);
    mkdirSync(join(root, 'run/systemd/system'), { recursive: true });
    // It does not know `exec`.
    const unit = packagedUnit(readFileSync(projectFile('etc/systemd/blazar-enforcement.service'), 'utf8'));
    const file = join(root, 'etc/systemd/system/blazar-enforcement.service');
    writeFileSync(file, unit.replace('Type=exec', 'Type=simple'));
    spawnSync('mount', ['-t', 'proc', 'proc', join(root, 'proc')]);
    const folder = join(root, '..');
    const at = (name: string) => join(folder, name);
    const target = {
      ansible_host: root,
      ansible_connection: 'community.general.chroot',
      ansible_python_interpreter: '/usr/bin/python3',
      ansible_become: false,
    };
    const inventory = { blazar_enforcement: { hosts: { controller: target } } };
    writeFileSync(at('inventory.yml'), JSON.stringify(inventory));
    const port = await unusedPort();
    const site = {
      blazar_enforcement_deb: await madePackage(afterwards),
      blazar_enforcement_token: TOKEN,
      blazar_enforcement_port: port,
      blazar_enforcement_options: {
        keystone: { resolve_names: true },
        ledger: { connection: 'sqlite:////var/lib/blazar-enforcement/ledger.db' },
        enforcement: {
          enabled_filters: ['MaxLeaseDurationFilter', 'MaxLeasesFilter'],
          max_lease_duration: 3600,
          // Only an account at Keystone knows this project.
          max_lease_duration_project_limits: { 'climate@Default': 86_400 },
          max_leases_per_project: 5,
        },
      },
      blazar_enforcement_keystone_auth_url: keystone.url,
      blazar_enforcement_keystone_password: 'a-password-of-the-proof',
      blazar_enforcement_keystone_admin: { username: 'admin', password: 'admin', project_name: 'admin' },
      blazar_enforcement_keystone_endpoint: `http://127.0.0.1:${port}`,
      blazar_enforcement_blazar_url: `http://127.0.0.1:${port}/v1/`,
      blazar_enforcement_blazar_conf: at('blazar.conf'),
      blazar_enforcement_haproxy_cfg: at('haproxy.cfg'),
      blazar_enforcement_prometheus_scrape: at('scrape.yml'),
      blazar_enforcement_prometheus_rules: at('blazar-enforcement.rules'),
    };
    const ofService = join(root, 'etc/blazar-enforcement');

    const { blazar_enforcement_token: _, ...withoutToken } = site;
    const missing = await play(folder, withoutToken);
    expect(missing.stdout).toContain('missing required arguments: blazar_enforcement_token');
    const options = site.blazar_enforcement_options;
    const unknown = {
      ...options,
      enforcement: { ...options.enforcement, enabled_filters: ['MaxLeaseFilter'] },
    };
    const wrong = await play(folder, { ...site, blazar_enforcement_options: unknown });
    expect(wrong.stdout).toContain('[enforcement] enabled_filters: there is no filter');
    const everywhere = await play(folder, { ...site, blazar_enforcement_host: '0.0.0.0' });
    expect(everywhere.stdout).toContain('expected an address that HAProxy and Prometheus can ask');
    expect([missing, wrong, everywhere].map(({ changed, failed }) => [changed, failed])).toEqual([
      [0, 1],
      [0, 1],
      [0, 1],
    ]);
    const checked = await play(folder, site, '--check');
    expect(checked.failed, checked.stdout).toBe(0);
    expect([ofService, at('blazar.conf')].filter((path) => existsSync(path))).toEqual([]);

    const first = await play(folder, site);
    expect(first.failed, first.stdout).toBe(0);
    expect(first.stdout).not.toContain(TOKEN);
    const second = await play(folder, site);
    expect([second.changed, second.failed], second.stdout).toEqual([0, 0]);

    const conf = readFileSync(at('blazar.conf'), 'utf8');
    const value = (name: string) => new RegExp(`^${name} = (.*)$`, 'm').exec(conf)?.[1] ?? '';
    const blazar = await RealBlazar.start(blazarPeer, value('external_service_base_endpoint'), [
      '--policy-token',
      value('external_service_token'),
      '--filters',
      value('enabled_filters'),
      '--keystone',
      keystone.url,
    ]);
    onTestFinished(() => blazar.stop());
    const alice = await keystone.token('alice');
    const ask = (hours: number) => {
      const date = (hour: number) =>
        new Date(Date.now() + hour * 3_600_000).toISOString().slice(0, 16).replace('T', ' ');
      const reservation = { resource_type: 'physical:host', min: 1, max: 1 };
      const reservations = [{ ...reservation, hypervisor_properties: '', resource_properties: '' }];
      const dates = { start_date: date(24), end_date: date(24 + hours) };
      const lease = { name: 'run', ...dates, reservations, events: [], before_end_date: '' };
      return blazar.ask('POST', '/v1/leases', alice, lease);
    };
    expect((await ask(12)).status).toBe(201);
    const refused = await ask(48);
    expect(refused.status).toBe(400);
    expect(refused.text).toContain('is 172800 seconds (2 days) long; the longest allowed');

    // A limit is in force after a reload.
    const shorter = {
      ...options,
      enforcement: { ...options.enforcement, max_lease_duration_project_limits: 'climate@Default:7200' },
    };
    const changed = await play(folder, { ...site, blazar_enforcement_options: shorter });
    expect([changed.changed, changed.failed], changed.stdout).toEqual([2, 0]);
    expect(changed.stdout).not.toContain('Restart blazar-enforcement');
    expect((await ask(12)).status).toBe(400);
  });
});

describe.skipIf(!HAS_ANSIBLE)('the address of the metrics', () => {
  const ADMIN = { blazar_enforcement_host: '2001:db8::1', blazar_enforcement_token: TOKEN };
  it.each([
    ['of the service', {}, '[2001:db8::1]:8642'],
    ['of admin_port', { admin_port: 9001 }, '[2001:db8::1]:9001'],
    ['of admin_host', { admin_port: 9001, admin_host: 'fd00::2' }, '[fd00::2]:9001'],
    ['of IPv4', { admin_port: 9001, admin_host: '10.0.0.2' }, '10.0.0.2:9001'],
  ])('is the one %s', async (_, service, address) => {
    const role = { name: projectFile(`${ROLE}/roles/blazar_enforcement`), tasks_from: 'neighbours' };
    const tasks = [{ include_role: role }, { debug: { var: 'blazar_enforcement_metrics_address' } }];
    const playbook = confFile(
      JSON.stringify([{ hosts: 'localhost', connection: 'local', gather_facts: false, tasks }]),
    );
    const variables = JSON.stringify({ ...ADMIN, blazar_enforcement_options: { service } });
    const ended = await commandEnd(['ansible-playbook', playbook, '-e', variables], { env: ENVIRONMENT });
    expect(ended.stdout).toContain(`"blazar_enforcement_metrics_address": "${address}"`);
  });
});

describe.skipIf(spawnSync('ansible-lint', ['--version']).status !== 0)('the files for Ansible', () => {
  it('have no fault that ansible-lint finds', async () => {
    const args = ['--offline', '--nocolor', 'policy-service.yml', 'roles/blazar_enforcement'];
    const { code, stdout, stderr } = await commandEnd(['ansible-lint', ...args], {
      cwd: projectFile(ROLE),
      env: ENVIRONMENT,
    });
    expect(code, `${stdout}${stderr}`).toBe(0);
  });
});
