import { describe, expect, it } from 'vitest';
import { newLedger } from '../../support/ledgers.ts';
import { createLasting } from '../../support/requests.ts';
import { runServiceOnFile } from '../../support/running-service.ts';
import { readSamples } from '../../support/samples.ts';
import { body } from '../../support/skypilot.ts';
import { PATH } from '../../support/skypilot-service.ts';

async function storing(
  sections = '[enforcement]\nenabled_filters = MaxLeasesFilter\nmax_leases_per_project = 1',
) {
  const connection = await newLedger();
  return runServiceOnFile(`${sections}\n[service]\nport = 0\n[ledger]\nconnection = ${connection}\n`);
}

describe('decisions in the ledger', () => {
  it('are stored when they refuse', async () => {
    const { post, url } = await storing();
    const answers = [
      await post('/check-create', createLasting(60)),
      await post('/check-create', createLasting(61)),
    ];
    expect(answers.map(({ status }) => status)).toEqual([204, 403]);
    await expect.poll(async () => (await readSamples(url)).decision_store_stored_total).toBe(1);
  });

  it('are stored too if only a policy for SkyPilot uses the ledger', async () => {
    const policy = 'admin_policies = UsageBudgetPolicy\napi_server = http://127.0.0.1:9\nisolation = none';
    const { post, url } = await storing(`[skypilot]\n${policy}`);
    const launch = { task: 'resources: {accelerators: A100:2}\n', skypilot_config: 'active_workspace: ml\n' };
    expect(await post(PATH, body(launch))).toMatchObject({ status: 400 });
    await expect.poll(async () => (await readSamples(url)).decision_store_stored_total).toBe(1);
  });

  it('are not stored if the policies for SkyPilot use no ledger', async () => {
    const { post, url } = await storing('[skypilot]\nadmin_policies = RejectAllPolicy\nisolation = none');
    expect(await post(PATH, body({}))).toMatchObject({ status: 400 });
    expect((await readSamples(url)).decision_store_waiting).toBe(0);
  });
});
