/** What a cluster does to pods by itself, which nobody has asked for, and what else its operator says about all pods. */
import { isDeepStrictEqual } from 'node:util';
import type { Pod, Toleration } from './pod.ts';
import { DAEMON_SET_TOLERATIONS, SystemTolerations } from './system-tolerations.ts';

/** See the options of `[kubernetes]`, which have these defaults and say what they mean. */
export interface ClusterOptions {
  readonly systemTolerations?: readonly string[];
  readonly daemonSetTolerations?: readonly string[];
  /** The PriorityClass with `globalDefault: true`. */
  readonly defaultPriorityClass?: string | undefined;
  readonly topologySpreadConstraints?: 'allow' | 'refuse';
}

/** What the API server fills in where a pod names no scheduler. */
export const DEFAULT_SCHEDULER = 'default-scheduler';

/** Who has made a pod, and from what. */
export interface PodOrigin {
  /** The DaemonSet controller has created the pod. */
  readonly isForOneNode?: boolean;
  /** The pod before an update. */
  readonly current?: Pod | undefined;
}

export class Cluster {
  readonly refusesTopologySpread: boolean;
  /** The name that the API server fills in where a pod names none. */
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
   * Whether Kubernetes itself has added a toleration. Those of DaemonSets are free only for their controller; a pod that has
   * them already keeps them, whoever updates it.
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
