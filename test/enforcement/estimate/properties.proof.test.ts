/** Random estimates: what is suggested is allowed, and nothing is recorded. SQLite and PostgreSQL. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DIALECTS, newLedgers } from '../../support/ledgers.ts';
import { RandomProjects, randomProjects } from './random-projects.ts';

const newLedger = newLedgers();

/** What is suggested is the same on both: PostgreSQL shows that its ledger previews the same. */
const RUNS = { sqlite: 100, postgresql: 40 };

it.each(DIALECTS)(
  'suggests only what is allowed, and records nothing, on %s',
  async (dialect) => {
    const all = await RandomProjects.open(await newLedger(dialect));
    const counts = new Map<string, number>();
    try {
      await fc.assert(
        fc.asyncProperty(randomProjects, async (world) => {
          const answered = await all.try(world);
          for (const one of answered.length === 0 ? ['none'] : answered) {
            counts.set(one, (counts.get(one) ?? 0) + 1);
          }
        }),
        { numRuns: Number(process.env.ESTIMATE_RUNS ?? RUNS[dialect]) },
      );
    } finally {
      await all.close();
    }
    process.stderr.write(`${dialect}: ${JSON.stringify(Object.fromEntries(counts))}\n`);
    // Of some fourteen kinds of answers, each run has most.
    expect(counts.size).toBeGreaterThan(6);
  },
  900_000,
);
