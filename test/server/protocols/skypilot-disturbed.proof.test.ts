/** Launches while the disk of the ledger and the decision log is full, and while the service stands still: each 200 is charged. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { listLeases } from '../../../src/ledger/reports/reports.ts';
import { verifyLedger } from '../../../src/ledger/reports/verify.ts';
import { temporaryFile } from '../../support/files.ts';
import { startServices } from '../../support/ledger-processes.ts';
import { DIALECTS, giveBudget, NO_WAIT, newLedgers, openedLedger } from '../../support/ledgers.ts';
import { postJson } from '../../support/post-json.ts';
import { envelope } from '../../support/skypilot.ts';
import { SkypilotApiDouble } from '../../support/skypilot-api-server.ts';

const newLedgerOn = newLedgers();
const HAS_PRLIMIT = (() => {
  try {
    execFileSync('prlimit', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

async function disturbed(dialect: (typeof DIALECTS)[number]) {
  const connection = await newLedgerOn(dialect);
  const api = await SkypilotApiDouble.start({ now: () => Date.now() / 1000 });
  const ledger = await openedLedger(connection, { now: () => new Date().toISOString() });
  await giveBudget(ledger, { projectId: 'ml', amount: '100000', from: '2020-01-01', until: '2200-01-01' });
  const file = temporaryFile('decisions.log', '');
  const [service] = await startServices(1, {
    connection,
    timeout: 20,
    deadline: 60,
    enabled: 'MaxLeaseDurationFilter',
    service: `decision_log = ${file}`,
    sections: `[skypilot]\nadmin_policies = UsageBudgetPolicy\napi_server = ${api.url}\n`,
  });
  const pid = service?.process.pid ?? 0;
  const launch = async (cluster: string) => {
    const options = { cluster_name: cluster, idle_minutes_to_autostop: null, down: false, dryrun: false };
    const request = envelope({
      task: 'resources: {accelerators: A100:1}\n',
      skypilot_config: 'active_workspace: ml\n',
      user: 'id: 0a1b2c3d\nname: lin\n',
      request_options: options,
    });
    const answer = await postJson(`${service?.url}/skypilot/admin-policy`, request);
    return { cluster, status: answer.status, text: await answer.text() };
  };
  const charged = async () =>
    (await listLeases(ledger, { limit: 1000 }, NO_WAIT)).map(({ leaseId }) => leaseId?.split('/')[1]);
  const logged = () =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line) => {
        try {
          const { lease_name: name, outcome } = JSON.parse(line) as Record<string, string>;
          return [`${name} ${outcome}`];
        } catch {
          return [];
        }
      });
  return { ledger, pid, launch, charged, logged };
}

it.skipIf(!HAS_PRLIMIT)(
  'a full disk refuses launches, charges none of them, and forgets no decision',
  async () => {
    const { ledger, pid, launch, charged, logged } = await disturbed('sqlite');
    expect(await launch('before')).toMatchObject({ status: 200 });
    await expect.poll(logged).toEqual(['before allowed']);
    execFileSync('prlimit', [`--pid=${pid}`, '--fsize=64:']);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => launch(`full-${index}`)));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(500));
    expect(answers.every(({ text }) => !/disk|SQLITE|full-/i.test(text))).toBe(true);
    expect(await charged()).toEqual(['before']);
    execFileSync('prlimit', [`--pid=${pid}`, '--fsize=unlimited:']);
    await expect.poll(() => launch('after')).toMatchObject({ status: 200 });
    expect((await charged()).sort()).toEqual(['after', 'before']);
    await expect
      .poll(() => logged().filter((line) => line.startsWith('full-') && line.endsWith(' failed')))
      .toHaveLength(20);
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
  },
);

it.each(DIALECTS)(
  'a service that stands still amid launches charges what it allows, on %s',
  async (dialect) => {
    const { ledger, pid, launch, charged } = await disturbed(dialect);
    const asked = Array.from({ length: 40 }, (_, index) => launch(`train-${index}`));
    await Promise.race(asked);
    process.kill(pid, 'SIGSTOP');
    await pause(1000);
    process.kill(pid, 'SIGCONT');
    const answers = await Promise.all(asked);
    const allowed = answers.flatMap(({ cluster, status }) => (status === 200 ? [cluster] : []));
    expect(allowed.length).toBeGreaterThan(0);
    expect(await charged()).toEqual(expect.arrayContaining(allowed));
    expect(await launch('after')).toMatchObject({ status: 200 });
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
  },
);
