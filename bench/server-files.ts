/** Files in the folder of a server, and its other parameters. */
export const LOG = 'decisions.jsonl';
export const POLICIES = 'policies.yaml';
export const KUBECONFIG = 'kubeconfig';
export const LEDGER = 'ledger.db';
export const LEASE_POLICIES = 'lease-policies.yaml';
/** The environment variable with the ledger's connection, for servers with a ledger of the bench. */
export const ON_LEDGER = 'BENCH_LEDGER_OF_SERVER';
