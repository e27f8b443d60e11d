import type { Clock } from './services.ts';

/**
 * The clock of the machine: what everything goes by unless it is given another one. With it, a ledger on PostgreSQL goes by the clock of
 * the database, which is one for all replicas.
 */
export const SYSTEM_CLOCK: Clock = { now: () => new Date() };
