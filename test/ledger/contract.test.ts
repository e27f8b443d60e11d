/** What the ledger promises, on both databases. */
import { describe, onTestFinished } from 'vitest';
import { DIALECTS } from '../support/ledgers.ts';
import { requesting } from './contract/budget-requests.ts';
import { budgeting } from './contract/budgets.ts';
import { crowding } from './contract/concurrency.ts';
import { creating } from './contract/create.ts';
import { ending } from './contract/end.ts';
import { withstanding } from './contract/hostile.ts';
import { updating } from './contract/update.ts';
import { type FixtureSetup, newFixtures } from './fixture.ts';

const newGround = newFixtures(true);

describe.each(DIALECTS)('the ledger on %s', (dialect) => {
  // Whatever befalls a ledger, its balances are the sums of its entries.
  const fixtures = async (setup?: FixtureSetup) => {
    const fixture = await newGround(dialect, setup);
    onTestFinished(() => fixture.verify());
    return fixture;
  };
  describe('when a lease is created', () => creating(fixtures));
  describe('when a lease is changed', () => updating(fixtures));
  describe('when a lease ends', () => ending(fixtures));
  describe('when budgets are set', () => budgeting(fixtures));
  describe('when more budget is asked for', () => requesting(fixtures));
  describe('when many come at once', () => crowding(fixtures));
  describe('when names are hostile and numbers large', () => withstanding(fixtures));
});
