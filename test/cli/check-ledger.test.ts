import { expect, it } from 'vitest';
import { checkCommand } from '../../src/cli/check.ts';
import { copiedLedgers } from '../ledger/recorded-leases.ts';
import { runInProcess } from '../support/command-in-process.ts';
import { confFile, temporaryFile } from '../support/files.ts';
import { COMING, commandsOn, fill } from './ledger/setup.ts';

const newLedger = copiedLedgers(fill);

it('check reads the ledger and records nothing', async () => {
  const connection = await newLedger();
  const { ledger } = commandsOn(connection);
  const before = (await ledger('export')).stdout;
  const conf = confFile(
    `[enforcement]\nenabled_filters = MaxLeasesFilter\nmax_leases_per_project = 2\n[ledger]\nconnection = ${connection}\n`,
  );
  const context = { user_id: 'alice', project_id: 'climate' };
  const lease = {
    id: 'lease-1',
    name: 'first',
    start_date: COMING.start,
    end_date: COMING.end,
    reservations: [],
  };
  const requests = {
    create: { context, lease: { ...lease, id: undefined, name: 'another' } },
    update: { context, currentLease: lease, lease: { end_date: '2096-12-09' } },
    end: { context, lease },
  };
  for (const [operation, request] of Object.entries(requests)) {
    const file = temporaryFile('request.json', JSON.stringify(request));
    const { code, stderr } = await runInProcess(checkCommand(), [operation, file, '--config-file', conf]);
    expect({ operation, code, stderr }).toEqual({ operation, code: 0, stderr: '' });
    expect((await ledger('export')).stdout).toBe(before);
  }
});
