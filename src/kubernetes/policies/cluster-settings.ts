/** What the cluster itself adds to pods, and cluster-wide settings of the operator. */
import { isDeepStrictEqual } from 'node:util';
import type { Pod, Toleration } from './pod.ts';

/** The users that the schedulers of Kubernetes use to assign pods to nodes. */
export const SCHEDULERS: readonly string[] = ['system:kube-scheduler'];

/** See the options of `[kubernetes]`, which describe these and have the same defaults. */
export interface ClusterOptions {
  readonly systemTolerations?: readonly string[];
  readonly daemonSetTolerations?: readonly string[];
  /** The PriorityClass with `globalDefault: true`. */
  readonly defaultPriorityClass?: string | undefined;
  readonly topologySpreadConstraints?: 'allow' | 'refuse';
}

/** The API server's name for a pod without a schedulerName. */
export const DEFAULT_SCHEDULER = 'default-scheduler';

/** How the pod was created. */
export interface PodOrigin {
  /** The DaemonSet controller created the pod. */
  readonly isForOneNode?: boolean;
  /** The pod before an update. */
  readonly current?: Pod | undefined;
}

export class Cluster {
  readonly refusesTopologySpread: boolean;
  /** The names that the API server fills in if the pod has none. */
  readonly filledIn: Readonly<Record<'schedulerName' | 'priorityClassName', string | undefined>>;
  readonly #everybodys: SystemTolerations;
  readonly #daemonSets: SystemTolerations;

  constructor(options: ClusterOptions = {}) {
    const { systemTolerations, daemonSetTolerations = DAEMON_SET_TOLERATIONS } = options;
    this.#everybodys = new SystemTolerations(systemTolerations);
    this.#daemonSets = new SystemTolerations(daemonSetTolerations);
    this.refusesTopologySpread = options.topologySpreadConstraints === 'refuse';
    this.filledIn = {
      schedulerName: DEFAULT_SCHEDULER,
      priorityClassName: options.defaultPriorityClass || undefined,
    };
  }

  /**
   * Whether Kubernetes itself added a toleration. The DaemonSet tolerations are exempt only if the DaemonSet
   * controller adds them; a pod that has them keeps them in any update.
   */
  hasAdded(toleration: Toleration, { isForOneNode, current }: PodOrigin): boolean {
    return (
      this.#everybodys.has(toleration) ||
      (this.#daemonSets.has(toleration) &&
        (isForOneNode === true ||
          current?.spec.tolerations?.some((one) => isDeepStrictEqual(one, toleration)) === true))
    );
  }
}

/**
 * The two that the API server adds to every pod before webhooks are called. Source: Kubernetes docs, "Taints
 * and Tolerations".
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

class SystemTolerations {
  readonly #known: readonly Toleration[];

  constructor(written: readonly string[] = SYSTEM_TOLERATIONS) {
    this.#known = written.map((text) => {
      const [, key, value, effect, seconds] = SYSTEM_TOLERATION_PATTERN.exec(text) ?? [];
      return { key, value, effect, tolerationSeconds: seconds === undefined ? undefined : Number(seconds) };
    });
  }

  has({ key, operator, value, effect, tolerationSeconds }: Toleration): boolean {
    const isExists = operator === 'Exists';
    if (!isExists && operator && operator !== 'Equal') {
      return false;
    }
    // Without a value it matches all values.
    const matched = isExists ? undefined : (value ?? '');
    return this.#known.some(
      (one) =>
        one.value === matched &&
        one.key === (key ?? undefined) &&
        one.effect === (effect ?? undefined) &&
        one.tolerationSeconds === (tolerationSeconds ?? undefined),
    );
  }
}
