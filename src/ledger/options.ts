import { z } from 'zod';
import type { FurtherSection } from '../config/option-groups.ts';
import { EXPECTED_CONNECTION, parseConnection } from './storage/connection.ts';

/** `[ledger]`: where leases and budgets are recorded. */
const ledgerOptions = z.object({
  connection: z
    .string()
    .refine((text) => parseConnection(text) !== undefined, 'it is neither')
    .default('sqlite:///var/lib/blazar-enforcement/ledger.db')
    .meta({
      description:
        'The database of the ledger: sqlite:///path/of/a/file for one machine, postgresql://user:password@host/database for several. Opened only if an enabled filter needs it. `ledger upgrade` creates the tables.',
      secret: true,
      expected: EXPECTED_CONNECTION,
    }),
  commit: z.enum(['check', 'request']).default('check').meta({
    description:
      'When leases are recorded. check: as soon as every filter has allowed a lease, as stock Blazar needs it. request: only by commit-create and commit-update; a check records nothing.',
  }),
  timeout: z.int().min(1).max(3600).default(10).meta({
    description:
      'Maximum duration of a transaction, including waiting for others. After that the lease is refused. The deadline of the service applies as well.',
    unit: 'seconds',
  }),
  doubt_folder: z.string().default('/var/lib/blazar-enforcement/doubt').meta({
    description:
      'Folder for notes about refused leases that may be recorded nevertheless, because the database did not answer. They are taken back when it answers, also after a restart. Created when needed. Empty: kept in memory only.',
    expected: 'the path of a folder',
  }),
  pool_size: z.int().min(1).max(1000).default(10).meta({
    description: 'Maximum number of connections to PostgreSQL, for each process.',
  }),
});

export type LedgerOptions = z.infer<typeof ledgerOptions>;

/** The settings of a ledger. Without `doubt_folder`, commits in doubt are kept in memory only. */
export type LedgerSettings = Omit<LedgerOptions, 'doubt_folder'> & {
  readonly doubt_folder?: string | undefined;
};

/** For `sectionOf`. */
export const ledgerSection = { section: 'ledger', schema: ledgerOptions } as const satisfies FurtherSection;
