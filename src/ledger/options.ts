import { z } from 'zod';
import type { FurtherSection } from '../config/option-groups.ts';
import { EXPECTED_CONNECTION, parseConnection } from './connection.ts';

/** `[ledger]`: where leases and budgets are recorded, for the filters that need it. */
export const ledgerOptions = z.object({
  connection: z
    .string()
    .refine((text) => parseConnection(text) !== undefined, 'it is neither')
    .default('sqlite:///var/lib/blazar-enforcement/ledger.db')
    .meta({
      description:
        'Where the ledger is: sqlite:///path/of/a/file for one machine, postgresql://user:password@host/database for more than one. Opened only when a filter is enabled that needs it. `ledger upgrade` makes its tables.',
      secret: true,
      expected: EXPECTED_CONNECTION,
    }),
  commit: z.enum(['check', 'request']).default('check').meta({
    description:
      'When a lease is recorded. check: as soon as every filter has allowed it, as stock Blazar needs it. request: when commit-create or commit-update is asked, and a check alone records nothing.',
  }),
  timeout: z.int().min(1).max(3600).default(10).meta({
    description:
      'How long a transaction may take, waiting for others included. After that the lease is refused. The deadline of the service counts besides.',
    unit: 'seconds',
  }),
  doubt_folder: z.string().default('/var/lib/blazar-enforcement/doubt').meta({
    description:
      'Where refused leases are noted that may be recorded all the same, since the database did not answer: they are taken back when it does, by a later process, too. Made when it is needed. Empty: kept in memory alone.',
    expected: 'the path of a folder',
  }),
  pool_size: z.int().min(1).max(1000).default(10).meta({
    description: 'So many connections to PostgreSQL are kept, by each process.',
  }),
});

export type LedgerOptions = z.infer<typeof ledgerOptions>;

/** Those that a ledger needs. Without a folder, doubts are kept in memory. */
export type LedgerSettings = Omit<LedgerOptions, 'doubt_folder'> & {
  readonly doubt_folder?: string | undefined;
};

/** The section as the configuration is asked for it. */
export const ledgerSection = { section: 'ledger', schema: ledgerOptions } as const satisfies FurtherSection;
