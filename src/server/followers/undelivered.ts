/** Messages without delivery: a reload removed their filter, its durable delivery or `[notifications]`. */
import { inTime, withinDeadline } from '../../base/deadline.ts';
import type { Logger } from '../../base/logger.ts';
import type { UsageEnforcement } from '../../enforcement/enforcement.ts';

/** Maximum delay of a start or a reload by the ledger, in seconds. */
const PATIENCE = 2;

type Deliverer = Pick<UsageEnforcement, 'ledger' | 'outbox' | 'delivers'>;

/** Warns of each sender with queued messages. `before`: the old configuration, whose ledger may differ. */
export async function warnOfUndelivered(
  current: Deliverer,
  before: Deliverer | undefined,
  logger: Pick<Logger, 'warn'>,
): Promise<void> {
  const ledger = current.outbox ?? current.ledger ?? before?.outbox ?? before?.ledger;
  if (ledger === undefined) {
    return;
  }
  const { waitingBySender } = await import('../../ledger/outbox/reports.ts');
  // An unavailable ledger is reported elsewhere.
  const waiting = await withinDeadline(PATIENCE, (deadline) =>
    inTime(
      ledger.read((opened) => waitingBySender(opened, deadline)),
      deadline,
    ),
  ).catch(() => new Map<string, number>());
  for (const [sender, messages] of waiting) {
    if (!current.delivers(sender)) {
      logger.warn(
        { filter: sender, messages },
        'messages wait in the outbox, and nothing delivers them with this configuration: see blazar-enforcement outbox list',
      );
    }
  }
}
