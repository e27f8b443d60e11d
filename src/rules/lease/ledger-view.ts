/** What the ledger says of the project, without the lease in question. */
export interface LedgerView {
  /** Its pending and active leases. */
  readonly leases: bigint;
  /** Of its budgets that are valid at the start of the lease, in units of the budget and hours. */
  readonly taken: number;
  /** `undefined` = it has no budget then. */
  readonly left: number | undefined;
}
