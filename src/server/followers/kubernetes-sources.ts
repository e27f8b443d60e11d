/** The clusters of all configurations in use, as sources of scheduling policies. */
import { ConfigurationError, errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { BindingRequest, PodRequest } from '../../kubernetes/admission/admission-review.ts';
import type { FollowedCluster } from '../../kubernetes/cluster/live/follow-cluster.ts';
import { type ClusterSource, isListedWithin } from '../../kubernetes/cluster/live/live-source.ts';
import type { StatusObserver } from '../../kubernetes/cluster/status/conditions.ts';
import type { Refusal } from '../../kubernetes/cluster/status/events.ts';
import type { StatusWriter } from '../../kubernetes/cluster/status/status-writer.ts';
import { type KubernetesOptions, policyOptions } from '../../kubernetes/options.ts';
import { isSameList } from '../../kubernetes/policies/merge.ts';
import { CountedUses } from '../counted-uses.ts';
import type { FollowedSource, KubernetesMetrics } from '../metrics/kubernetes-metrics.ts';

export interface HeldSource {
  readonly source: ClusterSource;
  readonly cluster: FollowedCluster;
  readonly followed: FollowedSource;
  /** Call it once, after the last request. The last release of a cluster ends its watches. */
  release(): Promise<void>;
}

interface Shared {
  readonly cluster: FollowedCluster;
  readonly since: number;
}

interface KubernetesSourcesOptions {
  readonly logger: Logger;
  readonly metrics: KubernetesMetrics;
}

/** Maximum time a reload waits for a new cluster, in milliseconds. */
const WAIT_MS = 10_000;

/** Configurations with the same cluster options share its watches, so that a reload lists nothing again. */
export class KubernetesSources {
  readonly #options: KubernetesSourcesOptions;
  readonly #shared = new CountedUses<Shared>(({ cluster }) => cluster.close());

  constructor(options: KubernetesSourcesOptions) {
    this.#options = options;
  }

  /**
   * Does not wait at the start. A reload with another cluster takes over only when its policies are loaded;
   * until then the old ones stay in force.
   *
   * @throws ConfigurationError
   */
  async open(options: KubernetesOptions, isStart: boolean): Promise<HeldSource> {
    const { logger } = this.#options;
    // Imported on demand: loading takes time.
    const { followCluster } = await import('../../kubernetes/cluster/live/follow-cluster.ts');
    const { ClusterSource } = await import('../../kubernetes/cluster/live/live-source.ts');
    const { kubeconfig, rights, cluster_stale_after: staleAfter, audit } = options;
    const key = JSON.stringify([kubeconfig, rights]);
    const shared = this.#shared.use(key, () => ({
      cluster: followCluster({ kubeconfig, rights, logger, observer: this.#options.metrics }),
      since: performance.now(),
    }));
    const { cluster, since } = shared.value;
    const { policies, permissions } = cluster;
    const released = new AbortController();
    const release = async () => {
      released.abort();
      await shared.release();
    };
    cluster.start();
    if (!isStart && !(await isListedWithin(policies, WAIT_MS, released.signal))) {
      const { problem = 'no answer yet' } = policies.following;
      await release();
      const message = `the policies of the cluster cannot be read: ${problem}`;
      throw new ConfigurationError([{ severity: 'error', section: 'kubernetes', option: 'source', message }]);
    }
    void isListedWithin(policies, Number.POSITIVE_INFINITY, released.signal).then((listed) => {
      const unknown = listed ? audit.filter((name) => name !== '*' && !policies.policies.has(name)) : [];
      if (unknown.length > 0) {
        logger.warn(
          { policies: unknown },
          '[kubernetes] audit: the cluster has no scheduling policies of these names',
        );
      }
    });
    const source = new ClusterSource({ policies, permissions, staleAfter, ...policyOptions(options) });
    const followed: FollowedSource = {
      get health() {
        return source.health;
      },
      get followedFor() {
        return (performance.now() - since) / 1000;
      },
      get policies() {
        return policies.policies.values();
      },
    };
    return { source, cluster, followed, release };
  }
}

interface KubernetesReportsOptions {
  readonly logger: Logger;
  readonly observer: StatusObserver;
}

/** Reports to the cluster of the current configuration. Admission requests never wait for it. */
export class KubernetesReports {
  readonly #options: KubernetesReportsOptions;
  #cluster: FollowedCluster | undefined;
  #lease = '';
  #audit: readonly string[] = [];
  #notAsked: readonly string[] | undefined;
  #reporting: StatusWriter | undefined;
  #watching = new AbortController();
  #changing: Promise<void> = Promise.resolve();

  constructor(options: KubernetesReportsOptions) {
    this.#options = options;
  }

  /** Whether this replica writes the status; `undefined` = the configuration disables it. */
  get isLeader(): boolean | undefined {
    return this.#cluster === undefined ? undefined : (this.#reporting?.isLeader ?? false);
  }

  /** How much of the installed webhooks is missing or changed; `undefined` = not known. */
  get missingWebhooks(): number | undefined {
    return this.#notAsked?.length;
  }

  #looked(found: readonly string[] | undefined): void {
    const before = this.#notAsked ?? [];
    this.#notAsked = found;
    const notAsked = found ?? [];
    if (isSameList(notAsked, before)) {
      return;
    }
    const { logger } = this.#options;
    if (notAsked.length > 0) {
      logger.warn(
        { notAsked },
        'the webhooks are not as they were installed: what API servers do not ask about is not judged',
      );
    } else if (found !== undefined) {
      logger.info('the webhooks are as they were installed again');
    }
    this.#reporting?.lookAgain();
  }

  /** Switches to the cluster of a new configuration. `cluster`: `undefined` = policies come from files. */
  takeOver(
    cluster: FollowedCluster | undefined,
    { audit, write_status, status_lease, installed_webhooks }: KubernetesOptions,
  ): void {
    this.#audit = audit;
    this.#follow(write_status ? cluster : undefined, status_lease);
    this.#reporting?.lookAgain();
    // A package that was replaced on the disk may lack the code.
    this.#watch(cluster, installed_webhooks).catch((thrown: unknown) => {
      const error = errorText(thrown);
      this.#options.logger.warn({ error }, 'whether API servers still ask about pods is not known');
    });
  }

  /** Does not block. */
  refused(request: PodRequest | BindingRequest, refusal: Refusal): void {
    this.#reporting?.refused(request, refusal);
  }

  /** Lets another replica write the status. Drops queued events. */
  close(): Promise<void> {
    this.#follow(undefined, '');
    this.#watching.abort();
    return this.#changing;
  }

  /** Instead of the watch before. */
  async #watch(cluster: FollowedCluster | undefined, paths: readonly string[]): Promise<void> {
    this.#watching.abort();
    this.#watching = new AbortController();
    const { signal } = this.#watching;
    if (cluster === undefined || paths.length === 0) {
      this.#looked(undefined);
      return;
    }
    const { watchWebhooks } = await import('../../kubernetes/cluster/status/installed-webhooks.ts');
    const looked = (notAsked: readonly string[]) => this.#looked(notAsked);
    await watchWebhooks({ client: cluster.client, paths, looked, logger: this.#options.logger, signal });
  }

  #follow(cluster: FollowedCluster | undefined, lease: string): void {
    if (cluster === this.#cluster && lease === this.#lease) {
      return;
    }
    this.#cluster = cluster;
    this.#lease = lease;
    const before = this.#reporting;
    this.#reporting = undefined;
    this.#changing = this.#changing
      .then(() => this.#change(before, cluster, lease))
      .catch((error: unknown) => {
        this.#options.logger.error(
          { error: errorText(error) },
          'the status of scheduling policies is not written',
        );
      });
  }

  async #change(
    before: StatusWriter | undefined,
    cluster: FollowedCluster | undefined,
    lease: string,
  ): Promise<void> {
    await before?.close();
    if (cluster === undefined) {
      return;
    }
    // Imported on demand: loading takes time.
    const { StatusWriter: Writer } = await import('../../kubernetes/cluster/status/status-writer.ts');
    // Another configuration may have taken over during the import.
    if (cluster === this.#cluster && lease === this.#lease) {
      const { client, policies } = cluster;
      const election = { name: lease };
      const inForce = () => ({ audit: this.#audit, notAsked: this.#notAsked ?? [] });
      this.#reporting = new Writer({ client, policies, inForce, election, ...this.#options });
      this.#reporting.start();
    }
  }
}
