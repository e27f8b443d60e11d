import type { MergedPolicy } from '../merge.ts';
import { AffinityRules } from './affinity-rules.ts';
import { NameRules } from './name-rules.ts';
import { NodeSelectorRules } from './node-selector-rules.ts';
import { TolerationRules } from './toleration-rules.ts';

/** The rules of one merged policy. */
export class Rules {
  readonly merged: MergedPolicy;
  readonly names: Readonly<Record<'schedulerName' | 'priorityClassName', NameRules>>;
  readonly nodeSelectors: NodeSelectorRules;
  readonly tolerations: TolerationRules;
  readonly affinities: AffinityRules;

  constructor(merged: MergedPolicy) {
    this.merged = merged;
    this.names = {
      schedulerName: new NameRules('schedulerName', merged),
      priorityClassName: new NameRules('priorityClassName', merged),
    };
    this.nodeSelectors = new NodeSelectorRules(merged);
    this.tolerations = new TolerationRules(merged);
    this.affinities = new AffinityRules(merged);
  }
}
