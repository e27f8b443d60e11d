/** A real Blazar refuses a lease with the message of a rule. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { peerProgram } from '../support/peers.ts';
import { startedService } from '../support/started-service.ts';
import { hostReservation, RealBlazar } from './blazar.ts';

const program = peerProgram('BLAZAR_PEER');
const DAY = 86_400_000;

describe.skipIf(program === undefined)('a real Blazar', () => {
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-rules-'));
  let blazar: RealBlazar | undefined;
  let close: () => Promise<void> = async () => {};

  beforeAll(async () => {
    const rules_path = join(folder, 'rules.yaml');
    writeFileSync(
      rules_path,
      `rules:
- name: two-days
  allow: lease.end_date - lease.start_date <= duration("48h")
  message: {expression: '"At most two days, not " + string(int(hours(lease))) + " hours."'}
`,
    );
    const service = await startedService({
      enforcement: { enabled_filters: ['RulesFilter'], rules_path },
      service: { port: 0 },
    });
    close = () => service.close();
    blazar = await RealBlazar.startOrSkip(program ?? '', service.url, 2);
  });

  afterAll(async () => {
    await blazar?.stop();
    await close();
    rmSync(folder, { recursive: true, force: true });
  });

  const asked = (days: number) => {
    const date = (time: number) => new Date(time).toISOString().slice(0, 16).replace('T', ' ');
    const start = Date.now() + DAY;
    return blazar?.ask('POST', '/v1/leases', 'climate/alice', {
      name: `${days} days`,
      start_date: date(start),
      end_date: date(start + days * DAY),
      reservations: [hostReservation(1, 1)],
      events: [],
    });
  };

  it('grants what rules allow, and refuses the rest with their message', async () => {
    expect((await asked(2))?.lease).toBeDefined();
    const refused = await asked(3);
    expect(refused?.lease).toBeUndefined();
    expect(refused?.text).toContain('At most two days, not 72 hours.');
  });
});
