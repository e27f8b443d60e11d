/** The clusters of all configurations that are in use, as sources of scheduling policies. */
import { ConfigurationError, errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { BindingRequest, PodRequest } from '../../kubernetes/admission/admission-review.ts';
import type { FollowedCluster } from '../../kubernetes/cluster/live/follow-cluster.ts';
import { type ClusterSource, isListedWithin } from '../../kubernetes/cluster/live/live-source.ts';
import type { StatusObserver } from '../../kubernetes/cluster/status/conditions.ts';
import type { Refusal } from '../../kubernetes/cluster/status/events.ts';
import type { StatusWriter } from '../../kubernetes/cluster/status/status-writer.ts';
import { type KubernetesOptions, policyOptions } from '../../kubernetes/options.ts';
import { CountedUses } from '../counted-uses.ts';
import type { FollowedSource, KubernetesMetrics } from '../metrics/kubernetes-metrics.ts';

export interface HeldSource {
  readonly source: ClusterSource;
  readonly cluster: FollowedCluster;
  /** For the metrics. */
  readonly followed: FollowedSource;
  /** Call it once, when no request can come any more. The last one of a cluster ends its watches. */
  release(): Promise<void>;
}

interface Shared {
  readonly cluster: FollowedCluster;
  readonly since: number;
}

interface KubernetesSourcesOptions {
  readonly logger: Logger;
  readonly metrics: KubernetesMetrics;
  /** How long a reload waits for a cluster that was not followed before, in milliseconds. Default: 10000. */
  readonly patienceMs?: number;
}

const PATIENCE_MS = 10_000;

/** Configurations that follow the same cluster in the same way share what is known of it: nothing is listed again for a reload. */
export class KubernetesSources {
  readonly #options: KubernetesSourcesOptions;
  readonly #shared = new CountedUses<Shared>(({ cluster }) => cluster.close());

  constructor(options: KubernetesSourcesOptions) {
    this.#options = options;
  }

  /**
   * At the start it waits for nothing. A reload that names another cluster takes over only when the policies of that one are known: until
   * then, those of the cluster before stay in force. @throws ConfigurationError
   */
  async open(options: KubernetesOptions, isStart: boolean): Promise<HeldSource> {
    const { logger, patienceMs = PATIENCE_MS } = this.#options;
    // Loading it takes time that only those need who use it.
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
    if (!isStart && !(await isListedWithin(policies, patienceMs, released.signal))) {
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

/** Follows the configuration that decides. Nothing here is waited for by an admission. */
export class KubernetesReports {
  readonly #options: KubernetesReportsOptions;
  #cluster: FollowedCluster | undefined;
  #lease = '';
  #audit: readonly string[] = [];
  #reporting: StatusWriter | undefined;
  #changing: Promise<void> = Promise.resolve();

  constructor(options: KubernetesReportsOptions) {
    this.#options = options;
  }

  /** Whether this replica writes the status; `undefined` = none does with this configuration. */
  get isLeader(): boolean | undefined {
    return this.#cluster === undefined ? undefined : (this.#reporting?.isLeader ?? false);
  }

  /** The step in which a configuration begins to decide. `cluster`: `undefined` = policies come from files. */
  takeOver(
    cluster: FollowedCluster | undefined,
    { audit, write_status, status_lease }: KubernetesOptions,
  ): void {
    this.#audit = audit;
    this.#follow(write_status ? cluster : undefined, status_lease);
    this.#reporting?.auditChanged(audit);
  }

  /** Returns at once. */
  refused(request: PodRequest | BindingRequest, refusal: Refusal): void {
    this.#reporting?.refused(request, refusal);
  }

  /** Another replica may write the status. Events that wait are dropped. */
  close(): Promise<void> {
    this.#follow(undefined, '');
    return this.#changing;
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
    // Loading it takes time that only those need who use it.
    const { StatusWriter: Writer } = await import('../../kubernetes/cluster/status/status-writer.ts');
    // Meanwhile another configuration may have taken over.
    if (cluster === this.#cluster && lease === this.#lease) {
      const { client, policies } = cluster;
      const election = { name: lease };
      this.#reporting = new Writer({ client, policies, audit: this.#audit, election, ...this.#options });
      this.#reporting.start();
    }
  }
}
