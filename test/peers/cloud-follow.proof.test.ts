/** The service follows a real Blazar behind a real Keystone by itself, and so does the command. */
import { afterAll, describe, expect, it, vi } from 'vitest';
import { reconcileCommand } from '../../src/cli/ledger/reconcile.ts';
import { listBudgets } from '../../src/ledger/budgets/budgets.ts';
import { type Service, startService } from '../../src/server/service.ts';
import { confFile } from '../support/files.ts';
import { giveBudget, ledgerAt, NO_WAIT, newLedgers } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { peerProgram } from '../support/peers.ts';
import { hurriedClock } from '../support/samples.ts';
import { RealBlazar } from './blazar.ts';
import { RealKeystone } from './keystone.ts';

const HOUR = 3600;
const program = peerProgram('BLAZAR_PEER');
const keystone = await RealKeystone.start();
const newLedger = newLedgers();

afterAll(() => keystone?.remove());

const host = (min: number, max: number) => ({
  resource_type: 'physical:host',
  min,
  max,
  hypervisor_properties: '',
  resource_properties: '',
});

describe.skipIf(program === undefined || keystone === undefined)('a small cloud', () => {
  it('is followed by the service, with tokens, across a reload, and by the command', async () => {
    const peer = keystone as RealKeystone;
    const project = peer.ids.projects.climate;
    const connection = await newLedger('sqlite');
    const conf = (endpoint: string, interval: number) => `[service]
port = 0
keystone_auth = true
[ledger]
connection = ${connection}
[keystone]
auth_url = ${peer.url}
username = blazar
password = blazar
project_name = service
[blazar]
endpoint = ${endpoint}
reconcile_interval = ${interval}
reconcile_grace = 3
[enforcement]
enabled_filters = UsageBudgetFilter
`;
    const file = confFile(conf('http://127.0.0.1:1/', 0));
    const logger = recordingLogger();
    const service: Service = await startService(
      { environment: {}, configFiles: [file] },
      { logger, metricsClock: hurriedClock() },
    );
    const blazar = await RealBlazar.start(program ?? '', `${service.url}/v1/`, [
      '--keystone',
      peer.url,
      '--policy-token',
      await peer.token('blazar', { project: 'service' }),
      '--hosts',
      '4',
    ]);
    const ledger = await ledgerAt(connection, { now: () => new Date().toISOString() });
    try {
      await giveBudget(ledger, {
        projectId: project,
        amount: '500',
        from: '2026-01-01',
        until: '2040-01-01',
      });
      const taken = async () => {
        const [budget] = await listBudgets(ledger, project, NO_WAIT);
        return Number(budget?.taken ?? 0n) / 1e6 / HOUR;
      };
      const metric = async (name: string) => {
        const text = await (await fetch(`${service.url}/metrics`)).text();
        return Number(
          new RegExp(`^blazar_enforcement_${name.replace(/[{}"]/g, '\\$&')} (\\S+)$`, 'm').exec(text)?.[1],
        );
      };
      expect(await metric('blazar_last_round_age_seconds')).toBeNaN();
      const alice = await peer.token('alice');
      const dates = { start_date: '2030-01-01 00:00', end_date: '2030-01-01 10:00' };
      const body = { name: 'run', ...dates, reservations: [host(1, 9)] };
      const { status, lease } = await blazar.ask('POST', '/v1/leases', alice, body);
      expect(status).toBe(201);
      const other = { name: 'two', ...dates, start_date: '2030-01-01 12:00', end_date: '2030-01-01 22:00' };
      await blazar.ask('POST', '/v1/leases', alice, { ...other, reservations: [host(1, 6)] });
      expect(await taken()).toBe(80);
      await blazar.failNova(true);
      await blazar.ask('POST', '/v1/leases', alice, {
        ...body,
        start_date: '2030-02-01 00:00',
        end_date: '2030-02-01 10:00',
        reservations: [host(1, 1)],
      });
      await blazar.failNova(false);
      expect(await taken()).toBeGreaterThan(80);

      const { writeFileSync } = await import('node:fs');
      writeFileSync(file, conf(`${blazar.url}/`, 1));
      expect(await service.reload()).toBe(true);
      const patient = { timeout: 120_000, interval: 200 };
      await vi.waitFor(async () => expect(await taken()).toBe(80), patient);
      // The round that has released it may still be under way.
      await expect.poll(() => metric('blazar_rounds_total{outcome="complete"}'), patient).toBeGreaterThan(0);
      expect(await metric('blazar_changes_total{kind="released"}')).toBe(1);
      expect(await metric('blazar_leases')).toBe(2);
      expect(await metric('blazar_last_round_age_seconds')).toBeLessThan(60);

      // Keystone goes and comes: the ledger stays as it is.
      await peer.stop();
      await blazar.tick();
      await peer.restart();

      // Not followed any more: the command does it.
      writeFileSync(file, conf(blazar.url, 0));
      expect(await service.reload()).toBe(true);
      await blazar.ask('PUT', `/v1/leases/${lease?.id}`, await peer.token('alice'), {
        reservations: [{ id: lease?.reservations[0]?.id, min: 1, max: 2 }],
      });
      const written: string[] = [];
      const out = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
        written.push(String(text));
        return true;
      });
      try {
        const command = reconcileCommand();
        await command.parseAsync(['--blazar', '--config-file', file, '--format', 'json'], { from: 'user' });
      } finally {
        out.mockRestore();
      }
      expect(process.exitCode ?? 0).toBe(0);
      expect(JSON.parse(written.join(''))).toMatchObject({
        leases: [{ outcome: 'corrected', lease_id: lease?.id }],
      });
      const truth = (await blazar.truth()).map(({ resources }) => resources);
      expect(await taken()).toBe(truth.reduce((sum, one) => sum + one * 10, 0));
    } finally {
      await ledger.close();
      await blazar.stop();
      await service.close();
    }
  });
});
