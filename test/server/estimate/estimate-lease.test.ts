/** The estimate of the API: who sees what. */
import { expect, it, onTestFinished } from 'vitest';
import { Deadline } from '../../../src/base/deadline.ts';
import { requireConfiguration } from '../../../src/enforcement/configuration.ts';
import { Generation } from '../../../src/server/configuration/generation.ts';
import { SECTIONS } from '../../../src/server/configuration/sections.ts';
import { estimateLease } from '../../../src/server/estimate/estimate-lease.ts';
import { valuesOnly } from '../../support/files.ts';
import { giveBudgets, newLedger } from '../../support/ledgers.ts';
import { recordingLogger } from '../../support/logger.ts';

it('hides from members what is only tried, and what it would take', async () => {
  const connection = await newLedger();
  await giveBudgets(connection, [
    { projectId: 'climate', amount: '1', from: '2026-01-01', until: '2060-01-01' },
  ]);
  const configuration = await requireConfiguration(
    valuesOnly({
      ledger: { connection },
      enforcement: {
        enabled_filters: ['UsageBudgetFilter', 'MaxLeasesFilter'],
        audit_filters: ['UsageBudgetFilter'],
      },
    }),
    SECTIONS,
  );
  const generation = await Generation.create(1, configuration, { logger: recordingLogger() });
  onTestFinished(() => generation.retire());
  const deadline = new Deadline(30);
  onTestFinished(() => deadline.end());
  const asked = {
    generation,
    requestId: 'req-1',
    projectId: 'climate',
    userId: 'alice',
    wanted: {
      start_date: '2055-01-11 09:00',
      end_date: '2055-01-15 09:00',
      reservations: [{ resource_type: 'physical:host', min: 1, max: 1 }],
    },
    deadline,
  };
  const shown = await estimateLease({ ...asked, forMember: false });
  expect(shown).toMatchObject({ allowed: true, outcome: 'audit', filter: 'UsageBudgetFilter' });
  expect(shown.charges.map(({ filter }) => filter)).toContain('UsageBudgetFilter');
  const seen = await estimateLease(asked);
  expect(seen).toMatchObject({ allowed: true, outcome: 'allowed', filter: null, warnings: [] });
  expect(JSON.stringify(seen)).not.toContain('UsageBudgetFilter');
});
