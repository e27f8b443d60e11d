import { describe, expect, it } from 'vitest';
import { CHECKS } from '../../src/conformance/run.ts';
import { idsOf, runAgainst, smallService } from './services.ts';
import { WRONG_SERVICES } from './wrong-services.ts';

it('there is exactly one wrong service for each check', () => {
  expect(Object.keys(WRONG_SERVICES)).toEqual(CHECKS.map(({ id }) => id));
});

it('the service that they are made from passes every check', async () => {
  const { url } = await smallService();
  const report = await runAgainst(url);
  expect(idsOf(report, 'passed')).toEqual(CHECKS.map(({ id }) => id));
});

describe('the check', () => {
  for (const [id, { mistake, fault, alsoFails = [] }] of Object.entries(WRONG_SERVICES)) {
    it(`${id} fails a service that ${mistake}`, async () => {
      const { url } = await smallService(fault());
      // Its requests are plain ones, and nearly half of all: they are sent where they matter.
      const checks = CHECKS.filter((check) => check.id === id || check.id !== 'concurrent');
      const failed = idsOf(await runAgainst(url, { checks }), 'failed');
      if (alsoFails === 'many') {
        expect(failed).toContain(id);
      } else {
        expect(failed.sort()).toEqual([id, ...alsoFails].sort());
      }
    });
  }
});
