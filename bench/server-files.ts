/** What a server has in its folder. */
export const LOG = 'decisions.jsonl';
export const POLICIES = 'policies.yaml';
