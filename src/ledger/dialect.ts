/** The two databases that a ledger can be kept in. */
export type Dialect = 'sqlite' | 'postgresql';
