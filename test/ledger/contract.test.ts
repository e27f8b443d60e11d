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
import { type GroundSetup, newGrounds } from './ground.ts';

const newGround = newGrounds(true);

describe.each(DIALECTS)('the ledger on %s', (dialect) => {
  // Whatever befalls a ledger, its balances are the sums of its entries.
  const grounds = async (setup?: GroundSetup) => {
    const ground = await newGround(dialect, setup);
    onTestFinished(() => ground.verify());
    return ground;
  };
  describe('when a lease is created', () => creating(grounds));
  describe('when a lease is changed', () => updating(grounds));
  describe('when a lease ends', () => ending(grounds));
  describe('when budgets are set', () => budgeting(grounds));
  describe('when more budget is asked for', () => requesting(grounds));
  describe('when many come at once', () => crowding(grounds));
  describe('when names are hostile and numbers large', () => withstanding(grounds));
});
