/** What one round with SkyPilot has found that got past policies: each event once, with all policies that it got past. */
import type { Bypass, BypassKind } from '../../decisions/bypass-record.ts';
import type { ClusterChange } from '../../skypilot/charging/follow.ts';

export class Bypasses {
  readonly #found = new Map<string, Bypass>();
  /** Events that an earlier round told of, which was cut off before it had compared all policies. */
  readonly #told: ReadonlySet<string>;

  constructor(told: ReadonlySet<string> = new Set()) {
    this.#told = told;
  }

  /** Each is reported for each policy that charges launches. */
  add({ limit, workspace, cluster, startedAt, settlement }: ClusterChange): void {
    if (settlement === undefined) {
      return;
    }
    const kinds: BypassKind[] = [
      ...(settlement.outcome === 'recorded' ? ['undecided' as const] : []),
      ...(settlement.hasLostAutostop ? ['autostop-off' as const] : []),
    ];
    for (const kind of kinds) {
      const key = JSON.stringify([kind, workspace, cluster, String(startedAt)]);
      const before = this.#found.get(key);
      this.#found.set(key, {
        ...{ kind, workspace, cluster, startedAt, userId: settlement.userId },
        policies: [...(before?.policies ?? []), limit],
        exceeded: before?.exceeded ?? settlement.exceeded,
      });
    }
  }

  /** Those that are new. */
  get all(): readonly Bypass[] {
    return [...this.#found].filter(([key]) => !this.#told.has(key)).map(([, bypass]) => bypass);
  }

  /** For the next round, if this one was cut off. */
  get keys(): ReadonlySet<string> {
    return new Set([...this.#told, ...this.#found.keys()]);
  }
}
