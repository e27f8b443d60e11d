/** Mutated requests at a real service: it answers as the chain does, or refuses. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { fuzz } from '../../bench/fuzz/fuzz.ts';
import { UsageEnforcement } from '../../src/index.ts';
import { valuesOnly } from '../support/files.ts';
import { runService } from '../support/running-service.ts';

const ENFORCEMENT = { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: 172_800 };
/** `npm run bench -- --only fuzz` sends a hundred thousand, each time others. */
const REQUESTS = 2500;
const SEED = 20_261_121;

describe('a service that is sent mutated requests', () => {
  it('answers what is a request as the chain does, and refuses the rest', async () => {
    const service = await runService({ enforcement: ENFORCEMENT });
    const enforcement = await UsageEnforcement.load(valuesOnly({ enforcement: ENFORCEMENT }));
    onTestFinished(() => enforcement.close());
    expect(await fuzz(service.url, enforcement, { requests: REQUESTS, seed: SEED })).toBeGreaterThanOrEqual(
      REQUESTS,
    );
    expect(service.logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });
});
