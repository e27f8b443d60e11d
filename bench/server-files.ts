/** Files in the folder of a server. */
export const LOG = 'decisions.jsonl';
export const POLICIES = 'policies.yaml';
export const LEDGER = 'ledger.db';
export const LEASE_POLICIES = 'lease-policies.yaml';
