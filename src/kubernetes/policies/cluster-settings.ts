/** What the cluster does to pods by itself, and cluster-wide settings of the operator. */
import { isDeepStrictEqual } from 'node:util';
import type { Pod, Toleration } from './pod.ts';
import { DAEMON_SET_TOLERATIONS, SystemTolerations } from './system-tolerations.ts';

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

/** The name that the API server fills in where a pod has no schedulerName. */
export const DEFAULT_SCHEDULER = 'default-scheduler';

/** How the pod came into being. */
export interface PodOrigin {
  /** The DaemonSet controller created the pod. */
  readonly isForOneNode?: boolean;
  /** The pod before an update. */
  readonly current?: Pod | undefined;
}

export class Cluster {
  readonly refusesTopologySpread: boolean;
  /** The name that the API server fills in where the pod has none. */
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
   * controller adds them; a pod that already has them keeps them, whoever updates it.
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
