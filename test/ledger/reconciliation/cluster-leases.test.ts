import { expect, it } from 'vitest';
import { claimantOf } from '../../../src/ledger/lease-request.ts';
import { readOpenRows, reconcileObservation } from '../../../src/ledger/reconciliation/reconcile.ts';
import { knownRegions } from '../../../src/ledger/reconciliation/regions.ts';
import { openLab } from '../../policies/charging.ts';
import { NO_WAIT } from '../../support/ledgers.ts';

it('a list of leases of Blazar says nothing about clusters of SkyPilot', async () => {
  const lab = await openLab({ budget: '100' });
  await lab.ask();
  lab.pass(7200);
  expect(await knownRegions(lab.ledger, NO_WAIT)).toEqual([]);
  const before = await readOpenRows(lab.ledger, '', NO_WAIT);
  const round = reconcileObservation(
    lab.ledger,
    before,
    [],
    {
      region: '',
      who: 'test',
      reason: null,
      exemptProjects: [],
      grace: 0n,
      isDryRun: false,
      doubts: [],
      isKnownEndpoint: true,
      otherEndpoints: [],
      overdue: [],
      looksOften: true,
      doubted: new Set(),
      claimants: [claimantOf({ claims: () => [] }, 'None', false)],
    },
    NO_WAIT,
  );
  expect(await round.next()).toMatchObject({ done: true });
  expect(await lab.taken()).toBe(24);
});
