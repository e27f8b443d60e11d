/** What the outbox of the ledger promises, on both databases. */
import { describe } from 'vitest';
import { DIALECTS } from '../support/ledgers.ts';
import { delivering, preparing } from './contract/outbox.ts';
import { type FixtureSetup, newFixtures } from './fixture.ts';

const newGround = newFixtures(true);

describe.each(DIALECTS)('the outbox on %s', (dialect) => {
  const fixtures = (setup?: FixtureSetup) => newGround(dialect, setup);
  describe('when messages are to be delivered', () => delivering(fixtures));
  describe('when messages are prepared', () => preparing(fixtures));
});
