/** What policies changed: in the log, over the page, in the statistics and in the metrics. */
import { describe, expect, it } from 'vitest';
import { Statistics } from '../../../src/decisions/statistics.ts';
import { serviceLog } from '../../support/decision-logs.ts';
import { metric } from '../../support/metric.ts';
import { runSkypilot } from '../../support/skypilot-service.ts';
import { rowsOf, visitor } from '../console/visitor.ts';

const HOSTILE = `task.labels = {
  '<script>alert(1)</script>': '"><img src=x onerror=alert(2)>',
  'right\\u202eleft': 'clear\\u001b[2J',
};
task.envs = { HF_TOKEN: 'swordfish-1', OTHER: 'say swordfish-1' };
task.num_nodes ??= 2;
task.many = Object.fromEntries(Array.from({ length: 200 }, (_, index) => ['m' + index, index]));`;
const SMALL = 'task.num_nodes = 3; delete task.run;';

async function running() {
  const { decision_log, of } = serviceLog();
  const policies = { HostilePolicy: HOSTILE, SmallPolicy: SMALL };
  const service = await runSkypilot(policies, { service: { decision_log } });
  return { ...service, ...visitor(service.url), recorded: () => of(service) };
}

describe('the page of a decision of SkyPilot', () => {
  it('shows what each policy changed as a diff, escaped, cut and without secrets', async () => {
    const { ask, get, recorded } = await running();
    await ask({ at_client_side: true, user: '' });
    const list = await get('/decisions');
    expect(list.html).toContain('skypilot.launch (client)');
    const path = /href="(\/decisions\/req-[^"]+)"/.exec(list.html)?.[1] ?? '';
    const { html } = await get(path);
    for (const one of ['<script>alert', '<img', '\u202e', '\u001b', 'swordfish']) {
      expect(html).not.toContain(one);
    }
    const rows = rowsOf(html, 'Changes made by HostilePolicy');
    expect(rows.slice(0, 5)).toEqual([
      [
        'task.labels["<script>alert(1)</script>"]',
        expect.stringMatching(/^\+ .*<img src=x onerror=alert\(2\)>/),
      ],
      [expect.stringContaining('[U+202E]'), expect.stringContaining('\\u001b[2J')],
      ['task.envs.HF_TOKEN', '+ ****'],
      ['task.envs.OTHER', '+ say ****'],
      ['task.num_nodes', '+ 2'],
    ]);
    // A decision has 50 changes at most, and the policy with few has all of its own.
    expect(rows).toHaveLength(48);
    expect(html).toContain('And 157 more.');
    expect(rowsOf(html, 'Changes made by SmallPolicy')).toEqual([
      ['task.run', '- hostname'],
      ['task.num_nodes', '- 2 + 3'],
    ]);
    const [record] = (await recorded()).records;
    expect(
      record?.filters.map(({ changes, changes_left_out }) => [changes?.length, changes_left_out]),
    ).toEqual([
      [48, 157],
      [2, undefined],
    ]);
    expect(JSON.stringify(record)).not.toContain('swordfish');
  });
});

describe('a launch', () => {
  const options = { cluster_name: 'one', idle_minutes_to_autostop: null, down: false };
  /** What SkyPilot asks about `sky launch`, `sky launch --dryrun`, `sky jobs launch`, a pool and `sky exec`. */
  const ASKED = [
    { at_client_side: true, user: '' },
    { request_name: 'validate' },
    { request_name: 'optimize' },
    {},
    { request_options: { ...options, dryrun: true } },
    { request_name: 'jobs.launch', at_client_side: true, user: '', request_options: null },
    { request_name: 'validate', request_options: null },
    { request_name: 'jobs.launch', request_options: null },
    { request_name: 'jobs.launch_controller' },
    { request_name: 'jobs.launch_cluster' },
    { request_name: 'jobs.pool_apply', at_client_side: true, user: '', request_options: null },
    { request_name: 'serve.up', request_options: null },
    { request_name: 'exec' },
  ];

  it('counts once, whatever was asked about it', async () => {
    const { decision_log, of } = serviceLog();
    const policies = { NoPolicy: "if (task.name === 'refused') { throw new PolicyRejected('no'); }" };
    const service = await runSkypilot(policies, { service: { decision_log } });
    for (const one of ASKED) {
      await service.ask(one);
    }
    // Where a launch is refused, it ends.
    await service.ask({ task: 'name: refused\n', request_name: 'validate' });
    await service.ask({ task: 'name: refused\n', at_client_side: true, user: '' });
    await service.ask({ task: 'name: refused\n', request_options: { ...options, dryrun: true } });
    await service.ask({ task: 'name: refused\n', request_name: 'jobs.launch_cluster' });
    const { records, metrics } = await of(service);
    const statistics = new Statistics();
    for (const record of records) {
      statistics.add(record);
    }
    expect(statistics.summary(1)).toMatchObject({ decisions: 17, launches: { decisions: 5, refused: 2 } });
    const counted = records
      .filter(({ launch }) => launch)
      .map(({ operation, side }) => `${operation} ${side}`);
    expect(counted).toEqual([
      'skypilot.launch server',
      'skypilot.jobs.launch server',
      'skypilot.serve.up server',
      'skypilot.validate server',
      'skypilot.launch client',
    ]);
    const name = 'blazar_enforcement_skypilot_launches_total';
    expect(metric(metrics, name, { operation: 'skypilot.launch', outcome: 'allowed' })).toBe(1);
    expect(metric(metrics, name, { operation: 'skypilot.launch', outcome: 'rejected' })).toBe(1);
    expect(metric(metrics, name, { operation: 'skypilot.validate', outcome: 'rejected' })).toBe(1);
  });
});
