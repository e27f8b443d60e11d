/** What lists do not have, because it is folded into totals. */
import { z } from 'zod';
import type { FoldedTotals } from '../../ledger/folding/totals.ts';
import { timeSchema, timeText } from './shown.ts';

/** Of the project or the ledger that a list is of, whatever its filters. */
export const foldedSchema = z
  .strictObject({
    leases: z.int().meta({ description: 'How many.' }),
    before: timeSchema.meta({ description: 'All of them had ended before.' }),
  })
  .nullable()
  .meta({
    description:
      'Older leases that `ledger compact` has folded into totals. Balances and budgets count them; they and their entries are not listed, and what they used is not told. null = there are none.',
  });

export function foldedJson(folded: FoldedTotals | undefined): z.infer<typeof foldedSchema> {
  return folded === undefined ? null : { leases: Number(folded.leases), before: timeText(folded.until) };
}
