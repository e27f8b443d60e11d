/** What the service tells the cluster about policies and refusals: status and events. */
import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { BindingRequest, PodRequest } from '../../kubernetes/admission/admission-review.ts';
import type { FollowedCluster } from '../../kubernetes/cluster/live/follow-cluster.ts';
import type { StatusObserver } from '../../kubernetes/cluster/status/contract.ts';
import type { Refusal } from '../../kubernetes/cluster/status/events.ts';
import type { Reporting } from '../../kubernetes/cluster/status/reporting.ts';
import type { KubernetesOptions } from '../../kubernetes/options.ts';

export interface KubernetesReportsOptions {
  readonly logger: Logger;
  readonly observer: StatusObserver;
}

/** Follows the configuration that decides. Nothing here is waited for by an admission. */
export class KubernetesReports {
  readonly #options: KubernetesReportsOptions;
  #cluster: FollowedCluster | undefined;
  #lease = '';
  #audit: readonly string[] = [];
  #reporting: Reporting | undefined;
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
    before: Reporting | undefined,
    cluster: FollowedCluster | undefined,
    lease: string,
  ): Promise<void> {
    await before?.close();
    if (cluster === undefined) {
      return;
    }
    // Loading it takes time that only those need who use it.
    const { Reporting: Reporter } = await import('../../kubernetes/cluster/status/reporting.ts');
    // Meanwhile another configuration may have taken over.
    if (cluster === this.#cluster && lease === this.#lease) {
      const { client, policies } = cluster;
      this.#reporting = new Reporter({ client, policies, audit: this.#audit, lease, ...this.#options });
    }
  }
}
