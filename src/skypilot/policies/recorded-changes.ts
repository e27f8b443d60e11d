/** Collects what policies did to one request, and tells their changes when all have answered. */

import type { PolicyOutcome, State } from '../review.ts';
import { SecretValues } from '../secrets.ts';
import { type Changes, changesOf, MAX_CHANGES, type Step } from './changes.ts';

export class RecordedChanges {
  /** By the name of the policy, which may be asked several times. */
  readonly #steps: { readonly policy: string; readonly step: Step }[] = [];

  /** Remembers what the policy was asked, and what it answered, if that differs. */
  add({ policy, changed }: PolicyOutcome, before: State, after: State): void {
    if (changed) {
      this.#steps.push({ policy, step: { before: treeOf(before), after: treeOf(after) } });
    }
  }

  /** The outcomes, with their changes. `original`: the request as it came. Costs nothing if nothing was changed. */
  describe(outcomes: readonly PolicyOutcome[], original: State): readonly PolicyOutcome[] {
    if (this.#steps.length === 0) {
      return outcomes;
    }
    // Every later secret stands in a change.
    const secrets = SecretValues.of(original.task, original.skypilotConfig);
    const all = changesOf(
      this.#steps.map(({ step }) => step),
      secrets,
    );
    return outcomes.map((outcome) => {
      const own = all.filter((_, index) => this.#steps[index]?.policy === outcome.policy);
      return outcome.changed && own.length > 0 ? { ...outcome, changes: joined(own) } : outcome;
    });
  }
}

function joined(changes: readonly Changes[]): Changes {
  const list = changes.flatMap((one) => one.list);
  const leftOut = changes.reduce((sum, one) => sum + one.leftOut, 0);
  return { list: list.slice(0, MAX_CHANGES), leftOut: leftOut + Math.max(0, list.length - MAX_CHANGES) };
}

/** As the parts of a request are called on the wire. */
function treeOf({ task, skypilotConfig }: State): Step['before'] {
  return { task, skypilot_config: skypilotConfig };
}
