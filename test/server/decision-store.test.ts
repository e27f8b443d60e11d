import { describe, expect, it, vi } from 'vitest';
import { confFile } from '../support/files.ts';
import { newLedger } from '../support/ledgers.ts';
import { createLasting } from '../support/requests.ts';
import { runServiceOn } from '../support/running-service.ts';
import { readSamples } from '../support/samples.ts';

const SOON = { timeout: 10_000, interval: 10 };

async function storing(
  service = '',
  enforcement = 'enabled_filters = MaxLeasesFilter\nmax_leases_per_project = 1',
) {
  const connection = await newLedger();
  const conf = confFile(
    `[enforcement]\n${enforcement}\n[service]\nport = 0\n${service}\n[ledger]\nconnection = ${connection}\n`,
  );
  const running = await runServiceOn({ environment: {}, configFiles: [conf] });
  return { ...running, connection };
}

describe('decisions in the ledger', () => {
  it('are stored when they refuse', async () => {
    const { post, url } = await storing();
    const answers = [
      await post('/check-create', createLasting(60)),
      await post('/check-create', createLasting(61)),
    ];
    expect(answers.map(({ status }) => status)).toEqual([204, 403]);
    await vi.waitFor(async () => expect((await readSamples(url)).decision_store_stored_total).toBe(1), SOON);
  });
});
