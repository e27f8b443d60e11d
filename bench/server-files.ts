/** Files in the folder of a server, and what it is told besides. */
export const LOG = 'decisions.jsonl';
export const POLICIES = 'policies.yaml';
export const KUBECONFIG = 'kubeconfig';
export const LEDGER = 'ledger.db';
export const LEASE_POLICIES = 'lease-policies.yaml';
/** The environment variable with the connection of the ledger, for servers that use one of the bench. */
export const ON_LEDGER = 'BENCH_LEDGER_OF_SERVER';
