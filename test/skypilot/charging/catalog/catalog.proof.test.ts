/** Prices of every choice that SkyPilot has. With the source of SkyPilot (SKYPILOT_SOURCE). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openCatalogs } from '../../../../src/skypilot/charging/catalog/catalog-file.ts';
import type { Hardware } from '../../../../src/skypilot/charging/contract.ts';
import { HardwareCosts, HardwareRates } from '../../../../src/skypilot/charging/hardware-costs.ts';
import { projectFile } from '../../../support/files.ts';
import { skipAloud } from '../../../support/peers.ts';
import { askSkypilot, skypilotSource } from '../../../support/skypilot-source.ts';

const source = skypilotSource();
const file = projectFile('examples/skypilot-catalog/aws.csv');

const question = fc.record({
  accelerator: fc.constantFrom(null, 'T4', 't4', 'A100', 'a100-80gb', 'A100-80GB'),
  count: fc.constantFrom(1, 8),
  cpus: fc.constantFrom(null, null, '2', '2+', '4', '4+', '8+', '96', '97+'),
  memory: fc.constantFrom(null, null, '8', '16+', '32', '4x', '12x', '1152'),
  spot: fc.boolean(),
  region: fc.constantFrom(null, 'us-east-1', 'EU-West-1'),
  max: fc.constantFrom(null, null, 0.1, 0.384, 0.8, 12, 33),
  type: fc.constantFrom(null, null, null, 'm6i.large', 'g4dn.2xlarge', 'p4d.24xlarge'),
});

describe.skipIf(source === undefined)('what SkyPilot may choose', () => {
  it('is never moreExpensive than what is held, and a price is held for all of it', async () => {
    const questions = fc.sample(question, { numRuns: 5000, seed: 18 });
    const answers = askSkypilot<{ prices?: number[]; error?: string }>(
      source ?? '',
      'skypilot-catalog.py',
      questions.map((one) => ({ ...one, file })),
    );
    if (answers[0]?.error !== undefined) {
      skipAloud('pandas', answers[0].error);
      return;
    }
    const costs = new HardwareCosts(new HardwareRates({}), await openCatalogs({ aws: file }, 'x'));
    let priced = 0;
    for (const [index, one] of questions.entries()) {
      const { accelerator, count, cpus, memory, spot, region, max, type } = one;
      const hardware: Hardware = {
        nodes: 1,
        cloud: 'aws',
        region: region?.toLowerCase() ?? null,
        instanceType: type,
        isSpot: spot,
        accelerators: accelerator === null ? null : { name: accelerator, count },
        requirements: { cpus, memory, maxPrice: max, mayFallBack: false, hasTpuHost: false, clouds: null },
      };
      const held = costs.costOf(hardware);
      const prices = answers[index]?.prices ?? [];
      if (prices.length > 0) {
        priced += 1;
        const most = Math.max(...prices);
        expect(typeof held, JSON.stringify(one)).toBe('bigint');
        expect(Number(held) / 1e6, JSON.stringify(one)).toBeGreaterThanOrEqual(most - 1e-9);
      }
    }
    expect(priced).toBeGreaterThan(500);
  });
});
