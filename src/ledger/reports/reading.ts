/** How views read: in short pieces, and only a few at a time, so that leases never wait for people who look. */

import type { Wait } from '../../base/deadline.ts';
import { timedYield } from '../../base/yield-to-event-loop.ts';
import type { Ledger } from '../ledger.ts';
import type { Work } from '../storage/database.ts';
import { Gate } from '../storage/gate.ts';

/** Reads of one process under way at the same time: each takes a connection of PostgreSQL, of which leases need most. */
const READERS = 2;

const gates = new WeakMap<Ledger, Gate>();

/** Runs a piece of reading that takes a few milliseconds at most. @throws LedgerUnavailableError */
export type ReadPiece = <Result>(work: () => Work<Result>) => Promise<Result>;

/** For one view. Its pieces do not see the same moment. */
export function reading(ledger: Ledger, wait: Wait): ReadPiece {
  let gate = gates.get(ledger);
  if (gate === undefined) {
    gate = new Gate(READERS);
    gates.set(ledger, gate);
  }
  const entered = gate;
  const yieldIfDue = timedYield();
  return async (work) => {
    await yieldIfDue();
    const leave = await entered.enter(wait);
    try {
      return await ledger.read('read', work, wait);
    } finally {
      leave();
    }
  };
}
