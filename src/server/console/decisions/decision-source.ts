import type { DecisionSource } from '../../../decisions/store/contract.ts';

/** What a generation has of it. */
interface Storing {
  readonly number: number;
  readonly decisions?: { readonly source: DecisionSource } | undefined;
}

/** The decisions of all replicas; `undefined` = they are not stored. */
export function decisionSource({ decisions }: Storing): DecisionSource | undefined {
  return decisions?.source;
}
