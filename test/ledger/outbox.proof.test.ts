/** What the outbox of the ledger promises, on both databases. */
import { describe } from 'vitest';
import { DIALECTS } from '../support/ledgers.ts';
import { delivering, preparing } from './contract/outbox.ts';
import { type GroundSetup, newGrounds } from './ground.ts';

const newGround = newGrounds(true);

describe.each(DIALECTS)('the outbox on %s', (dialect) => {
  const grounds = (setup?: GroundSetup) => newGround(dialect, setup);
  describe('when messages are to be delivered', () => delivering(grounds));
  describe('when messages are prepared', () => preparing(grounds));
});
