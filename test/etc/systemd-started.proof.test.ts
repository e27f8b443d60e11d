/** Proves that the Debian package runs under a real systemd: started, reloaded, killed, in several processes, upgraded and removed. */
import { copyFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { baseImage, hasContainerBuilder, podman, podmanEnd } from '../support/containers.ts';
import { cleaningAfterAll, madePackage } from '../support/debian-root.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

const NAME = 'blazar-enforcement';
const CONF = `/etc/${NAME}/blazar.conf`;
const SOON = { timeout: 120_000, interval: 200 };
const LIMITS = `[service]
host = 127.0.0.1
port = 8642
decision_log = /var/log/${NAME}/decisions.jsonl
[ledger]
connection = sqlite:///var/lib/${NAME}/ledger.db
[enforcement]
enabled_filters = MaxLeaseDurationFilter, UsageBudgetFilter
max_lease_duration = 864000
usage_budget_required = true
`;
const afterwards = cleaningAfterAll();

/** Debian with systemd, in which the package waits to be installed. */
async function debianWithSystemd(): Promise<string> {
  const folder = temporaryFolder(afterwards);
  const file = await madePackage(afterwards);
  copyFileSync(file, join(folder, basename(file)));
  const packages = 'systemd systemd-sysv dbus curl adduser';
  writeFileSync(
    join(folder, 'Dockerfile'),
    [
      `FROM ${await baseImage()}`,
      `RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends ${packages}`,
      `COPY ${basename(file)} /package.deb`,
      'CMD ["/sbin/init"]\n',
    ].join('\n'),
  );
  const how = ['--isolation', 'chroot', '--network', 'host', '--pull=never'];
  await podman('build', ...how, '--tag', 'with-systemd', folder);
  return 'localhost/with-systemd';
}

describe.skipIf(!hasContainerBuilder())('the Debian package under systemd', () => {
  it('starts, refuses to reload mistakes, comes back when it is killed, and leaves nothing when it is purged', async (context) => {
    const image = await debianWithSystemd();
    const container = `systemd-${process.pid}`;
    onTestFinished(async () => void (await podmanEnd('rm', '--force', '--time', '0', container)));
    await podman(
      'run',
      '--detach',
      '--name',
      container,
      '--privileged',
      '--systemd=always',
      '--network',
      'none',
      image,
    );
    /** A line of shell in it. */
    const shell = (line: string) => podmanEnd('exec', container, 'sh', '-c', line);
    const succeeds = async (line: string) => {
      const { code, stdout, stderr } = await shell(line);
      expect(code, `${line}\n${stdout}${stderr}`).toBe(0);
      return stdout.trim();
    };
    const write = (text: string) => succeeds(`cat > ${CONF} <<'END'\n${text}END`);
    const journal = () => succeeds(`journalctl --unit ${NAME} --no-pager --output cat`);
    const ready = () =>
      vi.waitFor(
        async () => expect(await succeeds('curl --silent http://127.0.0.1:8642/readyz')).toContain('"ready"'),
        SOON,
      );
    // Not every machine lets a container have a systemd.
    const runs = () => succeeds('systemctl is-system-running | grep -E "running|degraded"');
    const cannot = await vi.waitFor(runs, SOON).then(
      () => undefined,
      (error: unknown) => String(error),
    );
    if (cannot !== undefined) {
      context.skip(`systemd does not start in a container here: NOT proven under it (${cannot})`);
    }

    await succeeds('dpkg --install /package.deb');
    await ready();
    expect(await journal()).toContain('Listening on http://127.0.0.1:8642');

    // A mistake is told at the reload, and what runs goes on.
    await write('[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = one day\n');
    expect((await shell(`systemctl reload ${NAME}`)).code).not.toBe(0);
    expect(await journal()).toContain(`${CONF}:3: [enforcement] max_lease_duration: expected a whole number`);
    await ready();

    // An operator is root: the ledger that the command makes belongs to the service.
    await write(LIMITS);
    await succeeds(`${NAME} ledger upgrade`);
    await succeeds(`systemctl restart ${NAME}`);
    await ready();
    const lease = `{"start_date":"2040-01-01 09:00","end_date":"2040-01-02 09:00","reservations":[{"resource_type":"physical:host","min":1,"max":1}]}`;
    const body = `{"context":{"user_id":"alice","project_id":"climate"},"lease":${lease}}`;
    const ask = () =>
      succeeds(
        `curl --silent --write-out ' %{http_code}' --header 'Content-Type: application/json' --data '${body}' http://127.0.0.1:8642/check-create`,
      );
    expect(await ask()).toMatch(/no budget.* 403$/);
    await succeeds(
      `${NAME} budget set climate --amount 100 --from 2026-01-01 --until 2060-01-01 --reason proof`,
    );
    expect(await ask()).toBe('204');

    // Where nothing but systemd is: a smaller limit is enforced after a reload.
    await write(LIMITS.replace('864000', '3600'));
    await succeeds(`systemctl reload ${NAME}`);
    await vi.waitFor(async () => expect(await ask()).toMatch(/1 hour.* 403$/), SOON);
    await write(LIMITS);
    await succeeds(`systemctl reload ${NAME}`);
    const third = () => succeeds('curl --silent http://127.0.0.1:8642/readyz');
    await vi.waitFor(async () => expect(await third()).toContain('"generation":3'), SOON);

    // A reload in its first moment ends no more than that moment.
    await succeeds(`systemctl restart ${NAME} && systemctl kill --signal=HUP --kill-whom=main ${NAME}`);
    await ready();

    // It comes back by itself, and the lease is still charged.
    const main = () => succeeds(`systemctl show --property MainPID --value ${NAME}`);
    const before = await main();
    await succeeds(`kill -KILL ${before}`);
    await vi.waitFor(async () => expect([before, '0']).not.toContain(await main()), SOON);
    await ready();
    expect(await succeeds(`${NAME} budget list`)).toMatch(/climate .* 24 /);

    // A mistake is no reason to try again and again.
    await write(LIMITS.replace('864000', 'ten'));
    await succeeds(`systemctl restart ${NAME} || true`);
    await vi.waitFor(
      async () => expect((await shell(`systemctl is-failed ${NAME}`)).stdout.trim()).toBe('failed'),
      SOON,
    );
    expect(await succeeds(`systemctl show --property NRestarts --value ${NAME}`)).toBe('0');
    await write(LIMITS);
    await succeeds(`systemctl start ${NAME}`);
    await ready();

    // The same version once more, as an upgrade is: what runs is restarted.
    const old = await main();
    await succeeds('dpkg --install --force-confold /package.deb');
    await ready();
    expect(await main()).not.toBe(old);
    expect(await ask()).toBe('204');
    await succeeds(`systemctl enable ${NAME}@1`);
    await succeeds(`dpkg --purge ${NAME}`);
    expect((await shell(`systemctl cat ${NAME}`)).code).not.toBe(0);
    expect(await succeeds('ls /etc/systemd/system/multi-user.target.wants')).not.toContain(NAME);
    expect((await shell(`ls -d /etc/${NAME} /var/lib/${NAME} /var/log/${NAME}`)).stdout).toBe('');
  });
});
