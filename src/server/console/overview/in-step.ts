/** Whether ledger, outbox and Blazar are in step. */
import { inTime, withinDeadline } from '../../../base/deadline.ts';
import { LedgerUnavailableError } from '../../../base/errors.ts';
import { countOutbox, type OutboxCounts } from '../../../ledger/outbox/reports.ts';
import { type LedgerStatus, ledgerStatus } from '../../../ledger/reports/ledger-status.ts';
import type { Generation } from '../../configuration/generation.ts';

export type InStep = { readonly outbox: OutboxCounts } & LedgerStatus;

/** A slow ledger must not delay the page for longer, in seconds. */
const PATIENCE = 2;

/** `none` = nothing needs a ledger; `away` = it does not answer. */
export async function inStep({ ledger }: Pick<Generation, 'ledger'>): Promise<InStep | 'none' | 'away'> {
  if (ledger === undefined) {
    return 'none';
  }
  return withinDeadline(PATIENCE, async (deadline) => {
    try {
      const read = ledger.read(async (opened) => ({
        ...(await ledgerStatus(opened, deadline)),
        outbox: await countOutbox(opened, deadline),
      }));
      return await inTime(read, deadline);
    } catch (thrown) {
      if (thrown instanceof LedgerUnavailableError || deadline.signal.aborted) {
        return 'away';
      }
      throw thrown;
    }
  });
}
