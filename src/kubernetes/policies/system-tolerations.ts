/** Tolerations that Kubernetes itself adds to pods. */
import type { Toleration } from './pod.ts';

/**
 * The two that the API server adds to every pod before any webhook sees it.
 * Source: Kubernetes docs, "Taints and Tolerations".
 */
export const SYSTEM_TOLERATIONS: readonly string[] = [
  'node.kubernetes.io/not-ready:NoExecute:300',
  'node.kubernetes.io/unreachable:NoExecute:300',
];

/** Tolerations that the DaemonSet controller adds to its pods. Source: Kubernetes docs, "DaemonSet". */
export const DAEMON_SET_TOLERATIONS: readonly string[] = [
  'node.kubernetes.io/not-ready:NoExecute',
  'node.kubernetes.io/unreachable:NoExecute',
  'node.kubernetes.io/disk-pressure:NoSchedule',
  'node.kubernetes.io/memory-pressure:NoSchedule',
  'node.kubernetes.io/pid-pressure:NoSchedule',
  'node.kubernetes.io/unschedulable:NoSchedule',
  'node.kubernetes.io/network-unavailable:NoSchedule',
];

/** The notation of `kubectl taint`: `key:effect` or `key=value:effect`, optionally with `:seconds`. */
export const SYSTEM_TOLERATION_PATTERN =
  /^([^\s:=,]+)(?:=([^\s:=,]*))?:(NoSchedule|PreferNoSchedule|NoExecute)(?::(\d+))?$/;

/** Finds tolerations that exactly match one of a list. */
export class SystemTolerations {
  readonly #known: ReadonlySet<string>;

  constructor(written: readonly string[] = SYSTEM_TOLERATIONS) {
    this.#known = new Set(
      written.map((text) => {
        const [, key, value, effect, seconds] = SYSTEM_TOLERATION_PATTERN.exec(text) ?? [];
        return id(key, value, effect, seconds === undefined ? undefined : Number(seconds));
      }),
    );
  }

  has({ key, operator, value, effect, tolerationSeconds }: Toleration): boolean {
    const isExists = operator === 'Exists';
    if (!isExists && operator && operator !== 'Equal') {
      return false;
    }
    return this.#known.has(id(key, isExists ? undefined : (value ?? ''), effect, tolerationSeconds));
  }
}

/** Without a value it matches all values. */
function id(
  key: string | null | undefined,
  value: string | undefined,
  effect: string | null | undefined,
  seconds: number | null | undefined,
): string {
  return JSON.stringify([key, value, effect, seconds]);
}
