import type { Claims, Proposal, Standing } from '../filter/claim.ts';

/** A filter with a shared limit, as the ledger calls it. */
export interface Claimant {
  readonly name: string;
  readonly audit: boolean;
  /** As in `SharedLimit`. */
  readonly readsProject?: boolean | undefined;
  claims(proposal: Proposal, standing: Standing): Claims;
}
