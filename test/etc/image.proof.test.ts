/** The container image, built by a real builder and run as docs/reference/policy-service.md says, also by an operator who makes mistakes. */
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  builtImage,
  commandEnd,
  hasContainerBuilder,
  podman,
  podmanEnd,
  type RunningContainer,
  startContainer,
} from '../support/containers.ts';
import { projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { policyServer } from '../support/policy-server.ts';
import { postJson } from '../support/post-json.ts';
import { capturedText } from '../support/requests.ts';
import { startService } from '../support/services.ts';
import { unusedPort } from '../support/unused-port.ts';

const NOBODY = 65_534;
const TOKEN = 'a-token-of-the-proof';
const SOON = { timeout: 120_000, interval: 50 };
/** As the documentation runs it. The network is that of the machine, so that nothing else is asked than 127.0.0.1. */
const HARDENED = ['--read-only', '--read-only-tmpfs=false', '--cap-drop', 'ALL', '--network', 'host'].concat([
  '--security-opt',
  'no-new-privileges',
]);
const LIMIT = '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 864000\n';
const SERVICE = `[service]\ntokens = ${TOKEN}\n`;

/** The names of the classes in a folder of ours. */
const namesIn = (folder: string) =>
  readdirSync(projectFile(folder)).map((file) =>
    basename(file, '.ts')
      .split('-')
      .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
      .join(''),
  );

/** What an archive has: paths, and lines of `tar -tv` with mode, owner and path. */
async function contents(archive: string) {
  const listed = async (...flags: readonly string[]) =>
    (await commandEnd(['tar', ...flags, '--file', archive])).stdout.trim().split('\n');
  return { files: await listed('--list'), modes: await listed('--list', '--verbose', '--numeric-owner') };
}

describe.skipIf(!hasContainerBuilder())('the image', () => {
  let image = '';
  beforeAll(async () => {
    image = await builtImage();
  });

  /** A folder for /etc/blazar with these files, which only root and the group of nobody may read. */
  function etcBlazar(files: Readonly<Record<string, string>>): string {
    const folder = join(temporaryFolder(), 'blazar');
    mkdirSync(folder);
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(folder, name), text);
      chownSync(join(folder, name), 0, NOBODY);
      chmodSync(join(folder, name), 0o640);
    }
    // The folder above is for its owner alone, and is not what is mounted.
    chmodSync(folder, 0o755);
    return folder;
  }
  const mounted = (folder: string) => ['--volume', `${folder}:/etc/blazar:ro`];
  /** One command in the image, to its end. */
  const command = (flags: readonly string[], ...args: readonly string[]) =>
    podmanEnd('run', '--rm', '--no-healthcheck', ...HARDENED, ...flags, image, ...args);

  /** The service with the command of the image, when it is ready. */
  async function serving(...flags: readonly string[]) {
    const port = await unusedPort();
    const where = ['--env', 'OS_SERVICE__HOST=127.0.0.1', '--env', `OS_SERVICE__PORT=${port}`];
    const running = startContainer(...HARDENED, ...where, ...flags, image);
    const url = `http://127.0.0.1:${port}`;
    await vi.waitFor(async () => {
      if (running.process.exitCode !== null) {
        return;
      }
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
    }, SOON);
    expect(running.process.exitCode, Object.values(running.output()).join('')).toBe(null);
    const ask = (path: string, request: string) => postJson(url + path, request, { 'X-Auth-Token': TOKEN });
    const get = async (path: string) => await (await fetch(url + path)).text();
    return { ...running, url, ask, get };
  }
  async function volume(): Promise<string> {
    const name = await podman('volume', 'create');
    onTestFinished(async () => {
      await podman('volume', 'rm', '--force', name);
    });
    return name;
  }
  async function stop({ name, ended }: RunningContainer): Promise<number | null> {
    await podman('kill', '--signal', 'TERM', name);
    return (await ended).code;
  }

  it('says what it is, runs as nobody, and is small', async () => {
    const [{ Config: config, Labels: labels, Size: size, HealthCheck, Healthcheck }] = JSON.parse(
      await podman('image', 'inspect', image),
    );
    expect(labels).toMatchObject({
      'org.opencontainers.image.title': 'blazar-enforcement',
      'org.opencontainers.image.version': '1.2.3',
      'org.opencontainers.image.revision': 'c0ffee',
    });
    expect(config).toMatchObject({
      User: '65534:65534',
      StopSignal: 'SIGTERM',
      ExposedPorts: { '8642/tcp': {} },
    });
    expect((HealthCheck ?? Healthcheck).Test).toEqual(['CMD', 'node', '/app/healthcheck.mjs']);
    process.stderr.write(`the image has ${Math.round(size / 1e6)} MB\n`);
    expect(size).toBeLessThan(180e6);
  });

  it('has nothing that it does not run: no shell, compiler, package manager, map or type', async () => {
    const name = await podman('create', image);
    onTestFinished(async () => {
      await podman('rm', name);
    });
    const archive = join(temporaryFolder(), 'image.tar');
    await podman('export', '--output', archive, name);
    const { files, modes } = await contents(archive);
    const isUnwanted = (file: string) =>
      /(^|\/)(sh|bash|dash|busybox|npm|npx|gcc|g\+\+|cc|make|python3?|apt|dpkg|perl)$/.test(file) ||
      (/^app\//.test(file) && /\.(map|[mc]?ts|node-gyp|gyp|c|cc|cpp|h|o|a)$/.test(file)) ||
      /^app\/(src|test|docs|bench)\//.test(file);
    expect(files.filter(isUnwanted)).toEqual([]);
    expect(files).toEqual(
      expect.arrayContaining(['app/LICENSE', 'app/dist/src/cli/main.js', 'usr/bin/sleep', 'etc/passwd']),
    );
    // Nothing that changes who runs it, and nothing of root that others may write.
    expect(modes.filter((line) => /^[^ ]*[sS]/.test(line))).toEqual([]);
    expect(modes.filter((line) => /^[-d].{7}w/.test(line)).map((line) => line.split(' ').at(-1))).toEqual([
      'tmp/',
    ]);
    const owned = modes.filter((line) => line.includes(` ${NOBODY}/${NOBODY} `));
    expect(owned.map((line) => line.split(' ').at(-1))).toEqual(['var/lib/blazar-enforcement/']);
  });

  it('answers --help and --version, and has the command by its name', async () => {
    const { version } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
    expect(await command([], '--help')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Usage: blazar-enforcement'),
    });
    expect(await command([], '--version')).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' });
    expect(await command(['--entrypoint', '["blazar-enforcement", "--version"]'])).toMatchObject({
      code: 0,
      stdout: `${version}\n`,
    });
    // As the preStop of etc/kubernetes does.
    expect(await command(['--entrypoint', '["sleep", "0"]'])).toMatchObject({ code: 0, stderr: '' });
  });

  it('has all filters and policies by name, and decides with them', async () => {
    const credits = await policyServer({ status: 204 });
    const filters = namesIn('filters');
    const policies = namesIn('policies');
    const conf = etcBlazar({
      'blazar.conf': `${SERVICE}[enforcement]
enabled_filters = ${filters.join(', ')}
max_lease_duration = 864000
external_service_base_endpoint = ${new URL(credits.url).origin}
scheduling_policy_path = /etc/blazar/scheduling.yaml
rules_path = /etc/blazar/rules.yaml
usage_budget_required = false
[ledger]
connection = sqlite:////var/lib/blazar-enforcement/ledger.db
[skypilot]
tokens = a-token-for-skypilot
admin_policies = ${policies.join(', ')}
add_volumes = /mnt/data:shared
allowed_clouds = kubernetes
allowed_images = docker:ubuntu
api_server = http://127.0.0.1:1
dynamic_kubernetes_contexts_update_registry = /etc/blazar/contexts.yaml
enforce_autostop_api_server = http://127.0.0.1:1
max_price = 5
reject_old_clients = 1
restrict_overrides_server_config = /etc/blazar/skypilot.yaml
rules_path = /etc/blazar/tasks.yaml
slurm_partition = lab/cpu
`,
      'scheduling.yaml': readFileSync(
        projectFile('examples/scheduling-policies/leases/gpu-nodes.yaml'),
        'utf8',
      ),
      'rules.yaml': 'rules:\n  - name: ten-days\n    allow: hours(lease) <= 240.0\n    message: Ten days.\n',
      'tasks.yaml':
        'rules:\n  - name: few\n    on: task\n    allow: task.num_nodes <= 4\n    message: Four.\n',
      'contexts.yaml': 'default: [gpu-east]\n',
      'skypilot.yaml': 'kubernetes:\n  allowed_contexts: [gpu-east]\n',
    });
    const flags = [...mounted(conf), '--volume', `${await volume()}:/var/lib/blazar-enforcement`];
    expect(await command(flags, 'ledger', 'upgrade')).toMatchObject({ code: 0 });
    expect(await command(flags, 'config', 'validate')).toMatchObject({
      code: 0,
      stdout: 'The configuration is valid.\n',
    });
    const service = await serving(...flags);
    const request = JSON.parse(capturedText('check-create-physical-host.json'));
    request.lease.reservations[0].resource_properties = '["==", "$gpu", "False"]';
    const answer = await service.ask('/v1/check-create', JSON.stringify(request));
    expect([answer.status, await answer.text()]).toEqual([204, '']);
    expect(credits.requests.filter(({ method }) => method === 'POST')).toHaveLength(1);
    const metrics = await service.get('/metrics');
    expect(filters.filter((name) => !metrics.includes(`filter="${name}"`))).toEqual([]);

    const rejected = await postJson(
      `${service.url}/skypilot/admin-policy?token=a-token-for-skypilot`,
      readFileSync(projectFile('test/fixtures/skypilot-wire/validate-server.body'), 'utf8'),
    );
    expect(rejected.status, await rejected.text()).toBe(400);
    expect(await stop(service)).toBe(0);
  });

  it('keeps a ledger on a volume, over an upgrade to another container', async () => {
    const conf = etcBlazar({
      'blazar.conf': `${SERVICE}[enforcement]\nenabled_filters = MaxLeasesFilter\nmax_leases_per_project = 1\n`,
    });
    const flags = [...mounted(conf), '--volume', `${await volume()}:/var/lib/blazar-enforcement`];
    expect(await command(flags, 'ledger', 'upgrade')).toMatchObject({ code: 0 });
    const request = capturedText('check-create-physical-host.json');
    const first = await serving(...flags);
    expect((await first.ask('/v1/check-create', request)).status).toBe(204);
    expect(await stop(first)).toBe(0);
    const second = await serving(...flags);
    expect((await second.ask('/v1/check-create', request)).status).toBe(403);
    const listed = await podman(
      'exec',
      second.name,
      'blazar-enforcement',
      'ledger',
      'list',
      '--format',
      'json',
    );
    expect(listed).toContain('climate-run-7');
    expect(await podman('exec', second.name, 'blazar-enforcement', 'ledger', 'verify')).not.toBe('');
  });

  it('is healthy, reloads at SIGHUP, refuses to reload a mistake, and counts', async () => {
    const conf = etcBlazar({ 'blazar.conf': SERVICE + LIMIT });
    const service = await serving(...mounted(conf));
    await podman('healthcheck', 'run', service.name);
    const request = capturedText('check-create-physical-host.json');
    expect((await service.ask('/v1/check-create', request)).status).toBe(204);

    writeFileSync(join(conf, 'blazar.conf'), SERVICE + LIMIT.replace('864000', '3600'));
    await podman('kill', '--signal', 'HUP', service.name);
    await vi.waitFor(
      async () => expect((await service.ask('/v1/check-create', request)).status).toBe(403),
      SOON,
    );
    writeFileSync(join(conf, 'blazar.conf'), `${SERVICE}${LIMIT}max_lease_duratoin = 1\n`);
    await podman('kill', '--signal', 'HUP', service.name);
    await vi.waitFor(async () => expect((await fetch(`${service.url}/readyz`)).status).toBe(503), SOON);
    expect((await service.ask('/v1/check-create', request)).status).toBe(403);
    await podman('healthcheck', 'run', service.name);
    expect(await service.get('/metrics')).toMatch(/^blazar_enforcement_configuration_valid 0$/m);
    expect(await stop(service)).toBe(0);
  });

  it('answers what is under way when it is stopped', async () => {
    const answers: (() => void)[] = [];
    const slow = await startService((response) => {
      answers.push(() => response.writeHead(204).end());
    });
    const conf = etcBlazar({
      'blazar.conf': `${SERVICE}[enforcement]
enabled_filters = ExternalServiceFilter
external_service_base_endpoint = ${new URL(slow.url).origin}
`,
    });
    const service = await serving(...mounted(conf));
    const asked = [1, 2, 3].map(() =>
      service.ask('/v1/check-create', capturedText('check-create-physical-host.json')),
    );
    await vi.waitFor(() => expect(answers).toHaveLength(3), SOON);
    await podman('kill', '--signal', 'TERM', service.name);
    // It has stopped to listen.
    await vi.waitFor(() => expect(fetch(`${service.url}/healthz`)).rejects.toThrow(), SOON);
    for (const answer of answers) {
      answer();
    }
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([204, 204, 204]);
    expect((await service.ended).code).toBe(0);
  });

  describe('ends with a clear error', () => {
    const served = (flags: readonly string[]) => command(['--env', 'OS_SERVICE__HOST=127.0.0.1', ...flags]);

    it('if nothing is mounted, or another path', async () => {
      const { code, stderr } = await served([]);
      expect([code, stderr]).toEqual([2, expect.stringContaining('/etc/blazar/blazar.conf')]);
      const conf = etcBlazar({ 'other.conf': SERVICE + LIMIT });
      expect(await served(mounted(conf))).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('/etc/blazar/blazar.conf'),
      });
    });

    it('if a file with a secret, or the configuration, cannot be read', async () => {
      const conf = etcBlazar({
        'blazar.conf': `[service]\ntokens_file = /etc/blazar/tokens\n${LIMIT}`,
        tokens: TOKEN,
      });
      chmodSync(join(conf, 'tokens'), 0o600);
      expect(await served(mounted(conf))).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/\/etc\/blazar\/tokens.*permission/),
      });
      chmodSync(join(conf, 'blazar.conf'), 0o600);
      expect(await served(mounted(conf))).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/\/etc\/blazar\/blazar\.conf.*permission/),
      });
    });

    it('if the volume of the ledger cannot be written to, or there is none', async () => {
      const conf = etcBlazar({
        'blazar.conf': `${SERVICE}[enforcement]\nenabled_filters = MaxLeasesFilter\nmax_leases_per_project = 1\n`,
      });
      const ofRoot = temporaryFolder();
      chmodSync(ofRoot, 0o755);
      for (const flags of [[], ['--volume', `${ofRoot}:/var/lib/blazar-enforcement`]]) {
        for (const args of [['ledger', 'upgrade'], []]) {
          const { code, stderr } = await command([...mounted(conf), ...flags], ...args);
          expect([code, stderr]).toEqual([
            2,
            expect.stringContaining('/var/lib/blazar-enforcement/ledger.db'),
          ]);
        }
      }
    });
  });
});
